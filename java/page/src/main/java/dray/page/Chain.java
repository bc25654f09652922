package dray.page;

import java.nio.ByteBuffer;

/** The digest of a row ({@code spec/partitions.md} section 5). */
final class Chain {
    private static final long S = 0xA076_1D64_78BD_642FL;
    private static final long V = 0xE703_7ED1_A0B4_28DBL;
    private static final long F = 0x5899_65CC_7537_4CC3L;

    private long h = S;

    static long fold(long a, long k) {
        // The high half of an unsigned product.
        long high = Math.multiplyHigh(a, k) + (a >> 63 & k) + (k >> 63 & a);
        return a * k ^ high;
    }

    Chain word(long word) {
        h = fold(h ^ word, V);
        return this;
    }

    /** Takes bytes, filled up with zeros to words. */
    Chain padded(ByteBuffer bytes, int from, int end) {
        int at = from;
        for (; at <= end - 8; at += 8) {
            word(Memory.getLong(bytes, at));
        }
        if (at < end) {
            long last = 0;
            for (int i = end - 1; i >= at; i--) {
                last = last << 8 | bytes.get(i) & 0xff;
            }
            word(last);
        }
        return this;
    }

    /** The digest of a row that has taken all its columns. */
    long row() {
        return fold(h, F);
    }
}
