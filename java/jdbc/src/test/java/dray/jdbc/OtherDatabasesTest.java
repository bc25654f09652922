package dray.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.DriverManager;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** H2 and SQLite, whose drivers differ from Derby's in what they know of java.time and of types. */
class OtherDatabasesTest {
    @TempDir
    Path folder;

    private void run(String uri, String... statements) throws Exception {
        try (var connection = DriverManager.getConnection(uri);
                var statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        }
    }

    @Test
    void typesOfH2() throws Exception {
        String uri = "jdbc:h2:" + folder.resolve("h2");
        run(uri, "CREATE TABLE t (a tinyint, b numeric(60, 20), c numeric(5, 2), d decfloat,"
                + " e date, f time(3), g time(9), h timestamp(6), i timestamp(9),"
                + " j timestamp with time zone, k uuid, l boolean, m varchar, n clob, o blob,"
                + " p double precision, q time with time zone)",
                "INSERT INTO t VALUES (-128, -1234567890123456789012345678901234567890.5, 999.99,"
                + " 1e100, '0001-01-01', '23:59:59.123', '23:59:59.123456789',"
                + " '9999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999999',"
                + " '2020-06-01 12:00:00.5+02:00', '00112233-4455-6677-8899-aabbccddeeff', true,"
                + " 'ü', '😀', X'00ff', 'NaN', '12:00:00+02:00')",
                "INSERT INTO t (a) VALUES (NULL)");
        try (var bridge = BridgeProcess.open(folder, uri, false)) {
            var result = bridge.query("SELECT * FROM t");
            assertEquals("[[-128, -1234567890123456789012345678901234567890.50000000000000000000,"
                    + " 999.99, 1E+100, -719162, 86399123000, 86399123456789,"
                    + " 9999-12-31T23:59:59.999999, 1999-12-31T23:59:59.999999999,"
                    + " 1591005600500000, 00112233445566778899aabbccddeeff, true, ü, 😀, 00ff, NaN,"
                    + " 12:00:00+02],"
                    + " [null, null, null, null, null, null, null, null, null, null, null, null,"
                    + " null, null, null, null, null]]", result.texts().toString());
            assertEquals("Decimal(60, 20, 256)", result.type(1));
            assertEquals("Timestamp(MICROSECOND, UTC)", result.type(9));
            var field = result.schema().findField("Q");
            assertEquals("time with time zone", field.getMetadata().get("dray:jdbc:type"));
            for (String sql : new String[] {"SELECT ARRAY[1, 2] AS a", "SELECT (1, 2) AS a"}) {
                var refused = bridge.query(sql);
                assertEquals("query 0A000", refused.kind() + " " + refused.sqlstate());
                assertTrue(refused.message().startsWith("column A: the type "), sql);
            }
        }
    }

    @Test
    void severalStatementsInOne() throws Exception {
        String uri = "jdbc:h2:" + folder.resolve("several");
        run(uri, "CREATE TABLE t (i int)", "INSERT INTO t VALUES (1)");
        try (var bridge = BridgeProcess.open(folder, uri, false)) {
            for (String sql : new String[] {"SELECT 1; DELETE FROM t; COMMIT",
                "SELECT 'a\\'; DELETE FROM t; COMMIT --'", "SELECT 1 -- ;'\n; DELETE FROM t"}) {
                assertEquals("25006", bridge.query(sql).sqlstate(), sql);
            }
            assertEquals("[[a;b]]", bridge.query("SELECT 'a;b';").texts().toString());
            assertEquals("[[1]]", bridge.query("SELECT count(*) FROM t").texts().toString());
        }
    }

    @Test
    void typesOfSqlite() throws Exception {
        String uri = "jdbc:sqlite:" + folder.resolve("lite.db");
        run(uri, "CREATE TABLE t (i integer, r real, s text, b blob, n numeric(10, 2), d date,"
                + " t timestamp, o boolean)",
                "INSERT INTO t VALUES (-9223372036854775808, 1e300, 'ü', X'00ff', 1.25,"
                + " '2024-02-29', '2024-02-29 12:34:56.5', 2),"
                + " (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
                "CREATE TABLE numbers (n decimal(10, 2))",
                "INSERT INTO numbers VALUES (0.1 + 0.2), (1e21), (0.1), (7.0),"
                + " (9007199254740993), ('abc'), (NULL)",
                "CREATE TABLE mixed (i integer, d date, o boolean, s text)",
                "INSERT INTO mixed VALUES (1, 5, 0, 'a'), ('x', 6, 'x', X'00')");
        try (var bridge = BridgeProcess.open(folder, uri, false)) {
            var result = bridge.query("SELECT * FROM t");
            assertEquals("[[-9223372036854775808, 1.0E300, ü, 00ff, 1.25, 19782,"
                    + " 2024-02-29T12:34:56.500, 2],"
                    + " [null, null, null, null, null, null, null, null]]",
                    result.texts().toString());
            for (String column : new String[] {"i", "d", "o", "s"}) {
                var mixed = bridge.query("SELECT " + column + " FROM mixed");
                assertTrue(mixed.message().startsWith("column " + column + ": "), column);
            }
            assertEquals("[[0.30000000000000004], [1000000000000000000000], [0.1], [7],"
                    + " [9007199254740993], [abc], [null]]",
                    bridge.query("SELECT n FROM numbers").texts().toString());
            var real = bridge.query("SELECT 'a' AS s UNION ALL SELECT 0.1");
            assertTrue(real.message().startsWith("column s: a value of the type Double"));
            // The file is open for reading alone.
            var refused = bridge.query("WITH x AS (SELECT 1) INSERT INTO t (i) VALUES (1)");
            assertEquals("execution", refused.kind());
            assertEquals("[[2]]", bridge.query("SELECT count(*) FROM t").texts().toString());
        }
        try (var bridge = BridgeProcess.open(folder, uri, true)) {
            assertNull(bridge.query("INSERT INTO mixed (i) VALUES (3)").error());
            assertEquals("[[3]]", bridge.query("SELECT count(*) FROM mixed").texts().toString());
        }
    }
}
