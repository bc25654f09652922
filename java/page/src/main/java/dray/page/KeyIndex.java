package dray.page;

import java.util.Arrays;
import java.util.zip.CRC32C;

/** The hashes of a file's keys ({@code spec/page-file.md} section 5). */
final class KeyIndex {
    private final Source.Region entries;
    private final long count;

    /** Checks that the index has its checksum, is in order, and has ordinals below `objects`. */
    KeyIndex(Source.Region entries, int checksum, long objects) {
        this.entries = entries;
        this.count = entries.bytes() / Footer.ENTRY_BYTES;
        var crc = new CRC32C();
        entries.each(crc::update);
        if ((int) crc.getValue() != checksum) {
            throw new PageException(Refusal.KEYS,
                    "the key index was damaged; the objects can be read without it");
        }
        for (long i = 0; i < count; i++) {
            boolean inOrder = i == 0 || isBelow(i - 1, hash(i), ordinal(i));
            if (!inOrder || Long.compareUnsigned(ordinal(i), objects) >= 0) {
                throw new PageException(Refusal.KEYS, "the key index is not in order");
            }
        }
    }

    long count() {
        return count;
    }

    long hash(long i) {
        return entries.getLong(i * Footer.ENTRY_BYTES);
    }

    long ordinal(long i) {
        return entries.getLong(i * Footer.ENTRY_BYTES + 8);
    }

    private boolean isBelow(long i, long hash, long ordinal) {
        int order = Long.compareUnsigned(hash(i), hash);
        return order < 0 || order == 0 && Long.compareUnsigned(ordinal(i), ordinal) < 0;
    }

    /** The ordinals of the objects whose key has this hash, in ascending order. */
    long[] find(long hash) {
        long first = lowerBound(hash, 0);
        int found = 0;
        while (first + found < count && hash(first + found) == hash) {
            found++;
        }
        var ordinals = new long[found];
        Arrays.setAll(ordinals, i -> ordinal(first + i));
        return ordinals;
    }

    /** Whether it has this hash for this object. */
    boolean has(long hash, long ordinal) {
        long at = lowerBound(hash, ordinal);
        return at < count && hash(at) == hash && ordinal(at) == ordinal;
    }

    /**
     * The number of entries before this one. Hashes are evenly spread, so the first guess is close;
     * doubling steps find a range around it, which is then halved.
     */
    private long lowerBound(long hash, long ordinal) {
        long guess = Math.multiplyHigh(hash >>> 1, count << 1);
        long from = guess;
        long to = guess;
        long step = 16;
        while (from > 0 && !isBelow(from - 1, hash, ordinal)) {
            to = from - 1;
            from = Math.max(from - step, 0);
            step *= 2;
        }
        step = 16;
        while (to < count && isBelow(to, hash, ordinal)) {
            from = to + 1;
            to = Math.min(to + step, count);
            step *= 2;
        }
        while (from < to) {
            long middle = from + (to - from) / 2;
            if (isBelow(middle, hash, ordinal)) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        return from;
    }
}
