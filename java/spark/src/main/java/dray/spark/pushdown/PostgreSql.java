package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/**
 * PostgreSQL. Its floats compare as Spark's do: NaN is equal to NaN and greater than all else.
 * Strings compare by bytes only under the collation {@code "C"}, and only if the database is UTF-8;
 * {@link #describe} tells no types of strings otherwise.
 */
public final class PostgreSql implements Dialect {
    @Override
    public Optional<String> describe(String from, List<String> names) {
        var rows = new ArrayList<String>();
        for (String name : names) {
            String column = "q." + identifier(name);
            String type = "pg_typeof(" + column + ")";
            // Other types have no collation, and the function fails.
            rows.add("(" + (rows.size() + 1) + ", " + type + ", CASE WHEN " + type
                    + " IN ('text'::regtype, 'varchar'::regtype) THEN pg_collation_for(" + column
                    + ") END)");
        }
        return Optional.of("SELECT d.n, format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype"
                + " ELSE t.oid END, NULL), k.name FROM (SELECT 1) AS one"
                + " LEFT JOIN (SELECT * FROM " + from + ") AS q ON false"
                + " CROSS JOIN LATERAL (VALUES " + String.join(", ", rows) + ") AS d(n, t, c)"
                + " JOIN pg_type AS t ON t.oid = d.t"
                + " LEFT JOIN LATERAL (SELECT d.c AS name FROM pg_collation AS k"
                + " WHERE k.oid = to_regcollation(d.c) AND k.collisdeterministic) AS k ON true"
                + " WHERE t.typcategory <> 'S' OR current_setting('server_encoding') = 'UTF8'"
                + " ORDER BY d.n");
    }

    @Override
    public String identifier(String name) {
        return '"' + name.replace("\"", "\"\"") + '"';
    }

    @Override
    public String column(SourceColumn column) throws Untranslatable {
        String name = identifier(column.name());
        String source = column.sourceType() == null ? "" : column.sourceType();
        DataType type = column.type();
        if (type.equals(DataTypes.StringType)) {
            return switch (source) {
                case "text", "character varying" -> name;
                case "name", "citext" -> name + "::text";
                // A cast would drop the trailing blanks that Spark has.
                case "character" -> "textin(bpcharout(" + name + "))";
                default -> throw unknown(column);
            };
        }
        boolean same = source.equals(typeName(type))
                || type instanceof DecimalType && source.equals("numeric")
                // No other type of PostgreSQL becomes one of these.
                || source.isEmpty() && (type.equals(DataTypes.BooleanType)
                        || type.equals(DataTypes.ShortType) || type.equals(DataTypes.IntegerType)
                        || type.equals(DataTypes.DateType) || type.equals(DataTypes.TimestampType)
                        || type.equals(DataTypes.TimestampNTZType));
        if (!same) {
            throw unknown(column);
        }
        return name;
    }

    private static Untranslatable unknown(SourceColumn column) {
        return new Untranslatable("column " + column.name() + " of type " + column.sourceType());
    }

    @Override
    public String isNull(SourceColumn column) {
        String name = identifier(column.name());
        try {
            column(column);
            return "(" + name + " IS NULL)";
        } catch (Untranslatable other) {
            // It may be a row, and a row of NULLs IS NULL. Scans with this function are divided.
            return "(num_nulls(" + name + ") = 1)";
        }
    }

    @Override
    public String literal(Object value, DataType type) throws Untranslatable {
        String name = typeName(type);
        if (value == null) {
            return "NULL::" + name;
        } else if (type.equals(DataTypes.StringType)) {
            return string(Values.text(value)) + "::text";
        } else if (type.equals(DataTypes.BinaryType)) {
            return "decode('" + Values.hex((byte[]) value) + "', 'hex')";
        } else if (type.equals(DataTypes.DateType)) {
            return "DATE '" + Values.date(value) + "'";
        } else if (type.equals(DataTypes.TimestampNTZType)) {
            return "TIMESTAMP '" + Values.time(value) + "'";
        } else if (type.equals(DataTypes.TimestampType)) {
            return "TIMESTAMPTZ '" + Values.time(value) + "+00'";
        } else if (type instanceof DecimalType) {
            return "'" + Values.decimal(value) + "'::" + name;
        }
        // Booleans, integers, and floats, also NaN and Infinity.
        return "'" + value + "'::" + name;
    }

    /** A string under any setting of {@code standard_conforming_strings}. */
    private static String string(String text) throws Untranslatable {
        if (text.indexOf('\0') >= 0) {
            throw new Untranslatable("a byte 0 in a string");
        }
        String quoted = "'" + text.replace("\\", "\\\\").replace("'", "''") + "'";
        return text.indexOf('\\') < 0 ? quoted : "E" + quoted;
    }

    @Override
    public String typeName(DataType type) throws Untranslatable {
        if (type instanceof DecimalType decimal) {
            return Dialect.decimalName("numeric", decimal);
        }
        return switch (type.typeName()) {
            case "boolean" -> "boolean";
            case "byte", "short" -> "smallint";
            case "integer" -> "integer";
            case "long" -> "bigint";
            case "float" -> "real";
            case "double" -> "double precision";
            case "string" -> "text";
            case "binary" -> "bytea";
            case "date" -> "date";
            case "timestamp_ntz" -> "timestamp without time zone";
            case "timestamp" -> "timestamp with time zone";
            default -> throw new Untranslatable("type " + type.typeName());
        };
    }

    @Override
    public String key(Term term) {
        return term.type().equals(DataTypes.StringType)
                ? "(" + term.sql() + " COLLATE \"C\")" : term.sql();
    }

    /** Whether the column's own collation finds strings equal only if they are, by an index. */
    private static boolean isPlain(Term term) {
        return term.column() != null && term.type().equals(DataTypes.StringType)
                && term.column().collation() != null && term.column().sourceType() != null
                && (term.column().sourceType().equals("text")
                        || term.column().sourceType().equals("character varying"));
    }

    @Override
    public String groupValue(Term term) throws Untranslatable {
        // An expression's numeric has no precision.
        return term.type() instanceof DecimalType && term.column() == null
                ? result(key(term), term.type()) : key(term);
    }

    @Override
    public String compare(String operator, Term left, Term right) throws Untranslatable {
        if (operator.equals("=") && left.isLiteral() && !right.isLiteral()) {
            return compare(operator, right, left);
        }
        boolean equality = operator.equals("=") || operator.equals("<>");
        if (equality && isPlain(left) && right.isLiteral()) {
            return "(" + left.sql() + " " + operator + " " + right.sql() + ")";
        } else if (equality && isPlain(right) && left.isLiteral()) {
            return compare(operator, right, left);
        }
        String exact = Dialect.super.compare(operator, left, right);
        boolean literal = operator.equals("=") && right.isLiteral();
        String coarse = literal ? coarse(left, List.of(right)) : null;
        return coarse == null ? exact : "(" + coarse + " AND " + exact + ")";
    }

    /** A condition that equality implies, and that the column's own index can find; or null. */
    private String coarse(Term column, List<Term> literals) throws Untranslatable {
        if (column.column() == null || !column.type().equals(DataTypes.StringType)) {
            return null;
        }
        String type = switch (column.column().sourceType()) {
            case "citext" -> "";
            case "character" -> "::bpchar";
            default -> "::text";
        };
        var texts = new ArrayList<String>();
        for (Term literal : literals) {
            texts.add(literal.isLiteral() ? string(Values.text(literal.value())) + type : "NULL");
        }
        return identifier(column.column().name()) + " IN (" + String.join(", ", texts) + ")";
    }

    @Override
    public String in(Term value, List<Term> list) throws Untranslatable {
        if (isPlain(value)) {
            String literals = String.join(", ", list.stream().map(Term::sql).toList());
            return "(" + value.sql() + " IN (" + literals + "))";
        }
        String exact = Dialect.super.in(value, list);
        String coarse = coarse(value, list);
        return coarse == null ? exact : "(" + coarse + " AND " + exact + ")";
    }

    @Override
    public String has(Place place, Term string, Term literal) throws Untranslatable {
        // A scan keeps its parts with any literal that is cast to text.
        String pattern = string(place.pattern(Values.text(literal.value()))) + "::text";
        String text = isPlain(string) ? string.sql() : key(string);
        return "(" + text + " LIKE " + pattern + " ESCAPE '!')";
    }

    /** No numbers are unsigned. */
    @Override
    public String operand(Term term) throws Untranslatable {
        return term.column() == null ? term.sql() : cast(term, term.type());
    }

    @Override
    public String extract(String field, Term date) {
        String number = "extract(" + field + " FROM " + date.sql() + ")";
        // There is no year 0: -1 comes before 1.
        return field.equals("YEAR")
                ? "(" + number + " + (" + date.sql() + " < DATE '0001-01-01')::integer)::integer"
                : number + "::integer";
    }

    @Override
    public String average(Term term, DataType type) throws Untranslatable {
        if (type instanceof DecimalType decimal) {
            // The quotient has enough digits for its rounding to be that of the exact one.
            String sum = "sum(" + term.sql() + ")::numeric(80, 50)";
            return result("round(" + sum + " / count(" + term.sql() + "), " + decimal.scale() + ")",
                    type);
        }
        return "(sum(" + term.sql() + ")::double precision / count(" + term.sql() + "))";
    }
}
