package dray.jdbc;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import org.apache.arrow.vector.BaseIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.Decimal256Vector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.types.pojo.ArrowType;

/** Appends booleans and numbers. */
final class Numbers {
    private static final BigInteger UINT64_END = BigInteger.ONE.shiftLeft(Long.SIZE);

    private Numbers() {}

    static Appender booleans(FieldVector vector) {
        var bits = (BitVector) vector;
        return (rows, column, at) -> {
            boolean value = rows.getBoolean(column);
            if (rows.wasNull()) {
                bits.setNull(at);
            } else {
                bits.setSafe(at, value ? 1 : 0);
            }
            return 1;
        };
    }

    static Appender integers(FieldVector vector, ArrowType.Int type) {
        var integers = (BaseIntVector) vector;
        int bytes = type.getBitWidth() / Byte.SIZE;
        if (type.getBitWidth() == Long.SIZE) {
            return type.getIsSigned() ? longs(vector) : unsignedLongs(vector);
        }
        int bits = type.getBitWidth() - (type.getIsSigned() ? 1 : 0);
        long end = 1L << bits;
        long least = type.getIsSigned() ? -end : 0;
        return (rows, column, at) -> {
            long value = rows.getLong(column);
            if (rows.wasNull()) {
                vector.setNull(at);
            } else if (value < least || value >= end) {
                throw Failure.ofColumn(vector.getName(), value + " is beyond the type that the"
                        + " driver gives, " + type, "cast the column to bigint");
            } else {
                integers.setWithPossibleTruncate(at, value);
            }
            return bytes;
        };
    }

    private static Appender longs(FieldVector vector) {
        var longs = (org.apache.arrow.vector.BigIntVector) vector;
        return (rows, column, at) -> {
            long value = rows.getLong(column);
            if (rows.wasNull()) {
                longs.setNull(at);
            } else {
                longs.setSafe(at, value);
            }
            return Long.BYTES;
        };
    }

    private static Appender unsignedLongs(FieldVector vector) {
        var longs = (org.apache.arrow.vector.UInt8Vector) vector;
        return (rows, column, at) -> {
            BigDecimal value = rows.getBigDecimal(column);
            if (value == null) {
                longs.setNull(at);
                return Long.BYTES;
            }
            BigInteger whole = value.toBigIntegerExact();
            if (whole.signum() < 0 || whole.compareTo(UINT64_END) >= 0) {
                throw Failure.ofColumn(vector.getName(), value + " is beyond 64 bits",
                        "cast the column to a decimal");
            }
            longs.setSafe(at, whole.longValue());
            return Long.BYTES;
        };
    }

    static Appender singles(FieldVector vector) {
        var floats = (Float4Vector) vector;
        return (rows, column, at) -> {
            float value = rows.getFloat(column);
            if (rows.wasNull()) {
                floats.setNull(at);
            } else {
                floats.setSafe(at, value);
            }
            return Float.BYTES;
        };
    }

    static Appender doubles(FieldVector vector) {
        var doubles = (Float8Vector) vector;
        return (rows, column, at) -> {
            double value = rows.getDouble(column);
            if (rows.wasNull()) {
                doubles.setNull(at);
            } else {
                doubles.setSafe(at, value);
            }
            return Double.BYTES;
        };
    }

    static Appender decimals(FieldVector vector, ArrowType.Decimal type) {
        int bytes = type.getBitWidth() / Byte.SIZE;
        return (rows, column, at) -> {
            BigDecimal value = rows.getBigDecimal(column);
            if (value == null) {
                vector.setNull(at);
                return bytes;
            }
            BigDecimal scaled = scaled(vector.getName(), value, type);
            if (vector instanceof DecimalVector narrow) {
                narrow.setSafe(at, scaled);
            } else {
                ((Decimal256Vector) vector).setSafe(at, scaled);
            }
            return bytes;
        };
    }

    private static BigDecimal scaled(String column, BigDecimal value, ArrowType.Decimal type)
            throws Failure {
        // Without its zeros, a value with an exponent would grow first.
        boolean fits = value.precision() - value.scale() <= type.getPrecision() - type.getScale()
                || value.signum() == 0;
        try {
            if (fits) {
                return value.setScale(type.getScale(), RoundingMode.UNNECESSARY);
            }
        } catch (ArithmeticException rounded) {
            // The same answer as for too many digits.
        }
        throw Failure.ofColumn(column, value + " has other digits than the driver gives the"
                + " column: " + type.getPrecision() + ", " + type.getScale()
                + " behind the point", "cast the column to a decimal that holds it, or to text");
    }
}
