package dray.spark.pushdown;

import static dray.spark.pushdown.Expressions.column;
import static dray.spark.pushdown.Expressions.literal;
import static dray.spark.pushdown.Expressions.number;
import static dray.spark.pushdown.Expressions.predicate;
import static dray.spark.pushdown.Expressions.text;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Extract;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Avg;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Sum;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Or;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.join.JoinType;
import org.apache.spark.sql.connector.read.SupportsPushDownJoin.ColumnWithAlias;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** The texts of translations, and what is not translated. Semantics compares what they mean. */
class TranslationTest {
    private static final Dialect POSTGRESQL = new PostgreSql();
    private static final Dialect MYSQL = new MySql();
    private static final Dialect DRAY = new DataFusion();
    private static final List<Dialect> ALL = List.of(POSTGRESQL, MYSQL, DRAY);

    private static final List<SourceColumn> COLUMNS = List.of(
            new SourceColumn("i", DataTypes.IntegerType),
            new SourceColumn("l", DataTypes.LongType, "bigint", null),
            new SourceColumn("d", DataTypes.DoubleType, "double precision", null),
            new SourceColumn("n", DataTypes.createDecimalType(10, 2), "numeric", null),
            new SourceColumn("v", DataTypes.StringType, "text", "\"C\""),
            new SourceColumn("ci", DataTypes.StringType, "citext", null),
            new SourceColumn("c", DataTypes.StringType, "character", null),
            new SourceColumn("day", DataTypes.DateType),
            new SourceColumn("any", DataTypes.StringType));
    private static final List<SourceColumn> DRAY_COLUMNS = COLUMNS.stream()
            .map(column -> column.type().equals(DataTypes.StringType)
                    ? new SourceColumn(column.name(), column.type(), "Utf8View", null) : column)
            .toList();

    private static String sql(Dialect dialect, Predicate predicate) {
        Filters filters =
                Filters.translate(dialect, dialect == DRAY ? DRAY_COLUMNS : COLUMNS, predicate);
        assertEquals(filters.kept().isEmpty() ? 1 : 0, filters.pushed().size());
        return filters.kept().isEmpty() ? String.join(" AND ", filters.conditions()) : null;
    }

    private static Predicate equal(String name, Expression value) {
        return predicate("=", column(name), value);
    }

    @Test
    void nulls() {
        assertEquals("(\"v\" IS NULL)", sql(POSTGRESQL, predicate("IS_NULL", column("v"))));
        assertEquals("(num_nulls(\"any\") = 1)",
                sql(POSTGRESQL, predicate("IS_NULL", column("any"))));
        assertEquals("(`v` <=> NULL)", sql(MYSQL, predicate("IS_NULL", column("v"))));
    }

    @Test
    void tablesOfMySql() {
        String one = MYSQL.describe("orders", List.of("it's")).orElseThrow();
        assertTrue(one.contains("field(CAST(column_name AS BINARY), "
                + "CAST(_utf8mb4 X'69742773' AS BINARY))"), one);
        assertTrue(one.contains("table_schema = database() AND table_name = _utf8mb4 'orders'"));
        String two = MYSQL.describe("shop.`a ``b`", List.of("i")).orElseThrow();
        assertTrue(two.contains(
                "table_schema = _utf8mb4 'shop' AND table_name = _utf8mb4 'a `b'"), two);
        for (String other : List.of("(SELECT 1) AS t", "t AS u", "a, b", "`a`b`", "a.b.c")) {
            assertTrue(MYSQL.describe(other, List.of("i")).isEmpty(), other);
        }
    }

    /** A column of which the database tells twice may be another one in its mind. */
    @Test
    void columnsThatAreToldTwice() {
        StructType schema = new StructType()
                .add("i", DataTypes.IntegerType).add("y", DataTypes.ShortType);
        String[] year = {"2", "year(4)", null};
        assertEquals("year(4)",
                SourceColumn.list(schema, new String[][] {year}).get(1).sourceType());
        String[][] rows = {{"1", "int", null}, year, {"2", "smallint", null}};
        List<SourceColumn> columns = SourceColumn.list(schema, rows);
        assertEquals("int", columns.get(0).sourceType());
        assertEquals(new SourceColumn("y", DataTypes.ShortType), columns.get(1));
    }

    @Test
    void numbers() {
        Predicate less = predicate("<", column("i"), number(-5));
        assertEquals("(\"i\" < '-5'::integer)", sql(POSTGRESQL, less));
        assertEquals("(`i` < (-5))", sql(MYSQL, less));
        assertEquals("(\"i\" < CAST('-5' AS INT))", sql(DRAY, less));
        Predicate nan = equal("d", literal(Double.NaN, DataTypes.DoubleType));
        assertEquals("(\"d\" = 'NaN'::double precision)", sql(POSTGRESQL, nan));
        assertEquals(null, sql(MYSQL, nan));
    }

    /** Each string stays one literal, whatever the server's settings are. */
    @Test
    void strings() {
        String attack = "'; DROP TABLE t; --";
        assertEquals("(\"v\" = '''; DROP TABLE t; --'::text)",
                sql(POSTGRESQL, equal("v", text(attack))));
        assertEquals("(\"v\" = E'\\\\'' OR true --'::text)",
                sql(POSTGRESQL, equal("v", text("\\' OR true --"))));
        assertEquals(null, sql(POSTGRESQL, equal("v", text("a\0"))));
        assertEquals("(\"v\" = 'a\\''b')", sql(DRAY, equal("v", text("a\\'b"))));
        assertEquals(null, sql(DRAY, equal("v", text("a\0"))));
        for (String value : List.of("it's", "\\", "ä", "a\0", "\n")) {
            String sql = sql(MYSQL, equal("any", text(value)));
            assertTrue(sql.matches("\\(CAST\\(CONVERT\\(`any` USING utf8mb4\\) AS BINARY\\) = "
                    + "CAST\\(_utf8mb4 X'[0-9a-f]+' AS BINARY\\)\\)"), sql);
        }
        for (Dialect dialect : ALL) {
            assertEquals(null, sql(dialect, equal("v", text("\uFFFD"))));
        }
    }

    @Test
    void names() {
        assertEquals("\"a\"\"b`\"", POSTGRESQL.identifier("a\"b`"));
        assertEquals("`a\"b```", MYSQL.identifier("a\"b`"));
        assertEquals("\"a\"\"b`\"", DRAY.identifier("a\"b`"));
    }

    /** Where a comparison is not Spark's, an index may still know one that is implied. */
    @Test
    void collations() {
        assertEquals("(\"v\" = 'a'::text)", sql(POSTGRESQL, equal("v", text("a"))));
        assertEquals("((\"v\" COLLATE \"C\") < ('a'::text COLLATE \"C\"))",
                sql(POSTGRESQL, predicate("<", column("v"), text("a"))));
        assertEquals("(\"ci\" IN ('a') AND ((\"ci\"::text COLLATE \"C\") = "
                + "('a'::text COLLATE \"C\")))", sql(POSTGRESQL, equal("ci", text("a"))));
        assertEquals("(\"c\" IN ('a   '::bpchar) AND ((textin(bpcharout(\"c\")) COLLATE \"C\") = "
                + "('a   '::text COLLATE \"C\")))", sql(POSTGRESQL, equal("c", text("a   "))));
        assertEquals(null, sql(POSTGRESQL, equal("any", text("a"))));
        assertEquals("(`v` = _utf8mb4 'a' AND (CAST(CONVERT(`v` USING utf8mb4) AS BINARY) = "
                + "CAST(_utf8mb4 'a' AS BINARY)))", sql(MYSQL, equal("v", text("a"))));
    }

    @Test
    void parts() {
        Predicate starts = predicate("STARTS_WITH", column("v"), text("50%_\\!"));
        assertEquals("(\"v\" LIKE E'50!%!_\\\\!!%'::text ESCAPE '!')", sql(POSTGRESQL, starts));
        assertEquals("starts_with(\"v\", '50%_\\!')", sql(DRAY, starts));
        Predicate ends = predicate("ENDS_WITH", column("v"), text("b"));
        assertEquals("(CAST(CONVERT(`v` USING utf8mb4) AS BINARY) LIKE "
                + "CAST(_utf8mb4 '%b' AS BINARY) ESCAPE '!')", sql(MYSQL, ends));
        assertEquals(null, sql(POSTGRESQL, predicate("CONTAINS", column("v"), column("v"))));
    }

    /** An index finds dates, and not their years. */
    @Test
    void years() {
        Expression year = new Extract("YEAR", column("day"));
        String first = "DATE '2024-01-01'";
        String next = "DATE '2025-01-01'";
        String within = "((\"day\" >= " + first + ") AND (\"day\" < " + next + "))";
        Map<String, String> ranges = Map.of("=", within, "<>", "(NOT " + within + ")",
                "<", "(\"day\" < " + first + ")", "<=", "(\"day\" < " + next + ")",
                ">", "(\"day\" >= " + next + ")", ">=", "(\"day\" >= " + first + ")");
        ranges.forEach((operator, range) -> assertEquals(range,
                sql(POSTGRESQL, predicate(operator, year, number(2024)))));
        assertEquals(ranges.get("<"), sql(POSTGRESQL, predicate(">", number(2024), year)));
        assertEquals("(`day` < DATE '2024-01-01')",
                sql(MYSQL, predicate("<", year, number(2024))));
        for (int other : new int[] {-1, 0, 9999}) {
            String sql = sql(POSTGRESQL, predicate("=", year, number(other)));
            assertTrue(sql.contains("extract(YEAR FROM \"day\")"), sql);
        }
        for (Predicate other : new Predicate[] {predicate("<=>", year, number(2024)),
            predicate("=", year, column("i")), predicate("=", year, year),
            predicate("=", new Extract("MONTH", column("day")), number(2))}) {
            String sql = sql(POSTGRESQL, other);
            assertTrue(sql.contains("extract("), sql);
        }
    }

    /** Without its sides, OR keeps nothing, and AND keeps one of them. */
    @Test
    void weaker() {
        Predicate known = predicate("IS_NOT_NULL", column("i"));
        Predicate unknown = predicate("=", new GeneralScalarExpression("UPPER",
                new Expression[] {column("v")}), text("A"));
        Filters and = Filters.translate(MYSQL, COLUMNS, new Or(new And(known, unknown), known));
        assertEquals(List.of("((NOT (`i` <=> NULL)) OR (NOT (`i` <=> NULL)))"), and.conditions());
        assertEquals(1, and.kept().size());
        assertEquals(List.of(),
                Filters.translate(MYSQL, COLUMNS, new Or(known, unknown)).conditions());
        assertEquals(List.of(), Filters.translate(MYSQL, COLUMNS,
                predicate("NOT", new And(known, unknown))).conditions());
    }

    /** How deep brackets are in each other, outside of strings. */
    private static int depth(String sql) {
        int open = 0;
        int deepest = 0;
        for (char c : sql.replaceAll("'[^']*'", "").toCharArray()) {
            open += c == '(' ? 1 : c == ')' ? -1 : 0;
            deepest = Math.max(deepest, open);
        }
        return deepest;
    }

    private static String flat(String sql) {
        return sql.replaceAll("[()]", "");
    }

    /** A chain as Spark makes it, each operand within the next one. */
    private static Predicate chain(int length, boolean or, IntFunction<Predicate> operand) {
        Predicate chain = operand.apply(0);
        for (int i = 1; i < length; i++) {
            chain = or ? new Or(chain, operand.apply(i)) : new And(chain, operand.apply(i));
        }
        return chain;
    }

    /** Dray's server takes 200 brackets in each other, and 1,000 operators. */
    @Test
    void chains() {
        Predicate unknown = predicate("=", column("unknown"), number(1));
        for (Dialect dialect : ALL) {
            for (int length : new int[] {300, 5000}) {
                for (boolean or : new boolean[] {true, false}) {
                    Predicate exact = chain(length, or, i -> equal("i", number(i)));
                    String sql = sql(dialect, exact);
                    assertTrue(depth(sql) <= 20);
                    assertEquals(length, sql.split(" (OR|AND) ").length);
                    assertTrue(sql.indexOf("42") < sql.indexOf("142"));
                    Filters weaker = Filters.translate(dialect, COLUMNS, chain(
                            length, or, i -> new And(unknown, equal("i", number(i)))));
                    assertEquals(1, weaker.kept().size());
                    assertTrue(depth(weaker.conditions().get(0)) <= 20);
                    assertTrue(flat(sql).equals(flat(weaker.conditions().get(0))));
                }
            }
            // Chains within chains have no end.
            Predicate deep = unknown;
            for (int i = 0; i < 1000; i++) {
                Predicate known = equal("i", number(i));
                deep = i % 2 == 0 ? new And(known, deep) : new Or(known, deep);
            }
            for (String condition : Filters.translate(dialect, COLUMNS, deep).conditions()) {
                assertTrue(depth(condition) <= 100, condition);
            }
            // All conditions together are one chain.
            Predicate[] many = IntStream.range(0, 2000)
                    .mapToObj(i -> equal("i", number(i))).toArray(Predicate[]::new);
            Filters filters = Filters.translate(dialect, COLUMNS, many);
            assertEquals(500, filters.conditions().size());
            assertEquals(1500, filters.kept().size());
        }
    }

    /** Operands are cast, and Dray's server takes twice as long for each cast in another one. */
    @Test
    void sums() {
        for (Dialect dialect : ALL) {
            Expression sum = column("n");
            for (int i = 1; i <= 20; i++) {
                sum = scalar("+", sum, column("n"));
                assertEquals(i <= 15, sql(dialect, predicate("IS_NULL", sum)) != null, i + " sums");
            }
        }
    }

    @Test
    void longConditions() {
        Predicate[] many = IntStream.range(0, 5)
                .mapToObj(i -> equal("v", text("x".repeat(60_000)))).toArray(Predicate[]::new);
        Filters filters = Filters.translate(POSTGRESQL, COLUMNS, many);
        assertEquals(4, filters.pushed().size());
        assertEquals(1, filters.kept().size());
    }

    @Test
    void kept() {
        Expression[] many = IntStream.range(-1, Translator.LIST_MAX + 1)
                .mapToObj(i -> i < 0 ? column("i") : number(i)).toArray(Expression[]::new);
        assertEquals(List.of("((`i` >= 0) AND (`i` <= 1000))"),
                Filters.translate(MYSQL, COLUMNS, predicate("IN", many)).conditions());
        for (Dialect dialect : ALL) {
            assertEquals(null, sql(dialect, predicate("IN", many)));
            assertEquals(null, sql(dialect, equal("unknown", number(1))));
            assertEquals(null, sql(dialect, equal("l", number(1))));
            Expression overflow =
                    new GeneralScalarExpression("+", new Expression[] {column("i"), number(1)});
            assertEquals(null, sql(dialect, predicate("=", overflow, number(1))));
            Expression quotient =
                    new GeneralScalarExpression("/", new Expression[] {column("n"), column("n")});
            assertEquals(null, sql(dialect, predicate("IS_NULL", quotient)));
            Predicate deep = predicate("IS_NULL", column("i"));
            for (int i = 0; i < 10_000; i++) {
                deep = predicate("NOT", deep);
            }
            assertEquals(null, sql(dialect, deep));
        }
    }

    private static Expression scalar(String name, Expression... children) {
        return new GeneralScalarExpression(name, children);
    }

    /** Arithmetic is unsigned if an operand is, and MySQL has 30 digits after the point. */
    @Test
    void operands() {
        Expression either = scalar("COALESCE", column("n"), column("n"));
        Predicate difference = predicate("IS_NULL", scalar("-", either, column("n")));
        assertEquals("((CAST(coalesce(`n`, `n`) AS DECIMAL(10, 2)) - "
                + "CAST(`n` AS DECIMAL(10, 2))) IS NULL)", sql(MYSQL, difference));
        assertEquals("((- CAST(coalesce(`n`, `n`) AS DECIMAL(10, 2))) IS NULL)",
                sql(MYSQL, predicate("IS_NULL", scalar("-", either))));
        assertTrue(sql(DRAY, difference).startsWith("((CAST(coalesce("), sql(DRAY, difference));
        assertEquals("((coalesce(\"n\", \"n\") - CAST(\"n\" AS numeric(10, 2))) IS NULL)",
                sql(POSTGRESQL, difference));
        var column = new SourceColumn("m", DataTypes.createDecimalType(18, 16), "numeric", null);
        Predicate product = predicate("IS_NULL", scalar("*", column("m"), column("m")));
        for (Dialect dialect : ALL) {
            Filters filters = Filters.translate(dialect, List.of(column), product);
            assertEquals(dialect == MYSQL ? 1 : 0, filters.kept().size());
        }
    }

    private static Aggregates aggregate(Dialect dialect, Expression[] groups, AggregateFunc... of) {
        return Aggregates.translate(dialect, dialect == DRAY ? DRAY_COLUMNS : COLUMNS,
                new Aggregation(of, groups)).orElse(null);
    }

    @Test
    void aggregates() {
        Expression[] none = {};
        Aggregates counts = aggregate(POSTGRESQL, new Expression[] {column("v")}, new CountStar(),
                new Max(column("n")));
        assertEquals(List.of("(\"v\" COLLATE \"C\") AS \"group_0\"", "count(*) AS \"count_1\"",
                "CAST(max(\"n\") AS numeric(10, 2)) AS \"max_2\""), counts.select());
        assertEquals(List.of("(\"v\" COLLATE \"C\")"), counts.groupBy());
        assertTrue(counts.partial());
        assertEquals(Map.of(1, DataTypes.LongType), counts.summed());
        for (Dialect dialect : ALL) {
            Aggregates integers = aggregate(dialect, none, new Sum(column("i"), false));
            assertTrue(integers.partial());
            assertEquals(Map.of(0, DataTypes.LongType), integers.summed());
            Expression wide = new Cast(column("i"), DataTypes.IntegerType, DataTypes.LongType);
            assertEquals(DataTypes.LongType, aggregate(dialect, none, new Sum(wide, false))
                    .schema().apply(0).dataType());
            Aggregates decimals = aggregate(dialect, none, new Sum(column("n"), false));
            // Spark casts the sums of parts so, and more digits get lost.
            assertEquals(Map.of(0, DataTypes.createDecimalType(10, 2)), decimals.summed());
            assertEquals(DataTypes.createDecimalType(20, 2),
                    decimals.schema().apply(0).dataType());
            assertFalse(aggregate(dialect, none, new Count(column("n"), true)).partial());
            assertEquals(null, aggregate(dialect, none, new Sum(column("l"), false)));
            assertEquals(null, aggregate(dialect, none, new Sum(column("d"), false)));
            assertEquals(null, aggregate(dialect, none, new Sum(column("i"), true)));
        }
        // It may be too long for MySQL to sort all of it.
        assertEquals(null, aggregate(MYSQL, new Expression[] {column("v")}, new CountStar()));
    }

    /** Spark computes averages of up to 11 digits by doubles, and rounds those beyond 18 twice. */
    @Test
    void averages() {
        for (int digits : new int[] {4, 11, 12, 18, 19}) {
            var column = new SourceColumn(
                    "a", DataTypes.createDecimalType(digits, 2), "numeric", null);
            var average = new Aggregation(
                    new AggregateFunc[] {new Avg(column("a"), false)}, new Expression[] {});
            boolean pushed =
                    Aggregates.translate(POSTGRESQL, List.of(column), average).isPresent();
            assertEquals(digits == 12 || digits == 18, pushed, digits + " digits");
        }
    }

    /** NULL and an empty string are the same to MySQL 8.0 when it sorts casts. */
    @Test
    void orders() throws Untranslatable {
        Term string = Term.column("`v`",
                new SourceColumn("v", DataTypes.StringType, "varchar(10)", null));
        assertEquals("(CAST(`v` AS BINARY) <=> NULL) DESC, CAST(`v` AS BINARY) ASC",
                MYSQL.order(string, false, true));
        Term number = Term.column("`i`", new SourceColumn("i", DataTypes.IntegerType));
        assertEquals("`i` ASC", MYSQL.order(number, false, true));
        assertEquals("(`i` <=> NULL) ASC, `i` ASC", MYSQL.order(number, false, false));
        assertEquals("\"i\" DESC NULLS LAST",
                POSTGRESQL.order(Term.column("\"i\"", number.column()), true, false));
    }

    @Test
    void joins() {
        ColumnWithAlias[] left = {new ColumnWithAlias("i", null)};
        ColumnWithAlias[] right = {new ColumnWithAlias("i", "i_1")};
        var side = new Joins.Statement("SELECT * FROM t", COLUMNS);
        var join = Joins.translate(POSTGRESQL, JoinType.LEFT_OUTER_JOIN, side, left, side, right,
                predicate("=", column("i"), column("i_1"))).orElseThrow();
        assertEquals("SELECT \"i\", \"i_1\" FROM (SELECT \"i\" AS \"i\" FROM (SELECT * FROM t\n)"
                + " AS q) AS l LEFT JOIN (SELECT \"i\" AS \"i_1\" FROM (SELECT * FROM t\n) AS q)"
                + " AS r ON (\"i\" = \"i_1\")", join.sql());
        assertTrue(Joins.translate(POSTGRESQL, JoinType.INNER_JOIN, side, left, side, left,
                predicate("=", column("i"), column("i"))).isEmpty());
    }
}
