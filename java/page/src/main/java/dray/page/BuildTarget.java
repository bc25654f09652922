package dray.page;

import java.util.ArrayList;
import java.util.List;

/**
 * An object that is being built at the end of a page. Its tails come in the order of {@code
 * spec/page.md} section 6: a stack has the record whose tails are being written, and those around.
 */
final class BuildTarget extends Target {
    private static final class Frame {
        Record record;
        int at;
        /** The number of the next tail of the record that can be written. */
        int nextTail;
        int ticket;
        /** The list whose item the record is; null for the object. */
        ListWriter<?> list;
    }

    private final PageBuilder<?> builder;
    private final List<Frame> frames = new ArrayList<>();
    private int depth;
    private int tickets;
    /** Where the next tail begins. */
    int cursor;

    BuildTarget(Layout layout, PageBuilder<?> builder) {
        super(layout, new Version());
        this.builder = builder;
    }

    /** Begins an object, whose record is zero. */
    void begin(ViewWriter root) {
        version.value++;
        depth = 0;
        cursor = layout.record.end;
        Frame frame = frame(0, layout.record, null);
        frame.at = 0;
        root.set(this, layout.record, 0, null, 0);
        root.depth = 0;
        root.ticket = frame.ticket;
    }

    /** Ends the object, and returns its size. */
    int end() {
        closeTo(0);
        fill(frames.get(0), layout.record.tails.length);
        return Memory.pad(cursor, Record.ALIGNMENT);
    }

    /** Makes all writers of the object stale. */
    void close() {
        version.value++;
    }

    private Frame frame(int at, Record record, ListWriter<?> list) {
        if (frames.size() == at) {
            frames.add(new Frame());
        }
        Frame frame = frames.get(at);
        frame.record = record;
        frame.at = -1;
        frame.nextTail = 0;
        frame.ticket = ++tickets;
        frame.list = list;
        return frame;
    }

    int ticketAt(int depth) {
        return depth < frames.size() ? frames.get(depth).ticket : 0;
    }

    @Override
    void refresh(ViewWriter writer) {
        throw misuse("the object of this writer was finished");
    }

    @Override
    boolean isEditing() {
        return false;
    }

    /** Ends the records above one. */
    private void closeTo(int level) {
        for (; depth > level; depth--) {
            Frame frame = frames.get(depth);
            if (frame.list.next != frame.list.count) {
                throw misuse("a list of " + frame.list.count + " items got "
                        + frame.list.next);
            }
            endItem(frame);
        }
    }

    private void endItem(Frame frame) {
        if (frame.at >= 0) {
            fill(frame, frame.record.tails.length);
        }
    }

    /**
     * The frame of a writer whose record can still get tails, up to this one. The caller passes the
     * tail once it is written: there may be no room for it.
     */
    private Frame open(ViewWriter writer, int tail) {
        Frame frame = writer.depth <= depth ? frames.get(writer.depth) : null;
        if (frame == null || frame.ticket != writer.ticket || frame.at != writer.at) {
            throw misuse("the item of this writer was left");
        }
        closeTo(writer.depth);
        if (tail < frame.nextTail) {
            Place place = frame.record.tails[tail];
            throw misuse("the field \"" + place.field().name() + "\" comes too late, or again: "
                    + "strings and lists are written in the order of the schema");
        }
        fill(frame, tail);
        return frame;
    }

    /** Fixed lists that were passed over have items of default values. */
    private void fill(Frame frame, int tails) {
        for (; frame.nextTail < tails; frame.nextTail++) {
            fill(frame.record, frame.at, frame.record.tails[frame.nextTail]);
        }
    }

    private void fill(Record record, int at, Place place) {
        boolean present = place.around() < 0
                || Memory.getBit(page, object + at + record.bitsAt, place.around());
        if (place.size() <= 0 || !present) {
            return;
        }
        int records = allocate(at + place.at(), place, place.size());
        Record item = place.items().record();
        if (place.items().nullable() || item.tails.length == 0) {
            return;
        }
        for (int i = 0; i < place.size(); i++) {
            for (Place tail : item.tails) {
                fill(item, records + i * item.stride, tail);
            }
        }
    }

    /** Takes room for items at the cursor, and returns where their records begin. */
    private int allocate(int at, Place place, int count) {
        if (count == 0) {
            return 0;
        }
        long start = Memory.pad((long) cursor, Record.ALIGNMENT);
        long records = start + place.items().bitmapBytes(count);
        long end = records + (long) count * place.items().record().stride;
        builder.ensure(end);
        Memory.putInt(page, object + at, (int) start);
        Memory.putInt(page, object + at + 4, count);
        cursor = (int) end;
        return (int) records;
    }

    @Override
    void putString(ViewWriter writer, Place place, byte[] bytes) {
        int at = writer.at + place.at();
        boolean wasLong = Integer.compareUnsigned(
                Memory.getInt(page, object + at), Record.INLINE_MAX) > 0;
        if (bytes.length <= Record.INLINE_MAX && !wasLong) {
            putInline(object + at, bytes);
            return;
        }
        Frame frame = open(writer, place.tail());
        builder.ensure((long) cursor + bytes.length);
        putLong(object + at, cursor, bytes);
        cursor += bytes.length;
        frame.nextTail = place.tail() + 1;
    }

    @Override
    void putList(ViewWriter writer, Place place, int count, ListWriter<?> list) {
        Frame frame = open(writer, place.tail());
        allocate(writer.at + place.at(), place, count);
        frame.nextTail = place.tail() + 1;
        depth++;
        frame(depth, place.items().record(), list);
        list.refresh();
        if (place.items().record().fields.get(0).type().id() == TypeId.NULL) {
            list.next = count;
        }
    }

    @Override
    void nextItem(ListWriter<?> list) {
        int level = list.holder.depth + 1;
        Frame frame = level <= depth ? frames.get(level) : null;
        if (frame == null || frame.list != list) {
            throw misuse("the list was left");
        }
        closeTo(level);
        endItem(frame);
        frame.at = list.records + list.next * frame.record.stride;
        // An item that is left missing has no tails.
        frame.nextTail = frame.record.tails.length;
        if (!list.place.items().nullable()) {
            frame.nextTail = 0;
        }
    }

    @Override
    void takeBack(ListWriter<?> list, int item, boolean wasThere) {
        Frame frame = frames.get(list.holder.depth + 1);
        frame.nextTail = frame.record.tails.length;
        if (!wasThere) {
            Memory.putBit(page, object + list.bitmap, item, false);
        }
    }

    @Override
    void clear(ViewWriter writer, int bit) {
        Record record = writer.record;
        for (int within = bit; within < record.withinEnd[bit]; within++) {
            for (Place place : record.absent[within]) {
                int at = object + writer.at + place.at();
                boolean isString = place.tail() >= 0 && place.items() == null;
                int length = place.tail() < 0 ? 0
                        : Memory.getInt(page, isString ? at : at + 4);
                if (length > (isString ? Record.INLINE_MAX : 0)) {
                    throw misuse("the field \"" + place.field().name()
                            + "\" was written and can't be made missing while building");
                }
            }
        }
        clear(page, object + writer.at, record, bit);
    }

    @Override
    void presentStruct(ViewWriter writer, int bit) {
        Frame frame = writer.depth <= depth ? frames.get(writer.depth) : null;
        boolean isOpen = frame != null && frame.ticket == writer.ticket && frame.at == writer.at;
        for (Place place : writer.record.tails) {
            if (place.around() == bit && place.size() > 0
                    && !(isOpen && place.tail() >= frame.nextTail)) {
                throw misuse("the struct with \"" + place.field().name() + "\" comes too late");
            }
        }
        Memory.putBit(page, object + writer.at + writer.record.bitsAt, bit, true);
    }

    @Override
    void presentItem(ViewWriter writer) {
        // Only the last item is made present, right after it became the open one.
        frames.get(writer.depth).nextTail = 0;
        Memory.putBit(page, object + writer.list.bitmap, writer.index, true);
    }
}
