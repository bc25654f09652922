package dray.spark.pushdown;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;

/**
 * Compares what Spark itself selects with what real databases select by translated SQL.
 *
 * <pre>
 *  java … Semantics FOLDER SEED PREDICATES NAME=ADDRESS…
 *
 *  postgresql=JDBC-URI   mariadb=JDBC-URI   mysql=JDBC-URI   dray=PROGRAM
 * </pre>
 *
 * It exits with 1 and says what differs, if anything does.
 */
public final class Semantics {
    private static final int ROWS = 300;
    private static final int BATCH = 50;

    private final SparkSession spark;
    private final Database database;
    private final Dataset<Row> local;
    private final Random random;
    private final List<NastyTable.Column> columns;
    private final List<String> differences = new ArrayList<>();
    private int pushed;
    private int partly;
    private int planned;
    private int aggregated;
    private int ordered;
    private int joined;

    private Semantics(SparkSession spark, Database database, long seed) throws Exception {
        this.spark = spark;
        this.database = database;
        random = new Random(seed);
        columns = NastyTable.columns(database.name());
        StructType schema = NastyTable.schema(columns);
        List<String> names = columns.stream().map(NastyTable.Column::name).toList();
        List<Row> rows = database.rows(
                "SELECT " + database.dialect().identifiers(names) + " FROM t", schema);
        check(rows.size() == ROWS, rows.size() + " rows");
        local = spark.createDataFrame(rows, schema).coalesce(1).cache();
        local.createOrReplaceTempView("local");
        PushingSource.DATABASES.put(database.name(), database);
        remote().createOrReplaceTempView("remote");
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        long seed = Long.parseLong(arguments[1]);
        int predicates = Integer.parseInt(arguments[2]);
        SparkSession spark = SparkSession.builder().master("local[2]")
                .config("spark.ui.enabled", false)
                .config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.driver.host", "127.0.0.1")
                .config("spark.local.dir", folder.resolve("spark").toString())
                .config("spark.sql.warehouse.dir", folder.resolve("warehouse").toString())
                .config("spark.sql.shuffle.partitions", 1)
                .config("spark.sql.session.timeZone", "Europe/Berlin")
                .config("spark.sql.datetime.java8API.enabled", true)
                .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
                .config("spark.sql.optimizer.datasourceV2JoinPushdown", true)
                // Conditions differ, and code for each takes longer than its rows.
                .config("spark.sql.codegen.wholeStage", false)
                .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
                .config("spark.sql.adaptive.enabled", false)
                .getOrCreate();
        boolean failed = false;
        for (String argument : List.of(arguments).subList(3, arguments.length)) {
            String name = argument.substring(0, argument.indexOf('='));
            String address = argument.substring(name.length() + 1);
            List<NastyTable.Column> columns = NastyTable.columns(name);
            List<Object[]> rows = NastyTable.rows(columns, ROWS, new Random(seed));
            try (Database database = name.equals("dray")
                    ? new DrayDatabase(spark, address, Files.createTempDirectory(folder, name),
                            columns, rows)
                    : new JdbcDatabase(name, address, columns, rows)) {
                var semantics = new Semantics(spark, database, seed);
                semantics.predicates(predicates);
                semantics.statements(predicates / 4);
                failed |= semantics.report();
            }
        }
        spark.stop();
        System.exit(failed ? 1 : 0);
    }

    private Dataset<Row> remote() {
        return spark.read().format(PushingSource.class.getName())
                .option("database", database.name()).load();
    }

    private void check(boolean holds, String what) {
        if (!holds) {
            differences.add(what);
        }
    }

    private boolean report() {
        System.out.println(database.name() + ": of " + planned + " conditions " + pushed
                + " pushed whole and " + partly + " in part; " + aggregated + " aggregates, "
                + ordered + " orders and " + joined + " joins pushed; " + differences.size()
                + " differences");
        differences.stream().limit(10).forEach(System.out::println);
        return !differences.isEmpty();
    }

    private void predicates(int count) throws Exception {
        var source = new RandomPredicates(columns, random);
        for (int done = 0; done < count; done += BATCH) {
            var texts = new ArrayList<String>();
            String[] select = new String[BATCH + 1];
            select[0] = "id";
            for (int i = 0; i < BATCH; i++) {
                texts.add(source.next());
                select[i + 1] = texts.get(i) + " AS c" + i;
            }
            List<Row> truth = local.selectExpr(select).collectAsList();
            for (int i = 0; i < BATCH; i++) {
                var expected = new TreeSet<Integer>();
                for (Row row : truth) {
                    if (!row.isNullAt(i + 1) && row.getBoolean(i + 1)) {
                        expected.add(row.getInt(0));
                    }
                }
                predicate(texts.get(i), expected);
            }
        }
        // Most conditions have a part that is pushed.
        check(pushed > planned / 4, "only " + pushed + " of " + planned + " were pushed");
    }

    private void predicate(String text, Set<Integer> expected) throws Exception {
        PushingSource.last = null;
        String optimized =
                remote().where(text).select("id").queryExecution().optimizedPlan().toString();
        PushingSource.Builder plan = PushingSource.last;
        if (plan == null) {
            // It is always false.
            return;
        }
        planned++;
        Filters filters = plan.filters;
        var found = new TreeSet<Integer>();
        String conditions = String.join(" AND ", filters.conditions());
        String where = conditions.isEmpty() ? "" : " WHERE " + conditions;
        try {
            for (Row row : database.rows("SELECT id FROM t" + where,
                    new StructType().add("id", "int"))) {
                found.add(row.getInt(0));
            }
        } catch (java.sql.SQLException | java.io.IOException error) {
            check(false, text + "\n    " + error.getMessage());
            return;
        }
        // Spark may have no expression for sources for it, and then asks nobody.
        if (filters.kept().isEmpty() && !optimized.contains("Filter ")) {
            pushed++;
            var wrong = new HashSet<>(found);
            wrong.removeAll(expected);
            var lacking = new HashSet<>(expected);
            lacking.removeAll(found);
            check(wrong.isEmpty() && lacking.isEmpty(), text + "\n    " + conditions
                    + "\n    also: " + rows(wrong) + "\n    not: " + rows(lacking));
        } else {
            partly += filters.conditions().isEmpty() ? 0 : 1;
            check(found.containsAll(expected), text + "\n    " + conditions);
        }
    }

    private List<Row> rows(Set<Integer> ids) {
        return ids.isEmpty() ? List.of()
                : local.filter(local.col("id").isInCollection(ids)).limit(2).collectAsList();
    }

    /** Statements with the table {@code {t}}. */
    private List<String> statements() {
        var all = new ArrayList<String>();
        for (NastyTable.Column column : columns) {
            String name = RandomPredicates.name(column.name());
            for (String select : List.of("count(*), count({c})", "min({c}), max({c})",
                    "count(DISTINCT {c})")) {
                all.add("SELECT " + select.replace("{c}", name) + " FROM {t} WHERE i > 0");
            }
            all.add("SELECT " + name + ", count(*) FROM {t} GROUP BY " + name);
            for (String order : List.of("ASC", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST")) {
                all.add("SELECT id FROM {t} ORDER BY " + name + " " + order + ", id LIMIT 40"
                        + (order.startsWith("DESC") ? " OFFSET 7" : ""));
            }
            for (String join : List.of("JOIN", "LEFT JOIN", "RIGHT JOIN")) {
                all.add("SELECT a.id, b.id FROM {t} a " + join + " {t} b ON a." + name + " = b."
                        + name + " AND b.id < 40 AND a.i > b.i WHERE a.s IS NOT NULL");
            }
        }
        for (String aggregate : List.of("sum(s)", "sum(i)", "sum(n)", "avg(n)", "avg(p)", "avg(q)",
                "avg(s)", "avg(i)", "sum(n * (1 - n))", "count(CASE WHEN i > 0 THEN 1 END)",
                "sum(year(day))")) {
            all.add("SELECT " + aggregate + " FROM {t} WHERE i <> 1");
            all.add("SELECT i, " + aggregate + " FROM {t} GROUP BY i");
        }
        all.add("SELECT year(day), month(day), count(*), max(n) FROM {t}"
                + " GROUP BY year(day), month(day)");
        all.add("SELECT count(*) FROM {t} WHERE v = 'a' OR c = 'a'");
        return all;
    }

    private void statements(int count) {
        List<String> all = statements();
        Collections.shuffle(all, random);
        for (String sql : all.subList(0, Math.min(count, all.size()))) {
            try {
                same(sql);
            } catch (RuntimeException error) {
                check(false, sql + "\n    " + error);
            }
        }
        check(aggregated > 0 && ordered > 0 && joined > 0,
                aggregated + " aggregates, " + ordered + " orders, " + joined + " joins pushed");
    }

    /** Runs a statement over the database and over Spark's own table. */
    private void same(String sql) {
        List<String> expected = texts(spark.sql(sql.replace("{t}", "local")), sql);
        PushingSource.last = null;
        List<String> found = texts(spark.sql(sql.replace("{t}", "remote")), sql);
        PushingSource.Builder plan = PushingSource.last;
        if (plan == null) {
            // Spark knows that no row matches, and reads nothing.
            check(expected.isEmpty(), sql + "\n    expected " + expected + ", nothing is read");
            return;
        }
        aggregated += plan.aggregates == null ? 0 : 1;
        ordered += plan.order.isEmpty() ? 0 : 1;
        joined += plan.joined ? 1 : 0;
        check(expected.equals(found), sql + "\n    " + plan.sql() + "\n    expected " + expected
                + "\n    found    " + found);
    }

    private static List<String> texts(Dataset<Row> rows, String sql) {
        var texts = new ArrayList<String>();
        for (Row row : rows.collectAsList()) {
            var values = new ArrayList<String>();
            for (int i = 0; i < row.length(); i++) {
                Object value = row.get(i);
                values.add(value instanceof byte[] bytes ? Values.hex(bytes)
                        : value instanceof Double number ? "" + (number + 0.0)
                        : value instanceof Float number ? "" + (number + 0f) : "" + value);
            }
            texts.add(String.join("|", values));
        }
        if (!sql.contains("ORDER BY")) {
            texts.sort(null);
        }
        return texts;
    }
}
