package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/**
 * Dray's own engine over files, which is DataFusion. Its strings compare by bytes. Its floats
 * compare by IEEE 754's total order, in which -0 is less than 0, and a NaN may be less than all
 * else.
 */
public final class DataFusion implements Dialect {
    /** The years that all fit a timestamp of nanoseconds, which a file may have. */
    private static final int FIRST_YEAR = 1678;
    private static final int LAST_YEAR = 2261;
    /** The engine's time to tell the types grows faster than their number. */
    private static final int DESCRIBED_MAX = 2000;

    @Override
    public String identifier(String name) {
        return '"' + name.replace("\"", "\"\"") + '"';
    }

    @Override
    public Optional<String> describe(String from, List<String> names) {
        if (names.size() > DESCRIBED_MAX) {
            return Optional.empty();
        }
        var numbers = new ArrayList<String>();
        var types = new ArrayList<String>();
        for (String name : names) {
            numbers.add(String.valueOf(numbers.size() + 1));
            types.add("arrow_typeof(q." + identifier(name) + ")");
        }
        return Optional.of("SELECT unnest(make_array(" + String.join(", ", numbers) + ")) AS n,"
                + " unnest(make_array(" + String.join(", ", types) + ")) AS t,"
                + " CAST(NULL AS VARCHAR) AS c FROM (SELECT 1) AS one"
                + " LEFT JOIN (SELECT * FROM " + from + ") AS q ON false");
    }

    @Override
    public String column(SourceColumn column) throws Untranslatable {
        String name = identifier(column.name());
        String source = column.sourceType() == null ? "" : column.sourceType();
        DataType type = column.type();
        if (type.equals(DataTypes.StringType) && !source.contains("Utf8")
                || type.equals(DataTypes.BinaryType) && !source.contains("Binary")
                || isTime(type) && !source.contains("Microsecond")) {
            // A UUID is a string in Spark, and other times may have more digits.
            throw new Untranslatable("column " + name + " of type " + source);
        } else if (type instanceof DecimalType) {
            // It may be an unsigned integer.
            return "CAST(" + name + " AS " + typeName(type) + ")";
        }
        return name;
    }

    private static boolean isTime(DataType type) {
        return type.equals(DataTypes.TimestampType) || type.equals(DataTypes.TimestampNTZType);
    }

    @Override
    public String literal(Object value, DataType type) throws Untranslatable {
        if (isTime(type) && value != null) {
            String zone = type.equals(DataTypes.TimestampType) ? "Some(\"UTC\")" : "None";
            return "arrow_cast('" + Values.time(value, FIRST_YEAR, LAST_YEAR)
                    + "', 'Timestamp(Microsecond, " + zone + ")')";
        }
        String name = typeName(type);
        if (value == null) {
            return "CAST(NULL AS " + name + ")";
        } else if (type.equals(DataTypes.StringType)) {
            String text = Values.text(value);
            if (text.indexOf('\0') >= 0) {
                throw new Untranslatable("a byte 0 in a string");
            }
            return "'" + text.replace("'", "''") + "'";
        } else if (type.equals(DataTypes.BinaryType)) {
            return "X'" + Values.hex((byte[]) value) + "'";
        } else if (type.equals(DataTypes.DateType)) {
            return "CAST('" + Values.date(value) + "' AS DATE)";
        } else if (type.equals(DataTypes.BooleanType)) {
            return value.toString();
        } else if (type instanceof DecimalType) {
            return "CAST('" + Values.decimal(value) + "' AS " + name + ")";
        }
        return "CAST('" + number(value) + "' AS " + name + ")";
    }

    private static String number(Object value) {
        String text = value.toString();
        return text.replace("Infinity", "inf");
    }

    @Override
    public String typeName(DataType type) throws Untranslatable {
        if (type instanceof DecimalType decimal) {
            return Dialect.decimalName("DECIMAL", decimal);
        }
        return switch (type.typeName()) {
            case "boolean" -> "BOOLEAN";
            case "byte" -> "TINYINT";
            case "short" -> "SMALLINT";
            case "integer" -> "INT";
            case "long" -> "BIGINT";
            case "float" -> "REAL";
            case "double" -> "DOUBLE";
            case "string" -> "VARCHAR";
            case "binary" -> "BYTEA";
            case "date" -> "DATE";
            default -> throw new Untranslatable("type " + type.typeName());
        };
    }

    @Override
    public String key(Term term) throws Untranslatable {
        if (term.type().equals(DataTypes.FloatType) || term.type().equals(DataTypes.DoubleType)) {
            String name = typeName(term.type());
            // One zero, since -0 + 0 is 0, and one NaN, which is the greatest.
            return "nanvl(" + term.sql() + " + CAST(0 AS " + name + "), CAST('NaN' AS " + name
                    + "))";
        }
        return term.sql();
    }

    @Override
    public String has(Place place, Term string, Term literal) {
        String function = switch (place) {
            case START -> "starts_with";
            case END -> "ends_with";
            case ANYWHERE -> "contains";
        };
        return function + "(" + string.sql() + ", " + literal.sql() + ")";
    }

    @Override
    public String extract(String field, Term date) {
        return "date_part('" + field.toLowerCase(Locale.ROOT) + "', " + date.sql() + ")";
    }

    @Override
    public String extreme(String function, Term term) throws Untranslatable {
        if (term.type().equals(DataTypes.FloatType) || term.type().equals(DataTypes.DoubleType)) {
            throw new Untranslatable("the least and the greatest of floats that may be NaN");
        }
        return function + "(" + key(term) + ")";
    }

    @Override
    public String average(Term term, DataType type) throws Untranslatable {
        throw new Untranslatable("averages are rounded in another way");
    }
}
