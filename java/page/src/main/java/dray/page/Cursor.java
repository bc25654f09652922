package dray.page;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Reads fields one after the other. Each read names its field in the refusal. */
final class Cursor {
    private final byte[] bytes;
    private final Refusal refusal;
    private int at;

    Cursor(byte[] bytes, Refusal refusal) {
        this.bytes = bytes;
        this.refusal = refusal;
    }

    PageException refused(String what) {
        return new PageException(refusal, what);
    }

    int left() {
        return bytes.length - at;
    }

    private int take(long count, String field) {
        if (count > left()) {
            throw refused(
                    "it ends within " + field + ": " + left() + " bytes are left of " + count);
        }
        int from = at;
        at += (int) count;
        return from;
    }

    int u8(String field) {
        return bytes[take(1, field)] & 0xff;
    }

    int u16(String field) {
        int from = take(2, field);
        return bytes[from] & 0xff | (bytes[from + 1] & 0xff) << 8;
    }

    long u32(String field) {
        return Memory.getUnsignedInt(ByteBuffer.wrap(bytes), take(4, field));
    }

    String string(String field) {
        int length = (int) Math.min(u32(field), Integer.MAX_VALUE);
        int from = take(length, field);
        try {
            return StandardCharsets.UTF_8.newDecoder()
                    .decode(ByteBuffer.wrap(bytes, from, length)).toString();
        } catch (CharacterCodingException cause) {
            throw refused("the " + field + " is not UTF-8");
        }
    }

    /** A string that other programs can take for a C string. */
    String cString(String field) {
        String string = string(field);
        if (string.indexOf(0) >= 0) {
            throw refused("there is a byte 0 in the " + field);
        }
        return string;
    }

    int within(String field, long value, int least, int most) {
        if (value < least || value > most) {
            throw refused(field + " " + value + ", expected " + least + " to " + most);
        }
        return (int) value;
    }
}
