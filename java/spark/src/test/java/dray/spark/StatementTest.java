package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

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
    void queries() {
        Statement query = Statement.ofQuery("SELECT a, b FROM t -- all", COLUMNS);
        assertEquals("SELECT a, b FROM t -- all", query.sql());
        assertEquals("SELECT a, b FROM t -- all", query.withSelect(COLUMNS).sql());
        assertEquals("SELECT \"a\" FROM (SELECT a, b FROM t -- all\n) AS dray_query",
                query.withSelect(List.of("\"a\"")).sql());
    }

    @Test
    void quotes() {
        assertEquals("\"a\"\"b`\"", Dialect.POSTGRESQL.quoted("a\"b`"));
        assertEquals("`a\"b```", Dialect.MYSQL.quoted("a\"b`"));
        assertEquals("'it''s \\'", Dialect.POSTGRESQL.literal("it's \\"));
        assertEquals("'it''s \\\\'", Dialect.MYSQL.literal("it's \\"));
    }
}
