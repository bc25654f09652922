package dray.spark.pushdown;

import java.util.Map;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/** Casts and arithmetic whose results are exact in Spark, and so in any database. */
final class Casts {
    private static final Map<DataType, Integer> DIGITS = Map.of(DataTypes.ByteType, 3,
            DataTypes.ShortType, 5, DataTypes.IntegerType, 10, DataTypes.LongType, 19);

    private Casts() { }

    static Term cast(Dialect dialect, Term term, DataType type) throws Untranslatable {
        DataType from = term.type();
        if (from.equals(type)) {
            return term;
        }
        Range range = Range.of(type);
        boolean exact;
        if (term.range() != null && range != null) {
            exact = term.range().isWithin(range);
        } else if (type instanceof DecimalType decimal) {
            int digits = decimal.precision() - decimal.scale();
            exact = from instanceof DecimalType old
                    ? digits >= old.precision() - old.scale() && decimal.scale() >= old.scale()
                    : DIGITS.containsKey(from) && digits >= DIGITS.get(from);
        } else {
            // A long is rounded to the nearest double by all.
            exact = type.equals(DataTypes.DoubleType)
                    && (term.range() != null || from.equals(DataTypes.FloatType))
                    || type.equals(DataTypes.DateType) && from.equals(DataTypes.TimestampNTZType);
        }
        if (!exact) {
            throw new Untranslatable("a cast from " + from.sql() + " to " + type.sql());
        }
        return Term.of(dialect.cast(term, type), type, range == null ? null : term.range());
    }

    /** A sum, difference or product that cannot overflow. */
    static Term arithmetic(Dialect dialect, String operator, Term left, Term right)
            throws Untranslatable {
        String sql = "(" + dialect.operand(left) + " " + operator + " " + dialect.operand(right)
                + ")";
        if (left.type() instanceof DecimalType a && right.type() instanceof DecimalType b) {
            DecimalType type = decimal(operator, a, b);
            // Refuses digits that the database would round away.
            dialect.typeName(type);
            return Term.of(sql, type);
        } else if (left.range() == null || !left.type().equals(right.type())) {
            throw new Untranslatable(operator + " of " + left.type().sql());
        }
        try {
            Range range = left.range().apply(operator, right.range());
            if (range.isWithin(Range.of(left.type()))) {
                return Term.of(sql, left.type(), range);
            }
        } catch (ArithmeticException beyond) {
            // It is said below.
        }
        throw new Untranslatable(operator + " may overflow");
    }

    /** The type of a sum, difference or product, which has all its digits. */
    private static DecimalType decimal(String operator, DecimalType a, DecimalType b)
            throws Untranslatable {
        int scale;
        int precision;
        if (operator.equals("*")) {
            scale = a.scale() + b.scale();
            precision = a.precision() + b.precision() + 1;
        } else {
            scale = Math.max(a.scale(), b.scale());
            precision = Math.max(a.precision() - a.scale(), b.precision() - b.scale()) + scale + 1;
        }
        if (precision > DecimalType.MAX_PRECISION()) {
            throw new Untranslatable(operator + " may have more than 38 digits");
        }
        return DataTypes.createDecimalType(precision, scale);
    }

    static Term negative(Dialect dialect, Term term) throws Untranslatable {
        if (term.type() instanceof DecimalType) {
            return Term.of("(- " + dialect.operand(term) + ")", term.type());
        }
        throw new Untranslatable("- may overflow");
    }
}
