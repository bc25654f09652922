package dray.page;

import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * The header of a page ({@code spec/page.md} section 2).
 *
 * @param sequence the number of the page in its file or stream
 * @param objects at least one
 * @param pageBytes the size of the page
 * @param objectsEnd where the last extent ends
 * @param hasChecksum whether the page has a checksum
 * @param checksum CRC-32C of the page, or 0
 * @param large whether it has one object that does not fit the standard size
 * @param moved whether its objects lie in any order, between dead extents
 * @param edition how often the page was changed in place since it was built
 */
public record PageHeader(
        long sequence, long objects, int pageBytes, int objectsEnd, boolean hasChecksum,
        int checksum, boolean large, boolean moved, int edition) {
    static final int BYTES = 64;
    static final int SLOT_BYTES = 4;
    static final int PAGE_BYTES_MIN = 4 << 10;
    static final int PAGE_BYTES_MAX = 1 << 30;
    static final int MAGIC = 0x5059_5244;
    static final int FLAG_CHECKSUM = 1;
    static final int FLAG_LARGE = 2;
    static final int FLAG_MOVED = 4;
    static final int FLAGS_AT = 6;
    static final int SEQUENCE_AT = 8;
    static final int OBJECTS_AT = 16;
    static final int PAGE_BYTES_AT = 20;
    static final int OBJECTS_END_AT = 24;
    static final int CHECKSUM_AT = 28;
    static final int EDITION_AT = 32;
    private static final int RESERVED_AT = 36;

    /** Reads a header. Its size tells how many bytes of a file or stream the page takes. */
    static PageHeader decode(ByteBuffer page) {
        int size = page.limit();
        if (size < BYTES) {
            throw refused(Refusal.SIZE, "a page of " + size + " bytes is shorter than its header");
        }
        if (Memory.getInt(page, 0) != MAGIC) {
            throw refused(Refusal.MAGIC, String.format("it begins with %08x, expected %08x (DRYP)",
                    Integer.reverseBytes(Memory.getInt(page, 0)), Integer.reverseBytes(MAGIC)));
        }
        if (Memory.getChar(page, 4) != 0) {
            throw refused(Refusal.VERSION, "layout version " + Memory.getChar(page, 4)
                    + ", this reader knows 0");
        }
        int flags = Memory.getChar(page, FLAGS_AT);
        if ((flags & ~(FLAG_CHECKSUM | FLAG_LARGE | FLAG_MOVED)) != 0) {
            throw refused(Refusal.FLAGS, String.format("unknown flags %#06x", flags));
        }
        boolean large = (flags & FLAG_LARGE) != 0;
        boolean moved = (flags & FLAG_MOVED) != 0;
        boolean hasChecksum = (flags & FLAG_CHECKSUM) != 0;
        long objects = Memory.getUnsignedInt(page, OBJECTS_AT);
        long pageBytes = Memory.getUnsignedInt(page, PAGE_BYTES_AT);
        long end = Memory.getUnsignedInt(page, OBJECTS_END_AT);
        int checksum = Memory.getInt(page, CHECKSUM_AT);
        if (objects == 0 || large && (objects != 1 || moved)) {
            throw refused(Refusal.OBJECTS, "a " + (large ? "large " : "")
                    + (moved ? "moved " : "") + "page of " + objects + " objects");
        }
        if (large ? !isLargeSize(pageBytes) : !isStandardSize(pageBytes)) {
            throw refused(Refusal.SIZE, "no page has " + pageBytes + " bytes");
        }
        if (end < BYTES || end + SLOT_BYTES * objects > pageBytes) {
            throw refused(Refusal.OBJECTS, objects + " objects up to byte " + end + " of "
                    + pageBytes + " leave too few bytes for slots");
        }
        if (!hasChecksum && checksum != 0) {
            throw refused(Refusal.CHECKSUM, "there is a checksum without its flag");
        }
        if (!Memory.isZero(page, RESERVED_AT, BYTES)) {
            throw refused(Refusal.RESERVED, "a reserved byte of the header is not 0");
        }
        return new PageHeader(Memory.getLong(page, SEQUENCE_AT), objects, (int) pageBytes,
                (int) end, hasChecksum, checksum, large, moved, Memory.getInt(page, EDITION_AT));
    }

    static boolean isStandardSize(long pageBytes) {
        return Long.bitCount(pageBytes) == 1 && pageBytes >= PAGE_BYTES_MIN
                && pageBytes <= PAGE_BYTES_MAX;
    }

    static boolean isLargeSize(long pageBytes) {
        return pageBytes > 0 && pageBytes % PAGE_BYTES_MIN == 0 && pageBytes < Record.BYTES_END;
    }

    /** The checksum of a page: over its bytes behind the header, then over the header. */
    static int checksumOf(ByteBuffer page) {
        var crc = new CRC32C();
        crc.update(Memory.slice(page, BYTES, page.limit() - BYTES));
        byte[] header = new byte[BYTES];
        page.get(0, header);
        for (int at = CHECKSUM_AT; at < EDITION_AT; at++) {
            header[at] = 0;
        }
        crc.update(header);
        return (int) crc.getValue();
    }

    private static PageException refused(Refusal refusal, String what) {
        return new PageException(refusal, what);
    }
}
