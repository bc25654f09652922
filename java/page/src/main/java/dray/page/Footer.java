package dray.page;

import java.nio.ByteBuffer;

/**
 * The end of a page file ({@code spec/page-file.md} section 6). Offsets and sizes are in bytes.
 *
 * @param indexAt where the page index begins
 * @param pages the number of pages
 * @param objects the number of objects
 * @param keyPathsBytes with the zeros behind them; 0 without a key index
 * @param keys the entries of the key index
 * @param keysChecksum CRC-32C of the key index
 * @param digest SHA-256
 * @param digested the footer's bytes that the digest covers
 */
record Footer(
        long indexAt, long pages, long objects, long keyPathsBytes, long keys, int keysChecksum,
        byte[] digest, ByteBuffer digested) {
    static final int ENTRY_BYTES = 16;
    private static final int BYTES = 128;
    private static final int DIGESTED_BYTES = 80;
    private static final int DIGEST_BYTES = 32;
    private static final int MAGIC_AT = 120;
    private static final long MAGIC = 0x0044_4e45_4659_5244L;
    private static final long COUNT_END = 1L << 48;

    static Footer decode(Source file, int pagesAt) {
        if (file.size - pagesAt < BYTES) {
            throw cut(file);
        }
        ByteBuffer footer = file.slice(file.size - BYTES, BYTES);
        if (Memory.getLong(footer, MAGIC_AT) != MAGIC || Memory.getLong(footer, 0) != file.size) {
            throw cut(file);
        }
        if (!Memory.isZero(footer, 56, DIGESTED_BYTES)
                || !Memory.isZero(footer, DIGESTED_BYTES + DIGEST_BYTES, MAGIC_AT)) {
            throw new PageException(Refusal.FOOTER, "a reserved byte of the footer is not 0");
        }
        byte[] digest = new byte[DIGEST_BYTES];
        footer.get(DIGESTED_BYTES, digest);
        var read = new Footer(count(footer, 8), count(footer, 16), Memory.getLong(footer, 24),
                Memory.getUnsignedInt(footer, 48), count(footer, 40), Memory.getInt(footer, 52),
                digest, Memory.slice(footer, 0, DIGESTED_BYTES));
        // No arithmetic here can overflow: counts and offsets are below 2^48.
        boolean fits = read.indexAt >= pagesAt
                && (read.indexAt - pagesAt) % FileHeader.UNIT_BYTES == 0
                && read.objects >= read.pages
                && (read.objects == 0) == (read.pages == 0)
                && read.keys <= read.objects
                && read.keyPathsBytes % 8 == 0
                && (read.hasKeys() || read.keys == 0 && read.keysChecksum == 0)
                && count(footer, 32) == (read.hasKeys() ? read.keyPathsAt() : 0)
                && read.keysAt() + ENTRY_BYTES * read.keys == file.size - BYTES;
        if (!fits) {
            throw new PageException(Refusal.FOOTER,
                    "offsets, counts and sizes of the footer contradict each other: " + read);
        }
        return read;
    }

    private static PageException cut(Source file) {
        return new PageException(Refusal.CUT,
                "it ends after " + file.size + " bytes, without a footer");
    }

    private static long count(ByteBuffer footer, int at) {
        long count = Memory.getLong(footer, at);
        if (count < 0 || count >= COUNT_END) {
            throw new PageException(Refusal.FOOTER, "the footer says "
                    + Long.toUnsignedString(count) + " at " + at + ", more than a file has");
        }
        return count;
    }

    boolean hasKeys() {
        return keyPathsBytes > 0;
    }

    /** Where the page index ends, and the key paths begin if there are any. */
    long keyPathsAt() {
        return indexAt + ENTRY_BYTES * pages;
    }

    long keysAt() {
        return keyPathsAt() + keyPathsBytes;
    }

    @Override
    public String toString() {
        return "index at " + indexAt + ", " + pages + " pages, " + objects + " objects, "
                + keyPathsBytes + " bytes of key paths, " + keys + " keys";
    }
}
