package dray.spark.pushdown;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/**
 * MySQL and MariaDB, in a session with the time zone {@code +00:00}. Strings compare by bytes only
 * as {@code BINARY}, which no index knows; so the column's own comparison, which is coarser, stands
 * beside it where its type is known.
 */
public final class MySql implements Dialect {
    private static final Pattern TEXT = Pattern.compile(
            "(char|varchar|tinytext|text|mediumtext|longtext)(\\((\\d+)\\))?.*");
    /** {@code max_sort_length} bytes of strings are sorted: so many characters always fit. */
    private static final int SORTED_CHARACTERS_MAX = 255;
    private static final int SCALE_MAX = 30;
    private static final String NAME = "(`(?:[^`]|``)+`|[0-9A-Za-z_$]+)";
    private static final Pattern TABLE = Pattern.compile("(?:" + NAME + "\\.)?" + NAME);

    @Override
    public String identifier(String name) {
        return '`' + name.replace("`", "``") + '`';
    }

    /** Only of a table, which may be {@code schema.table}. */
    @Override
    public Optional<String> describe(String from, List<String> names) {
        Matcher table = TABLE.matcher(from);
        if (!table.matches()) {
            return Optional.empty();
        }
        String schema = table.group(1) == null ? "database()" : string(unquoted(table.group(1)));
        // By bytes: names may differ in nothing but an accent.
        String all = String.join(", ", names.stream().map(name -> bytes(string(name))).toList());
        return Optional.of("SELECT field(" + bytes("column_name") + ", " + all + ") AS n,"
                + " column_type, collation_name FROM information_schema.columns"
                + " WHERE table_schema = " + schema + " AND table_name = "
                + string(unquoted(table.group(2))) + " HAVING n > 0 ORDER BY n");
    }

    private static String bytes(String string) {
        return "CAST(" + string + " AS BINARY)";
    }

    private static String unquoted(String name) {
        return name.startsWith("`")
                ? name.substring(1, name.length() - 1).replace("``", "`") : name;
    }

    @Override
    public String column(SourceColumn column) throws Untranslatable {
        String name = identifier(column.name());
        String source = column.sourceType();
        if (column.type().equals(DataTypes.StringType)) {
            return "CONVERT(" + name + " USING utf8mb4)";
        } else if (column.type().equals(DataTypes.BooleanType)) {
            throw new Untranslatable("a boolean may be any number");
        } else if (column.type().equals(DataTypes.ShortType)
                && (source == null || source.startsWith("year"))) {
            // A year is compared with 70 as if that were 1970.
            return "(" + name + " + 0)";
        }
        return name;
    }

    @Override
    public String isNull(SourceColumn column) {
        // IS NULL finds 0000-00-00, too, and with sql_auto_is_null the last number given.
        return "(" + identifier(column.name()) + " <=> NULL)";
    }

    @Override
    public String literal(Object value, DataType type) throws Untranslatable {
        if (value == null) {
            return "NULL";
        } else if (type.equals(DataTypes.StringType)) {
            return string(Values.text(value));
        } else if (type.equals(DataTypes.BinaryType)) {
            return "X'" + Values.hex((byte[]) value) + "'";
        } else if (type.equals(DataTypes.DateType)) {
            return "DATE '" + Values.date(value) + "'";
        } else if (type.equals(DataTypes.TimestampNTZType)
                || type.equals(DataTypes.TimestampType)) {
            return "TIMESTAMP '" + Values.time(value) + "'";
        } else if (type instanceof DecimalType decimal) {
            checkScale(decimal);
            return number(Values.decimal(value));
        } else if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            if (!Double.isFinite(number)) {
                throw new Untranslatable("MySQL has no " + number);
            }
            String text = Double.toString(number);
            return number(text.contains("E") ? text : text + "E0");
        }
        return number(value.toString());
    }

    private static String number(String text) {
        return text.startsWith("-") ? "(" + text + ")" : text;
    }

    /** A string under any {@code sql_mode} and any character set of the connection. */
    private static String string(String text) {
        boolean plain = text.chars().allMatch(c -> c >= ' ' && c <= '~' && c != '\'' && c != '\\');
        return "_utf8mb4 " + (plain ? "'" + text + "'"
                : "X'" + Values.hex(text.getBytes(StandardCharsets.UTF_8)) + "'");
    }

    @Override
    public String typeName(DataType type) throws Untranslatable {
        if (type instanceof DecimalType decimal) {
            checkScale(decimal);
            return Dialect.decimalName("DECIMAL", decimal);
        }
        return switch (type.typeName()) {
            case "byte", "short", "integer", "long" -> "SIGNED";
            case "date" -> "DATE";
            default -> throw new Untranslatable("a cast to " + type.typeName());
        };
    }

    private static void checkScale(DecimalType type) throws Untranslatable {
        if (type.scale() > SCALE_MAX) {
            throw new Untranslatable("MySQL has " + SCALE_MAX + " digits after the point");
        }
    }

    @Override
    public String key(Term term) {
        return term.type().equals(DataTypes.StringType)
                ? bytes(term.sql()) : term.sql();
    }

    @Override
    public String compare(String operator, Term left, Term right) throws Untranslatable {
        if (operator.equals("=") && left.isLiteral() && !right.isLiteral()) {
            return compare(operator, right, left);
        }
        String exact = Dialect.super.compare(operator, left, right);
        if (operator.equals("=") && right.isLiteral() && knows(left, List.of(right))) {
            String coarse = identifier(left.column().name()) + " = " + right.sql();
            return "(" + coarse + " AND " + exact + ")";
        }
        return exact;
    }

    /**
     * Whether a column's own comparison takes strings of the same bytes for equal, and literals for
     * strings of its character set.
     */
    private static boolean knows(Term column, List<Term> literals) throws Untranslatable {
        if (text(column) == null) {
            return false;
        }
        String collation = column.column().collation();
        if (collation != null && collation.startsWith("utf8mb4")) {
            return true;
        }
        for (Term literal : literals) {
            if (literal.isLiteral() && !isAscii(Values.text(literal.value()))) {
                return false;
            }
        }
        return true;
    }

    private static boolean isAscii(String text) {
        return text.chars().allMatch(c -> c < 0x80);
    }

    private static Matcher text(Term term) {
        if (term.column() == null || term.column().sourceType() == null
                || !term.type().equals(DataTypes.StringType)) {
            return null;
        }
        Matcher matcher = TEXT.matcher(term.column().sourceType());
        return matcher.matches() ? matcher : null;
    }

    @Override
    public String in(Term value, List<Term> list) throws Untranslatable {
        String exact = Dialect.super.in(value, list);
        if (knows(value, list)) {
            String literals = String.join(", ", list.stream().map(Term::sql).toList());
            String coarse = identifier(value.column().name()) + " IN (" + literals + ")";
            return "(" + coarse + " AND " + exact + ")";
        }
        return exact;
    }

    @Override
    public String nullSafeEqual(Term left, Term right) {
        return "(" + key(left) + " <=> " + key(right) + ")";
    }

    @Override
    public String has(Place place, Term string, Term literal) throws Untranslatable {
        String pattern = string(place.pattern(Values.text(literal.value())));
        String exact = key(string) + " LIKE " + bytes(pattern) + " ESCAPE '!'";
        if (place == Place.START && knows(string, List.of(literal))) {
            String column = identifier(string.column().name());
            return "(" + column + " LIKE " + pattern + " ESCAPE '!' AND " + exact + ")";
        }
        return "(" + exact + ")";
    }

    @Override
    public String cast(Term term, DataType type) throws Untranslatable {
        if (type.equals(DataTypes.DoubleType)) {
            return "(" + term.sql() + " + 0E0)";
        } else if (term.type().equals(DataTypes.TimestampNTZType)) {
            throw new Untranslatable("MySQL rounds a time to a date");
        }
        return Dialect.super.cast(term, type);
    }

    @Override
    public String extract(String field, Term date) {
        return field + "(" + date.sql() + ")";
    }

    @Override
    public void checkGrouping(Term term) throws Untranslatable {
        Dialect.super.checkGrouping(term);
        checkSorting(term);
    }

    /** Only a string's first bytes are sorted, so it must be short. */
    private static void checkSorting(Term term) throws Untranslatable {
        boolean bytes = term.type().equals(DataTypes.StringType)
                || term.type().equals(DataTypes.BinaryType);
        Matcher text = text(term);
        if (bytes && (text == null || text.group(3) == null || text.group(3).length() > 3
                || Integer.parseInt(text.group(3)) > SORTED_CHARACTERS_MAX)) {
            throw new Untranslatable("the string may be too long to be sorted");
        }
    }

    @Override
    public String groupValue(Term term) throws Untranslatable {
        // All of a group are the same, and MIN is allowed by any sql_mode.
        return term.type().equals(DataTypes.StringType) ? extreme("min", term) : term.sql();
    }

    @Override
    public String extreme(String function, Term term) {
        String extreme = function + "(" + key(term) + ")";
        return term.type().equals(DataTypes.StringType)
                ? "CONVERT(" + extreme + " USING utf8mb4)" : extreme;
    }

    @Override
    public String average(Term term, DataType type) throws Untranslatable {
        throw new Untranslatable("MySQL's averages have other digits");
    }

    @Override
    public String order(Term term, boolean descending, boolean nullsFirst) throws Untranslatable {
        checkSorting(term);
        String key = key(term);
        String order = key + (descending ? " DESC" : " ASC");
        // NULL is less than all else. But MySQL 8.0 takes NULL for an empty string, if it is cast.
        boolean natural = nullsFirst == !descending && !term.type().equals(DataTypes.StringType);
        return natural ? order
                : "(" + key + " <=> NULL)" + (nullsFirst ? " DESC, " : " ASC, ") + order;
    }

    @Override
    public String offset(long offset) {
        return limit(Long.MAX_VALUE, offset);
    }
}
