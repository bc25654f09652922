package dray.spark.pushdown;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/** Conditions in Spark's SQL, by chance. */
final class RandomPredicates {
    private static final String[] COMPARISONS = {"=", "<>", "<", "<=", ">", ">=", "<=>"};

    private final List<NastyTable.Column> columns;
    private final Random random;

    RandomPredicates(List<NastyTable.Column> columns, Random random) {
        this.columns = columns;
        this.random = random;
    }

    String next() {
        return condition(random.nextInt(4));
    }

    private String condition(int depth) {
        if (depth > 0) {
            return switch (random.nextInt(7)) {
                case 0, 1 -> "(" + condition(depth - 1) + " AND " + condition(depth - 1) + ")";
                case 2, 3 -> "(" + condition(depth - 1) + " OR " + condition(depth - 1) + ")";
                case 4 -> "(NOT " + condition(depth - 1) + ")";
                case 5 -> "((" + condition(depth - 1) + ") IS NULL)";
                default -> "(CASE WHEN " + condition(depth - 1) + " THEN " + condition(0) + " ELSE "
                        + condition(depth - 1) + " END)";
            };
        }
        NastyTable.Column column = columns.get(random.nextInt(columns.size()));
        DataType type = column.type();
        String value = value(column);
        switch (random.nextInt(8)) {
            case 0:
                return "(" + value + (random.nextBoolean() ? " IS NULL)" : " IS NOT NULL)");
            case 1: {
                var list = new ArrayList<String>();
                int count = random.nextInt(1, 15);
                for (int i = 0; i < count; i++) {
                    list.add(random.nextInt(20) == 0 ? "NULL" : literal(type));
                }
                return "(" + value + (random.nextBoolean() ? " NOT" : "") + " IN ("
                        + String.join(", ", list) + "))";
            }
            case 2:
                return "(" + value + " BETWEEN " + literal(type) + " AND " + literal(type) + ")";
            case 3: {
                List<NastyTable.Column> same =
                        columns.stream().filter(other -> other.type().equals(type)).toList();
                return comparison(value, value(same.get(random.nextInt(same.size()))));
            }
            case 4, 5: {
                String special = special(column, value);
                if (special != null) {
                    return special;
                }
                break;
            }
            default:
                break;
        }
        return random.nextBoolean() ? comparison(value, literal(type))
                : comparison(literal(type), value);
    }

    /** A condition that only this type has; or null. */
    private String special(NastyTable.Column column, String value) {
        DataType type = column.type();
        if (type.equals(DataTypes.StringType)) {
            return text(value);
        } else if (type.equals(DataTypes.DateType)) {
            return "(" + pick("year", "month", "day") + "(" + value + ") "
                    + pick("=", "<", ">=") + " " + pick("1", "2", "29", "1582", "2024") + ")";
        } else if (type.equals(NastyTable.CENTS)) {
            return "(" + value + " * (1 - " + name("n") + ") - 0.5 " + pick("<", ">", "=")
                    + " " + literal(type) + ")";
        } else if (type.equals(NastyTable.UNSIGNED)) {
            return "((CASE WHEN " + name("id") + " > 9 THEN " + value + " ELSE 1BD END) - 5BD "
                    + pick("<", ">=") + " 0BD)";
        } else if (type.equals(DataTypes.IntegerType)) {
            return "(CAST(" + value + " AS BIGINT) * 2 + 1 > " + pick("-1L", "3L", "201L")
                    + ")";
        } else if (type.equals(DataTypes.TimestampNTZType)) {
            return "(CAST(" + value + " AS DATE) = DATE'1969-12-31')";
        }
        return null;
    }

    private String comparison(String left, String right) {
        return "(" + left + " " + pick(COMPARISONS) + " " + right + ")";
    }

    private String text(String value) {
        String part = string((String) pick(NastyTable.values(DataTypes.StringType)));
        return switch (random.nextInt(6)) {
            case 0 -> "startswith(" + value + ", " + part + ")";
            case 1 -> "endswith(" + value + ", " + part + ")";
            case 2 -> "contains(" + value + ", " + part + ")";
            case 3 -> "(char_length(" + value + ") " + pick("=", ">") + " " + pick("0", "1", "2")
                    + ")";
            case 4 -> "(substring(" + value + ", 1, 1) = " + part + ")";
            default -> "(" + value + " LIKE " + pick("'a%'", "'%b'", "'%😀%'", "'a\\\\_b'", "'_'",
                    "'%\\\\%%'") + ")";
        };
    }

    private String value(NastyTable.Column column) {
        String name = name(column.name());
        return random.nextInt(10) == 0 ? "coalesce(" + name + ", " + literal(column.type()) + ")"
                : name;
    }

    static String name(String name) {
        return "`" + name.replace("`", "``") + "`";
    }

    private String literal(DataType type) {
        Object[] values = NastyTable.values(type);
        return literal(pick(values), type);
    }

    @SafeVarargs
    private <T> T pick(T... values) {
        return values[random.nextInt(values.length)];
    }

    private static String literal(Object value, DataType type) {
        if (type instanceof DecimalType) {
            return ((BigDecimal) value).toPlainString() + "BD";
        }
        return switch (type.typeName()) {
            case "byte" -> value + "Y";
            case "short" -> value + "S";
            case "long" -> value + "L";
            case "float" -> "CAST('" + value + "' AS FLOAT)";
            case "double" -> "CAST('" + value + "' AS DOUBLE)";
            case "string" -> string((String) value);
            case "binary" -> "X'" + Values.hex((byte[]) value) + "'";
            case "date" -> "DATE'" + value + "'";
            case "timestamp" -> "TIMESTAMP'" + value + "'";
            case "timestamp_ntz" -> "TIMESTAMP_NTZ'" + value + "'";
            default -> value.toString();
        };
    }

    private static String string(String value) {
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'";
    }
}
