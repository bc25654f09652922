package dray.spark.pushdown;

import java.util.Objects;
import org.apache.spark.sql.types.DataType;

/**
 * A column of what is read, as far as it is known.
 *
 * @param name       the name, in the database and in Spark
 * @param type       Spark's type of the column
 * @param sourceType the database's name of its type, without length or precision, in lower case:
 *                   {@code character}, {@code varchar}; for Dray's engine Arrow's type. Null if it
 *                   is not known: then less is translated
 * @param collation  the name of a collation under which strings are equal only if their bytes are.
 *                   Null if there is none, or if it is not known
 */
public record SourceColumn(String name, DataType type, String sourceType, String collation) {
    public SourceColumn {
        Objects.requireNonNull(name);
        Objects.requireNonNull(type);
    }

    /** A column of which nothing else is known. */
    public SourceColumn(String name, DataType type) {
        this(name, type, null, null);
    }

    /** The same column under another name. */
    SourceColumn as(String alias) {
        return new SourceColumn(alias, type, sourceType, collation);
    }
}
