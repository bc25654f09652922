package dray.spark.pushdown;

import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * A column of what is read, as far as it is known.
 *
 * @param name       the name, in the database and in Spark
 * @param type       Spark's type of the column
 * @param sourceType the database's name of its type, in lower case: of PostgreSQL without length
 *                   or precision ({@code character}), of MySQL with it ({@code varchar(20)}); of
 *                   Dray's engine Arrow's type. Null if it is not known: then less is translated
 * @param collation  of PostgreSQL the name of a collation under which strings are equal only if
 *                   their bytes are, of MySQL that of any. Null if there is none, or if it is not
 *                   known
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

    /**
     * The columns of a schema.
     *
     * @param schema Spark's types
     * @param rows   the result of {@link Dialect#describe} as text: for some of the columns the
     *               number from 1, source type and collation. What comes twice is not known:
     *               the database may have taken another table's column for this one
     */
    public static List<SourceColumn> list(StructType schema, String[][] rows) {
        SourceColumn[] columns = new SourceColumn[schema.length()];
        for (int i = 0; i < columns.length; i++) {
            columns[i] = new SourceColumn(schema.apply(i).name(), schema.apply(i).dataType());
        }
        Set<Integer> told = new HashSet<>();
        for (String[] row : rows) {
            int i = Integer.parseInt(row[0]) - 1;
            columns[i] = told.add(i)
                    ? new SourceColumn(columns[i].name, columns[i].type, row[1], row[2])
                    : new SourceColumn(columns[i].name, columns[i].type);
        }
        return List.of(columns);
    }

    /** The same column under another name. */
    SourceColumn as(String alias) {
        return new SourceColumn(alias, type, sourceType, collation);
    }
}
