package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class StatementTest {
    private static final List<String> COLUMNS = List.of("\"a\"", "\"b\"");

    @Test
    void tables() {
        Statement table = Statement.ofTable("public.t", COLUMNS);
        assertEquals("SELECT \"a\", \"b\" FROM public.t", table.sql());
        assertEquals("SELECT \"b\" FROM public.t WHERE \"a\" > 1 AND \"b\" < 2 LIMIT 3",
                table.withSelect(List.of("\"b\"")).withWhere(List.of("\"a\" > 1", "\"b\" < 2"))
                        .withLimit(3).sql());
        assertEquals("SELECT \"a\", count(*) FROM public.t GROUP BY \"a\" ORDER BY \"a\" DESC",
                table.withSelect(List.of("\"a\"", "count(*)")).withGroupBy(List.of("\"a\""))
                        .withOrderBy(List.of("\"a\" DESC")).sql());
        assertEquals("SELECT 1 AS dray_row FROM public.t", table.withSelect(List.of()).sql());
    }

    @Test
    void whatMayBeMoreThanOneTable() {
        for (String table : new String[] {"t", "a.b.c", "ONLY t", "t AS x", "t x", "\"a \"\"--\"",
            "`a``#`.`b`", "\"s\" . t"}) {
            assertEquals("SELECT \"a\", \"b\" FROM " + table,
                    Statement.ofTable(table, COLUMNS).sql());
        }
        for (String other : new String[] {"t WHERE a > 1", "t LIMIT 5", "t -- all", "t # all",
            "t UNION SELECT * FROM u", "(SELECT 1) AS t", "t, u", "t JOIN u ON true", "f(1)"}) {
            Statement all = Statement.ofTable(other, COLUMNS);
            assertEquals("SELECT * FROM " + other, all.sql());
            assertEquals("SELECT \"a\", \"b\" FROM (SELECT * FROM " + other
                    + "\n) AS dray_query WHERE x", all.withWhere(List.of("x")).sql());
        }
    }

    @Test
    void offsets() {
        Statement first = Statement.ofTable("t", COLUMNS).withLimit(9);
        assertEquals("SELECT \"a\", \"b\" FROM t LIMIT 9", first.sql());
        assertEquals("SELECT \"a\", \"b\" FROM t LIMIT 5 OFFSET 4", first.withOffset(4).sql());
    }

    @Test
    void queries() {
        Statement query = Statement.ofQuery("SELECT a, b FROM t -- all", COLUMNS);
        assertEquals("SELECT a, b FROM t -- all", query.sql());
        assertEquals("SELECT a, b FROM t -- all", query.withSelect(COLUMNS).sql());
        assertEquals("SELECT \"a\" FROM (SELECT a, b FROM t -- all\n) AS dray_query",
                query.withSelect(List.of("\"a\"")).sql());
    }

    @Test
    void ordersOfQueries() {
        for (String query : new String[] {"SELECT a, b FROM t ORDER BY b", "select a, b from t\n"
            + "order /* */ by b", "SELECT a, b FROM t Order\tBy b LIMIT 9"}) {
            Statement ordered = Statement.ofQuery(query, COLUMNS);
            assertTrue(ordered.isOrderedQuery(), query);
            assertTrue(ordered.withSelect(COLUMNS).isOrderedQuery(), query);
            assertFalse(ordered.withLimit(3).isOrderedQuery(), query);
        }
        assertTrue(Statement.ofTable("t ORDER BY a", COLUMNS).isOrderedQuery());
        for (String other : new String[] {"SELECT a, b FROM orders", "SELECT a, b FROM order_by",
            "SELECT a, b FROM t GROUP BY a, b"}) {
            assertFalse(Statement.ofQuery(other, COLUMNS).isOrderedQuery(), other);
        }
        Statement table = Statement.ofTable("t", COLUMNS).withOrderBy(List.of("\"a\""));
        assertFalse(table.isOrderedQuery());
    }

    @Test
    void quotes() {
        assertEquals("\"a\"\"b`\"", Dialect.POSTGRESQL.quoted("a\"b`"));
        assertEquals("`a\"b```", Dialect.MYSQL.quoted("a\"b`"));
        assertEquals("E'it''s \\\\'", Dialect.POSTGRESQL.literal("it's \\"));
        assertEquals("'it''s'", Dialect.POSTGRESQL.literal("it's"));
        assertEquals("'it''s \\'", Dialect.DRAY.literal("it's \\"));
        assertEquals("'it''s \\\\'", Dialect.MYSQL.literal("it's \\"));
    }
}
