package dray.spark.pushdown;

import org.apache.spark.sql.types.DataType;

/**
 * An expression as SQL. The text is one operand: it needs no parentheses.
 *
 * @param sql    the text
 * @param type   Spark's type of the value
 * @param column the column, if the expression is one and nothing else; or null
 * @param value  the value in Spark's internal form, if the expression is a literal that is not
 *               NULL; or null
 * @param range  the values that an integer can have; null for other types
 */
public record Term(String sql, DataType type, SourceColumn column, Object value, Range range) {
    static Term column(String sql, SourceColumn column) {
        return new Term(sql, column.type(), column, null, Range.of(column.type()));
    }

    static Term literal(String sql, Object value, DataType type) {
        boolean integer = Range.of(type) != null && value != null;
        Range range = integer ? Range.of(((Number) value).longValue()) : Range.of(type);
        return new Term(sql, type, null, value, range);
    }

    static Term of(String sql, DataType type) {
        return new Term(sql, type, null, null, Range.of(type));
    }

    static Term of(String sql, DataType type, Range range) {
        return new Term(sql, type, null, null, range);
    }

    boolean isLiteral() {
        return value != null;
    }
}
