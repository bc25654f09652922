package dray.page;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.function.IntUnaryOperator;

/** Writes an object anew with one change. Its tails follow in their order. */
final class Rewriter {
    /**
     * What is changed in a record.
     *
     * @param record where it begins, from the start of the object
     * @param clear a validity bit that is cleared with all that is within it, or -1
     * @param tail the tail that is replaced, or -1
     * @param bytes the new value of a string
     * @param count the new number of a list's items
     * @param source for each new item the number of the old one that it is, or -1
     */
    record Change(
            int record, int clear, int tail, byte[] bytes, int count, IntUnaryOperator source) {
        static Change ofString(int record, int tail, byte[] bytes) {
            return new Change(record, -1, tail, bytes, 0, null);
        }

        static Change ofList(int record, int tail, int count, IntUnaryOperator source) {
            return new Change(record, -1, tail, null, count, source);
        }

        static Change ofClear(int record, int bit) {
            return new Change(record, bit, -1, null, 0, null);
        }
    }

    private static final Change NONE = Change.ofClear(-1, -1);

    private final ByteBuffer from;
    private final int base;
    private final Change change;
    private ByteBuffer to;
    private int cursor;

    private Rewriter(ByteBuffer from, int base, Change change) {
        this.from = from;
        this.base = base;
        this.change = change == null ? NONE : change;
        to = ByteBuffer.allocate(1024).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The new extent of the object at an offset. Without a change, lists that must be appear. */
    static ByteBuffer rewrite(Layout layout, ByteBuffer page, int object, Change change) {
        var rewriter = new Rewriter(page, object, change);
        Record root = layout.record;
        rewriter.reserve(root.end);
        rewriter.copy(0, 0, root.end);
        rewriter.cursor = root.end;
        rewriter.tails(root, 0, 0);
        long size = Memory.pad((long) rewriter.cursor, Record.ALIGNMENT);
        rewriter.reserve(size);
        Memory.putInt(rewriter.to, 0, (int) size);
        return Memory.slice(rewriter.to, 0, (int) size);
    }

    private void reserve(long end) {
        if (end >= Record.BYTES_END - Record.ALIGNMENT) {
            throw new PageException(Refusal.LIMIT, "an object of " + end + " bytes fits no page");
        }
        if (end > to.capacity()) {
            long bytes = Math.max(end, Math.min(2L * to.capacity(), Record.BYTES_END - 64));
            ByteBuffer larger =
                    ByteBuffer.allocate((int) bytes).order(ByteOrder.LITTLE_ENDIAN);
            larger.put(0, to, 0, cursor);
            to = larger;
        }
    }

    private void copy(int oldAt, int newAt, int count) {
        to.put(newAt, from, base + oldAt, count);
    }

    /** Writes the tails of a record, which is in place. It was at an offset, or is new: -1. */
    private void tails(Record record, int oldAt, int newAt) {
        boolean isChanged = oldAt >= 0 && oldAt == change.record();
        if (isChanged && change.clear() >= 0) {
            Target.clear(to, newAt, record, change.clear());
        }
        for (Place place : record.tails) {
            int at = newAt + place.at();
            if (isChanged && place.tail() == change.tail()) {
                replace(place, at);
            } else if (place.items() == null) {
                string(at);
            } else {
                list(record, newAt, place);
            }
        }
    }

    private void replace(Place place, int at) {
        if (change.source() != null) {
            items(place, at, change.count(), Memory.getInt(to, at), Memory.getInt(to, at + 4),
                    change.source());
            return;
        }
        byte[] bytes = change.bytes();
        Memory.zero(to, at, at + Record.STRING_BYTES);
        Memory.putInt(to, at, bytes.length);
        if (bytes.length <= Record.INLINE_MAX) {
            to.put(at + 4, bytes);
            return;
        }
        reserve((long) cursor + bytes.length);
        to.put(at + 4, bytes, 0, 4);
        Memory.putInt(to, at + 12, cursor);
        to.put(cursor, bytes);
        cursor += bytes.length;
    }

    private void string(int at) {
        int length = Memory.getInt(to, at);
        if (length > Record.INLINE_MAX) {
            int old = Memory.getInt(to, at + 12);
            reserve((long) cursor + length);
            copy(old, cursor, length);
            Memory.putInt(to, at + 12, cursor);
            cursor += length;
        }
    }

    private void list(Record record, int recordAt, Place place) {
        int at = recordAt + place.at();
        int count = Memory.getInt(to, at + 4);
        boolean isPresent = place.around() < 0
                || Memory.getBit(to, recordAt + record.bitsAt, place.around());
        if (count > 0) {
            items(place, at, count, Memory.getInt(to, at), count, i -> i);
        } else if (place.size() > 0 && isPresent) {
            items(place, at, place.size(), 0, 0, i -> -1);
        }
    }

    private void items(
            Place place, int at, int count, int oldStart, int oldCount, IntUnaryOperator source) {
        Memory.putLong(to, at, 0);
        if (count == 0) {
            return;
        }
        Place.Items items = place.items();
        Record record = items.record();
        long start = Memory.pad((long) cursor, Record.ALIGNMENT);
        int records = (int) (start + items.bitmapBytes(count));
        long end = start + items.bitmapBytes(count) + (long) count * record.stride;
        reserve(end);
        cursor = (int) end;
        Memory.putInt(to, at, (int) start);
        Memory.putInt(to, at + 4, count);
        int oldRecords = oldStart + (int) items.bitmapBytes(oldCount);
        for (int i = 0; i < count && (record.stride > 0 || items.nullable()); i++) {
            int old = source.applyAsInt(i);
            if (old >= 0) {
                copy(oldRecords + old * record.stride, records + i * record.stride, record.stride);
                if (items.nullable()) {
                    Memory.putBit(to, (int) start, i, Memory.getBit(from, base + oldStart, old));
                }
            }
        }
        for (int i = 0; i < count && record.tails.length > 0; i++) {
            int old = source.applyAsInt(i);
            if (!items.nullable() || Memory.getBit(to, (int) start, i)) {
                tails(record, old < 0 ? -1 : oldRecords + old * record.stride,
                        records + i * record.stride);
            }
        }
    }
}
