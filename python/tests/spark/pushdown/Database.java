package dray.spark.pushdown;

import java.sql.SQLException;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;

/** A real database with the table {@code t} of {@link NastyTable}. */
interface Database extends AutoCloseable {
    String name();

    Dialect dialect();

    /** The table's columns, with what the database tells of them. */
    List<SourceColumn> columns();

    /** The rows of a statement, whose columns are those of the schema. */
    List<Row> rows(String sql, StructType schema) throws Exception;

    @Override
    void close() throws SQLException;
}
