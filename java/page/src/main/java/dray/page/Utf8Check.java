package dray.page;

import java.nio.ByteBuffer;

/** Whether bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
final class Utf8Check {
    private static final long HIGH = 0x8080_8080_8080_8080L;

    private Utf8Check() {}

    static boolean isAscii(ByteBuffer bytes, int from, int end) {
        long any = 0;
        int at = from;
        for (; at <= end - 8; at += 8) {
            any |= Memory.getLong(bytes, at);
        }
        if (end - from >= 8) {
            // The last eight bytes, some of them again.
            any |= Memory.getLong(bytes, end - 8);
        } else {
            for (; at < end; at++) {
                any |= bytes.get(at);
            }
        }
        return (any & HIGH) == 0;
    }

    static boolean isUtf8(ByteBuffer bytes, int from, int end) {
        int at = from;
        while (at < end) {
            int first = bytes.get(at++);
            if (first >= 0) {
                continue;
            }
            int length = (first & 0xe0) == 0xc0 ? 2 : (first & 0xf0) == 0xe0 ? 3
                    : (first & 0xf8) == 0xf0 ? 4 : 0;
            if (length == 0 || at + length - 1 > end) {
                return false;
            }
            int point = first & 0x7f >> length;
            for (int i = 1; i < length; i++) {
                int next = bytes.get(at++);
                if ((next & 0xc0) != 0x80) {
                    return false;
                }
                point = point << 6 | next & 0x3f;
            }
            int least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x1_0000;
            if (point < least || point > Character.MAX_CODE_POINT
                    || point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE) {
                return false;
            }
        }
        return true;
    }
}
