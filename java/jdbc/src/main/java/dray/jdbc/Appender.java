package dray.jdbc;

import java.sql.ResultSet;
import java.sql.SQLException;
import org.apache.arrow.vector.FieldVector;

/** Appends the values of one column to its vector. */
@FunctionalInterface
interface Appender {
    /** Cells of texts and bytes may be as large as this; a row has several. */
    int CELL_BYTES_MAX = 64 << 20;

    /**
     * Appends the value of the result's current row.
     *
     * @param column counted from 1
     * @param at where in the vector
     * @return how many bytes it takes, about
     */
    long append(ResultSet rows, int column, int at) throws SQLException, Failure;

    /** Makes the appender of a vector. */
    @FunctionalInterface
    interface Maker {
        Appender make(FieldVector vector);
    }

    /** Of a column that has no other values than NULL. */
    static Appender ofNulls(FieldVector vector) {
        return (rows, column, at) -> {
            if (rows.getObject(column) != null) {
                throw Failure.ofColumn(vector.getName(), "the driver tells no type, but it has"
                        + " a value", "cast the column to the type that it has");
            }
            return 0;
        };
    }
}
