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
    /** The columns of the answer of PostgreSQL. */
    private static final int COLUMNS = 3;
    /** How long the question waits for a table. */
    private static final String PATIENCE = "1s";

    static Facts of(String sql, String[][] rows) {
        return new Facts(sql, Stream.of(rows).map(Arrays::asList).toList());
    }

    /** Fails if the database tells something else now. */
    void check(DrayOptions options) {
        if (!now(options).equals(this)) {
            throw new DrayException("the types or collations of columns are not those by which the"
                    + " statement was planned (load the table anew)");
        }
    }

    /**
     * The answer, with what has locked the tables of PostgreSQL still open. Behind an ALTER that
     * waits for it, the question would wait, too.
     */
    private Facts now(DrayOptions options) {
        if (!options.isPostgreSql()) {
            return of(sql, Rows.read(options, sql));
        }
        try (Session session = new Session(options)) {
            session.run("BEGIN READ ONLY; SET LOCAL lock_timeout = '" + PATIENCE + "'");
            return new Facts(sql, session.ask(COLUMNS, sql));
        } catch (DrayException failure) {
            if (failure.sqlState().equals(PostgresWrites.LOCK_NOT_AVAILABLE)) {
                throw new DrayException(failure, "somebody waits to alter a table of this"
                        + " statement: run it again");
            }
            throw failure;
        }
    }
}
