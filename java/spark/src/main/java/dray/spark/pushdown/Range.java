package dray.spark.pushdown;

import java.util.Arrays;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** The least and the greatest value that an integer expression can have. */
public record Range(long least, long greatest) {
    /** The range of a type, or null if its values are no integers. */
    static Range of(DataType type) {
        if (type.equals(DataTypes.ByteType)) {
            return new Range(Byte.MIN_VALUE, Byte.MAX_VALUE);
        } else if (type.equals(DataTypes.ShortType)) {
            return new Range(Short.MIN_VALUE, Short.MAX_VALUE);
        } else if (type.equals(DataTypes.IntegerType)) {
            return new Range(Integer.MIN_VALUE, Integer.MAX_VALUE);
        } else if (type.equals(DataTypes.LongType)) {
            return new Range(Long.MIN_VALUE, Long.MAX_VALUE);
        }
        return null;
    }

    static Range of(long value) {
        return new Range(value, value);
    }

    /** The range of {@code this operator other}. Throws ArithmeticException beyond 64 bits. */
    Range apply(String operator, Range other) {
        return switch (operator) {
            case "+" -> new Range(Math.addExact(least, other.least),
                    Math.addExact(greatest, other.greatest));
            case "-" -> new Range(Math.subtractExact(least, other.greatest),
                    Math.subtractExact(greatest, other.least));
            case "*" -> {
                long[] products = {Math.multiplyExact(least, other.least),
                    Math.multiplyExact(least, other.greatest),
                    Math.multiplyExact(greatest, other.least),
                    Math.multiplyExact(greatest, other.greatest)};
                Arrays.sort(products);
                yield new Range(products[0], products[3]);
            }
            default -> throw new ArithmeticException(operator);
        };
    }

    boolean isWithin(Range other) {
        return other.least <= least && greatest <= other.greatest;
    }
}
