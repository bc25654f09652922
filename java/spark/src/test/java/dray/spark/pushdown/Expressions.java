package dray.spark.pushdown;

import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Expressions as Spark makes them, in few words. */
final class Expressions {
    private Expressions() { }

    static Expression column(String name) {
        return FieldReference.column(name);
    }

    static Expression literal(Object value, DataType type) {
        return new LiteralValue<>(value, type);
    }

    static Expression text(String value) {
        return literal(value, DataTypes.StringType);
    }

    static Expression number(int value) {
        return literal(value, DataTypes.IntegerType);
    }

    static Predicate predicate(String name, Expression... children) {
        return new Predicate(name, children);
    }
}
