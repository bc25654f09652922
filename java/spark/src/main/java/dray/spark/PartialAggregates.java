package dray.spark;

import dray.spark.pushdown.Aggregates;
import java.util.Optional;
import java.util.function.IntSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkContext;

/**
 * Aggregates that each part of a scan computes of its own rows, and Spark of theirs.
 *
 * @param read what the parts read
 * @param sums the columns that Spark adds up
 */
record PartialAggregates(Description read, PartialSums sums) {
    /** What a part of a table has, if the options don't say how many parts there are. */
    private static final long PART_BYTES = 64 << 20;
    /** The least that a part has: crates/client/src/source/postgres/planner.rs. */
    private static final long PART_BYTES_MIN = 1 << 20;
    /** Of smaller tables, one statement has its result sooner than tasks have begun. */
    private static final long TABLE_BYTES_MIN = 2 * PART_BYTES;
    /** Parts that have almost as many groups as rows only make the server work in vain. */
    private static final int ROWS_PER_GROUP_MIN = 4;
    private static final Pattern WORKERS = Pattern.compile("Workers Planned: ([0-9]+)");

    /**
     * Whether parts should aggregate. That is never wrong: what can't be divided is one part, with
     * the statement's result.
     *
     * @param table      all of the table or query
     * @param statement  what is aggregated
     * @param aggregates how
     * @param whole      the result, if one statement aggregates
     */
    static Optional<PartialAggregates> decide(DrayOptions options, Description table,
            Statement statement, Aggregates aggregates, Description whole) {
        if (!aggregates.partial() || !options.isPostgreSql()
                || options.aggregation() == DrayOptions.Aggregation.WHOLE) {
            return Optional.empty();
        }
        boolean parts = options.aggregation() == DrayOptions.Aggregation.PARTS;
        if (!parts && (table.bytes() < TABLE_BYTES_MIN || parts(options, table) < 2)) {
            return Optional.empty();
        }
        Description read = Description.of(options, statement.sql());
        if (!parts && !isWorthIt(parts(options, table), read, whole,
                () -> processes(options, statement, aggregates))) {
            return Optional.empty();
        }
        return Optional.of(new PartialAggregates(read, PartialSums.of(aggregates)));
    }

    /** The same, of aggregates that Spark asks for in place of averages. */
    PartialAggregates of(Aggregates aggregates) {
        return new PartialAggregates(read, PartialSums.of(aggregates));
    }

    /** How many parts the table will have, about. */
    private static long parts(DrayOptions options, Description table) {
        int most = options.atMost();
        if (options.bytesPerPartition().isPresent()) {
            long parts = table.bytes() / options.bytesPerPartition().getAsLong();
            return Math.min(Math.min(parts, table.bytes() / PART_BYTES_MIN),
                    most == 0 ? DrayOptions.PARTS_MAX : most);
        }
        return most == 0 ? table.bytes() / PART_BYTES
                : Math.min(most, table.bytes() / PART_BYTES_MIN);
    }

    /** Whether fewer rows travel, and more processes work at a time than the server would use. */
    private static boolean isWorthIt(long parts, Description read, Description whole, IntSupplier processes) {
        if (read.rows() < 0 || whole.rows() < 0
                || whole.rows() > read.rows() / parts / ROWS_PER_GROUP_MIN) {
            return false;
        }
        long tasks = Math.min(parts, SparkContext.getOrCreate().defaultParallelism());
        return tasks > processes.getAsInt();
    }

    /** How many processes the server would aggregate with by itself. */
    private static int processes(DrayOptions options, Statement statement, Aggregates aggregates) {
        String sql = statement.withSelect(aggregates.select()).withGroupBy(aggregates.groupBy())
                .sql();
        int processes = 1;
        for (String[] row : Rows.read(options, "EXPLAIN " + sql)) {
            Matcher workers = WORKERS.matcher(String.valueOf(row[0]));
            if (workers.find()) {
                processes = Math.max(processes, Integer.parseInt(workers.group(1)) + 1);
            }
        }
        return processes;
    }
}
