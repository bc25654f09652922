package dray.jdbc;

import java.nio.charset.StandardCharsets;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;

/** Appends strings and bytes. */
final class Texts {
    /** An offset, beside the bytes. */
    private static final int OFFSET_BYTES = 4;

    private Texts() {}

    static Appender strings(FieldVector vector) {
        var texts = (VarCharVector) vector;
        return (rows, column, at) -> append(texts, at, rows.getString(column));
    }

    static Appender bytes(FieldVector vector) {
        var binaries = (VarBinaryVector) vector;
        return (rows, column, at) -> append(binaries, at, rows.getBytes(column));
    }

    static long append(VarCharVector vector, int at, String value) throws Failure {
        if (value == null) {
            vector.setNull(at);
            return OFFSET_BYTES;
        }
        checkSize(vector, value.length());
        checkCharacters(vector, value);
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        checkSize(vector, bytes.length);
        vector.setSafe(at, bytes);
        return OFFSET_BYTES + bytes.length;
    }

    static long append(VarBinaryVector vector, int at, byte[] value) throws Failure {
        if (value == null) {
            vector.setNull(at);
            return OFFSET_BYTES;
        }
        checkSize(vector, value.length);
        vector.setSafe(at, value);
        return OFFSET_BYTES + value.length;
    }

    /** Refuses what is too large for a cell. */
    static void checkSize(FieldVector vector, long bytes) throws Failure {
        if (bytes > Appender.CELL_BYTES_MAX) {
            throw new Failure(Failure.Kind.LIMIT, "54000",
                    "column " + vector.getName() + ": a value has more than "
                            + (Appender.CELL_BYTES_MAX >> 20) + " MiB",
                    "select a part of it");
        }
    }

    /** Refuses halves of characters, for which UTF-8 has no bytes. */
    private static void checkCharacters(FieldVector vector, String value) throws Failure {
        int length = value.length();
        for (int i = 0; i < length; i++) {
            char one = value.charAt(i);
            if (!Character.isSurrogate(one)) {
                continue;
            }
            boolean isPair = Character.isHighSurrogate(one) && i + 1 < length
                    && Character.isLowSurrogate(value.charAt(i + 1));
            if (!isPair) {
                throw Failure.ofColumn(vector.getName(),
                        "a text with half of a character, U+" + Integer.toHexString(one),
                        "select the column as bytes");
            }
            i++;
        }
    }
}
