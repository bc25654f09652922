package dray.jdbc;

import java.math.BigDecimal;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;

/**
 * Appends the values of SQLite, which each have a type of their own. Its driver would convert them
 * to what is asked for, a text to the number 0.
 */
final class Dynamic {
    /** Integers beyond are not exact as doubles. */
    private static final long EXACT_MAX = 1L << 53;

    private Dynamic() {}

    static Appender integers(FieldVector vector) {
        var longs = (BigIntVector) vector;
        return (rows, column, at) -> {
            Object value = rows.getObject(column);
            if (value == null) {
                longs.setNull(at);
            } else if (value instanceof Integer || value instanceof Long) {
                longs.setSafe(at, ((Number) value).longValue());
            } else {
                throw wrong(vector, value, "integers");
            }
            return Long.BYTES;
        };
    }

    static Appender doubles(FieldVector vector) {
        var doubles = (Float8Vector) vector;
        return (rows, column, at) -> {
            Object value = rows.getObject(column);
            if (value == null) {
                doubles.setNull(at);
            } else if (value instanceof Double number) {
                doubles.setSafe(at, number);
            } else if (value instanceof Number number && isExact(number.longValue())) {
                doubles.setSafe(at, number.doubleValue());
            } else {
                throw wrong(vector, value, "floating-point numbers");
            }
            return Double.BYTES;
        };
    }

    private static boolean isExact(long value) {
        return value >= -EXACT_MAX && value <= EXACT_MAX;
    }

    static Appender texts(FieldVector vector) {
        var texts = (VarCharVector) vector;
        return (rows, column, at) -> {
            Object value = rows.getObject(column);
            if (value instanceof byte[] || value instanceof Double) {
                throw wrong(vector, value, "texts");
            }
            return Texts.append(texts, at, value == null ? null : value.toString());
        };
    }

    /** Texts, and the digits of numbers, of which the driver's text of a double has only 15. */
    static Appender digits(FieldVector vector) {
        var texts = (VarCharVector) vector;
        var others = texts(vector);
        return (rows, column, at) -> rows.getObject(column) instanceof Double number
                && Double.isFinite(number)
                ? Texts.append(texts, at, new BigDecimal(number.toString()).toPlainString())
                : others.append(rows, column, at);
    }

    static Appender bytes(FieldVector vector) {
        var binaries = (VarBinaryVector) vector;
        return (rows, column, at) -> {
            Object value = rows.getObject(column);
            if (value != null && !(value instanceof byte[])) {
                throw wrong(vector, value, "bytes");
            }
            return Texts.append(binaries, at, (byte[]) value);
        };
    }

    private static Failure wrong(FieldVector vector, Object value, String expected) {
        return Failure.ofColumn(vector.getName(), "a value of the type "
                + value.getClass().getSimpleName() + " in a column of " + expected,
                "cast the column to one type");
    }
}
