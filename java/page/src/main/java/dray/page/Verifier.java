package dray.page;

import java.nio.ByteBuffer;
import java.util.BitSet;

/**
 * Verifies a page in one pass, front to back, with one cursor for the tails ({@code spec/page.md}
 * section 9).
 */
final class Verifier {
    /** What must be 0 in the two words of a short string's place, by its length. */
    private static final long[] BEHIND_LOW = new long[Record.INLINE_MAX + 1];
    private static final long[] BEHIND_HIGH = new long[Record.INLINE_MAX + 1];
    private static final long HIGH_BITS = 0x8080_8080_8080_8080L;
    /** In a dead extent, this bit of its size is set (section 11). */
    static final int DEAD = 1 << 31;

    static {
        for (int length = 0; length <= Record.INLINE_MAX; length++) {
            BEHIND_LOW[length] = length >= 4 ? 0 : -1L << (32 + 8 * length);
            BEHIND_HIGH[length] = length <= 4 ? -1L : length == 12 ? 0 : -1L << 8 * (length - 4);
        }
    }

    private final ByteBuffer page;
    /** Where the object begins, and its size. */
    private int base;
    private int extent;
    /** Where the next tail begins, from the start of the object. */
    private int cursor;

    private Verifier(ByteBuffer page) {
        this.page = page;
    }

    /** Checks a page, and returns its header. */
    static PageHeader check(Layout layout, ByteBuffer page) {
        PageHeader header = PageHeader.decode(page);
        if (page.limit() != header.pageBytes()) {
            throw refused(Refusal.SIZE, "a page of " + page.limit() + " bytes, the header says "
                    + header.pageBytes());
        }
        if (header.hasChecksum()) {
            int found = PageHeader.checksumOf(page);
            if (found != header.checksum()) {
                throw refused(Refusal.CHECKSUM, String.format(
                        "page %d was damaged: checksum %08x, expected %08x",
                        header.sequence(), found, header.checksum()));
            }
        }
        var verifier = new Verifier(page);
        if (header.moved()) {
            verifier.movedObjects(layout.record, header);
        } else {
            verifier.objects(layout.record, header);
        }
        int slotsAt = header.pageBytes() - (int) header.objects() * PageHeader.SLOT_BYTES;
        verifier.zeros(header.objectsEnd(), slotsAt);
        return header;
    }

    private int slot(int i) {
        return Memory.getInt(page, page.limit() - PageHeader.SLOT_BYTES * (i + 1));
    }

    private void objects(Record record, PageHeader header) {
        int at = PageHeader.BYTES;
        for (int i = 0; i < header.objects(); i++) {
            int slot = slot(i);
            if (slot != at) {
                throw refused(Refusal.SLOT, "slot " + i + " is " + Integer.toUnsignedString(slot)
                        + ", its object is at " + at);
            }
            try {
                at += object(record, at, header.objectsEnd());
            } catch (PageException refused) {
                throw refused.about("object " + i);
            }
        }
        if (at != header.objectsEnd()) {
            throw refused(Refusal.OBJECTS, "the objects end at " + at + ", the header says "
                    + header.objectsEnd());
        }
    }

    /** The extents of a moved page are live or dead, in any order (section 11). */
    private void movedObjects(Record record, PageHeader header) {
        var live = new BitSet();
        int end = header.objectsEnd();
        int at = PageHeader.BYTES;
        while (at < end) {
            int word = end - at >= 4 ? Memory.getInt(page, at) : 0;
            if (word >= 0) {
                live.set(at / Record.ALIGNMENT);
                try {
                    at += object(record, at, end);
                } catch (PageException refused) {
                    throw refused.about("the object at " + at);
                }
                continue;
            }
            int size = word & ~DEAD;
            if (size < Record.ALIGNMENT || size % Record.ALIGNMENT != 0 || size > end - at) {
                throw refused(Refusal.EXTENT, "a dead extent of " + size + " bytes at " + at
                        + ", of " + (end - at) + " left");
            }
            zeros(at + 4, at + size);
            at += size;
        }
        if (live.cardinality() != header.objects()) {
            throw refused(Refusal.OBJECTS, live.cardinality()
                    + " live objects, the header says " + header.objects());
        }
        for (int i = 0; i < header.objects(); i++) {
            int slot = slot(i);
            if (slot < 0 || slot % Record.ALIGNMENT != 0 || !live.get(slot / Record.ALIGNMENT)) {
                throw refused(Refusal.SLOT, "slot " + i + " is " + Integer.toUnsignedString(slot)
                        + ", where no live object begins, or one that another slot has");
            }
            live.clear(slot / Record.ALIGNMENT);
        }
    }

    /** Checks the object at an offset, and returns the size of its extent. */
    private int object(Record record, int at, int end) {
        base = at;
        int left = end - at;
        extent = left < 4 ? 0 : Memory.getInt(page, at);
        if (extent <= 0 || extent % Record.ALIGNMENT != 0 || extent < record.end
                || extent > left) {
            throw refused(Refusal.EXTENT, "an extent of " + Integer.toUnsignedString(extent)
                    + " bytes, of " + left + " left and with a record of " + record.end);
        }
        cursor = record.end;
        record(record, at);
        if (Memory.pad((long) cursor, Record.ALIGNMENT) != extent) {
            throw refused(Refusal.EXTENT,
                    "the tails end at " + cursor + ", the extent at " + extent);
        }
        zeros(base + cursor, base + extent);
        return extent;
    }

    private void zeros(int from, int end) {
        if (!Memory.isZero(page, from, end)) {
            throw refused(Refusal.PADDING, "a byte between " + from + " and " + end + " is not 0");
        }
    }

    /** Checks the record at an offset, and its tails. */
    private void record(Record record, int at) {
        if (record.bits > 0) {
            validity(record, at);
        }
        int[] gaps = record.gaps;
        for (int i = 0; i < gaps.length; i += 2) {
            zeros(at + gaps[i], at + gaps[i + 1]);
        }
        int any = 0;
        for (int place : record.booleans) {
            any |= page.get(at + place);
        }
        if ((any & ~1) != 0) {
            throw refused(Refusal.BOOLEAN, "a boolean is neither 0 nor 1");
        }
        for (Place place : record.tails) {
            if (place.items() == null) {
                string(at + place.at(), place.type().id() == TypeId.UTF8);
            } else {
                items(record, place, at);
            }
        }
    }

    /** Checks the validity bits of a record, and that missing values are zero. */
    private void validity(Record record, int at) {
        int bitsAt = at + record.bitsAt;
        for (int first = 0; first < record.bits; first += 8) {
            int bits = Math.min(record.bits - first, 8);
            int word = page.get(bitsAt + first / 8) & 0xff;
            if (word >>> bits != 0) {
                throw refused(Refusal.BITMAP, "a bit is set past the last of " + record.bits
                        + " validity bits");
            }
            int missing = ~word & (1 << bits) - 1;
            while (missing != 0) {
                absent(record, at, first + Integer.numberOfTrailingZeros(missing));
                missing &= missing - 1;
            }
        }
    }

    /** Checks that everything that depends on a validity bit, which is 0, is zero too. */
    private void absent(Record record, int at, int bit) {
        boolean any = false;
        for (int within = bit + 1; within < record.withinEnd[bit]; within++) {
            any |= Memory.getBit(page, at + record.bitsAt, within);
        }
        for (Place place : record.absent[bit]) {
            int from = at + place.at();
            any |= !Memory.isZero(page, from, from + place.bytes());
        }
        if (any) {
            throw refused(Refusal.MISSING,
                    "a value is missing (validity bit " + bit + ") and not zero");
        }
    }

    /** Checks the string whose place is at an offset. */
    private void string(int at, boolean utf8) {
        long low = Memory.getLong(page, at);
        long high = Memory.getLong(page, at + 8);
        long length = low & 0xffff_ffffL;
        if (length <= Record.INLINE_MAX) {
            int short_ = (int) length;
            if ((low & BEHIND_LOW[short_] | high & BEHIND_HIGH[short_]) != 0) {
                throw refused(Refusal.STRING,
                        "the bytes after a string of " + length + " bytes are not 0");
            }
            if (utf8 && ((low & 0xffff_ffff_0000_0000L | high) & HIGH_BITS) != 0) {
                utf8(at + 4, at + 4 + short_);
            }
            return;
        }
        if ((int) high != 0) {
            throw refused(Refusal.STRING,
                    "the reserved bytes of a string of " + length + " bytes are not 0");
        }
        int offset = (int) (high >>> 32);
        if (offset != cursor || length > extent - cursor) {
            throw refused(Refusal.TAIL, "a string of " + length + " bytes at "
                    + Integer.toUnsignedString(offset) + ", expected at " + cursor + " of "
                    + extent);
        }
        int from = base + cursor;
        if (Memory.getInt(page, from) != (int) (low >>> 32)) {
            throw refused(Refusal.STRING, "a string does not begin as its place says");
        }
        cursor += (int) length;
        if (utf8 && !Utf8Check.isAscii(page, from, base + cursor)) {
            utf8(from, base + cursor);
        }
    }

    private void utf8(int from, int end) {
        if (!Utf8Check.isUtf8(page, from, end)) {
            throw refused(Refusal.UTF8, "a string is not UTF-8");
        }
    }

    /** Checks the list at a place of the record at an offset. */
    private void items(Record around, Place place, int recordAt) {
        int at = recordAt + place.at();
        int offset = Memory.getInt(page, at);
        int count = Memory.getInt(page, at + 4);
        int size = place.size();
        if (size >= 0 && count != size && (place.around() < 0
                || Memory.getBit(page, recordAt + around.bitsAt, place.around()))) {
            throw refused(Refusal.ITEMS, "a list of " + size + " items has "
                    + Integer.toUnsignedString(count));
        }
        if (count <= 0) {
            if (count < 0 || offset != 0) {
                throw refused(Refusal.ITEMS, "a list of " + Integer.toUnsignedString(count)
                        + " items is at " + Integer.toUnsignedString(offset));
            }
            return;
        }
        Record record = place.items().record();
        long start = Memory.pad((long) cursor, Record.ALIGNMENT);
        long recordsAt = start + place.items().bitmapBytes(count);
        // Both factors are below 2^31.
        long end = recordsAt + (long) count * record.stride;
        if ((offset & 0xffff_ffffL) != start || end > extent) {
            throw refused(Refusal.TAIL, count + " items at " + Integer.toUnsignedString(offset)
                    + " up to " + end + ", expected at " + start + " of " + extent);
        }
        zeros(base + cursor, base + (int) start);
        cursor = (int) end;
        if (place.items().nullable()) {
            nullableItems(record, base + (int) start, base + (int) recordsAt, count);
        } else if (record.isChecked) {
            for (int i = 0; i < count; i++) {
                record(record, base + (int) recordsAt + i * record.stride);
            }
        }
    }

    private void nullableItems(Record record, int bitmap, int recordsAt, int count) {
        int bitmapEnd = bitmap + (int) (((long) count + 7) / 8);
        if (count % 8 != 0 && (page.get(bitmapEnd - 1) & 0xff) >>> count % 8 != 0) {
            throw refused(Refusal.BITMAP, "a bit is set past the last of " + count + " items");
        }
        zeros(bitmapEnd, recordsAt);
        for (int i = 0; i < count; i++) {
            int at = recordsAt + i * record.stride;
            if (Memory.getBit(page, bitmap, i)) {
                if (record.isChecked) {
                    record(record, at);
                }
            } else if (!Memory.isZero(page, at, at + record.stride)) {
                throw refused(Refusal.MISSING, "item " + i + " is missing and not zero");
            }
        }
    }

    private static PageException refused(Refusal refusal, String what) {
        return new PageException(refusal, what);
    }
}
