package dray.spark;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * What a database has told of columns, by which statements that are pushed down mean what Spark
 * does: their types and collations.
 *
 * @param sql  the question
 * @param rows the answer
 */
record Facts(String sql, List<List<String>> rows) {
    static Facts of(String sql, String[][] rows) {
        return new Facts(sql, Stream.of(rows).map(Arrays::asList).toList());
    }

    /** Fails if the database tells something else now. */
    void check(DrayOptions options) {
        if (!of(sql, Rows.read(options, sql)).equals(this)) {
            throw new DrayException("the types or collations of columns are not those by which the"
                    + " statement was planned (load the table anew)");
        }
    }
}
