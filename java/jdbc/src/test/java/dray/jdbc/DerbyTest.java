package dray.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** All of Derby's types, from its network server and from a database in the bridge's process. */
class DerbyTest {
    private static final String[] TYPES = {
        "smallint", "int", "bigint", "real", "double", "decimal(31,5)", "numeric(5,0)", "boolean",
        "char(5)", "varchar(100)", "long varchar", "clob", "char(3) for bit data",
        "varchar(10) for bit data", "long varchar for bit data", "blob", "date", "time",
        "timestamp"};
    private static final String[] VALUES = {
        "-32768, -2147483648, -9223372036854775807 - 1, -1.5, 1e-300,"
                + " -12345678901234567890123456.78901, -99999, true, 'a', 'ü 😀', 'long', 'clob',"
                + " X'00ff01', X'', X'0a', CAST(X'ff00' AS blob), '0001-01-01', '00:00:00',"
                + " '1677-09-22 00:00:00.123456789'",
        "32767, 2147483647, 9223372036854775807, 3.4e38, 1.7976931348623157e308, 0.00001, 0,"
                + " false, 'abcde', '', '', '', X'202020', X'00', X'', CAST(X'' AS blob),"
                + " '9999-12-31', '23:59:59', '2262-04-11 23:47:16.854775807'",
        "0, 0, 0, 0, 0, 0, 0, true, '', 'x''y', 'z', 'z', X'000000', X'00', X'00',"
                + " CAST(X'00' AS blob), '1582-10-10', '12:30:00', '1970-01-01 00:00:00'"};

    @TempDir
    static Path folder;
    private static DerbyServer server;

    @BeforeAll
    static void start() throws Exception {
        System.setProperty("derby.system.home", folder.toString());
        server = new DerbyServer(folder);
        server.run(ddl("types"), "INSERT INTO types VALUES (" + VALUES[0] + ")",
                "INSERT INTO types VALUES (" + VALUES[1] + ")",
                "INSERT INTO types VALUES (" + VALUES[2] + ")",
                "INSERT INTO types (c0) VALUES (NULL)",
                "CREATE TABLE numbers (i int)", "INSERT INTO numbers VALUES 1, 2, 3, 4, 5, 6, 7,"
                + " 8, 9, 10");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    private static String ddl(String table) {
        var columns = new ArrayList<String>();
        for (int i = 0; i < TYPES.length; i++) {
            columns.add("c" + i + " " + TYPES[i]);
        }
        return "CREATE TABLE " + table + " (" + String.join(", ", columns) + ")";
    }

    /** The same statement by Derby's own text of each value. */
    private static List<List<String>> oracle(String uri, String sql) throws SQLException {
        try (var connection = DriverManager.getConnection(uri);
                var statement = connection.createStatement();
                var result = statement.executeQuery(sql)) {
            var rows = new ArrayList<List<String>>();
            int columns = result.getMetaData().getColumnCount();
            while (result.next()) {
                var row = new ArrayList<String>();
                for (int column = 1; column <= columns; column++) {
                    row.add(String.valueOf(result.getString(column)));
                }
                rows.add(row);
            }
            return rows;
        }
    }

    /** As Derby writes what Arrow's Java classes write in another way. */
    private static List<List<String>> asDerby(BridgeProcess.Result result) {
        var rows = new ArrayList<List<String>>();
        for (var row : result.texts()) {
            var texts = new ArrayList<>(row);
            for (int i = 0; i < texts.size(); i++) {
                Object value = result.rows().get(rows.size()).get(i);
                String type = result.type(i);
                if (value == null) {
                    continue;
                }
                if (type.startsWith("Date")) {
                    texts.set(i, java.time.LocalDate.ofEpochDay((Integer) value).toString());
                } else if (type.startsWith("Time(")) {
                    var time = java.time.LocalTime.ofNanoOfDay((Long) value * 1000);
                    texts.set(i, time.format(java.time.format.DateTimeFormatter.ISO_LOCAL_TIME));
                } else if (type.startsWith("Timestamp")) {
                    var time = (java.time.LocalDateTime) value;
                    texts.set(i, java.sql.Timestamp.valueOf(time).toString());
                }
            }
            rows.add(texts);
        }
        return rows;
    }

    @Test
    void typesOfTheNetworkServer() throws Exception {
        try (var bridge = BridgeProcess.open(folder, server.uri(), false)) {
            checkTypes(bridge, server.uri());
        }
    }

    @Test
    void typesInTheProcess() throws Exception {
        Path database = folder.resolve("embedded");
        String uri = "jdbc:derby:" + database;
        try (var connection = DriverManager.getConnection(uri + ";create=true");
                var statement = connection.createStatement()) {
            statement.execute(ddl("types"));
            for (String values : VALUES) {
                statement.execute("INSERT INTO types VALUES (" + values + ")");
            }
            statement.execute("INSERT INTO types (c0) VALUES (NULL)");
        }
        List<List<String>> expected = oracle(uri, "SELECT * FROM types");
        try {
            // Only one process has it open.
            DriverManager.getConnection(uri + ";shutdown=true");
        } catch (SQLException isShutDown) {
            assertEquals("08006", isShutDown.getSQLState());
        }
        try (var bridge = BridgeProcess.open(folder, uri, false)) {
            assertEquals(expected, asDerby(bridge.query("SELECT * FROM types")));
        }
    }

    private static void checkTypes(BridgeProcess bridge, String uri) throws Exception {
        var result = bridge.query("SELECT * FROM types");
        assertEquals(oracle(uri, "SELECT * FROM types"), asDerby(result));
        assertEquals(Collections.nCopies(TYPES.length, "null"), result.texts().get(3));
        var types = new ArrayList<String>();
        for (int i = 0; i < TYPES.length; i++) {
            types.add(result.type(i));
        }
        assertEquals(Arrays.asList("Int(16, true)", "Int(32, true)", "Int(64, true)",
                "FloatingPoint(SINGLE)", "FloatingPoint(DOUBLE)", "Decimal(31, 5, 128)",
                "Decimal(5, 0, 128)", "Bool", "Utf8", "Utf8", "Utf8", "Utf8", "Binary", "Binary",
                "Binary", "Binary", "Date(DAY)", "Time(MICROSECOND, 64)",
                "Timestamp(NANOSECOND, null)"), types);
        var empty = bridge.query("SELECT * FROM types WHERE 1 = 0");
        assertEquals(result.schema(), empty.schema());
        assertTrue(empty.rows().isEmpty());
        bridge.startQuery("SELECT * FROM types", false, true, 10);
        var plan = bridge.result();
        assertEquals(result.schema(), plan.schema());
        assertTrue(plan.rows().isEmpty());
    }

    @Test
    void valuesBeyondTheColumn() throws Exception {
        try (var bridge = BridgeProcess.open(folder, server.uri(), false)) {
            server.run("CREATE TABLE far (i int, t timestamp)",
                    "INSERT INTO far VALUES (1, '9999-12-31 00:00:00')");
            var result = bridge.query("SELECT * FROM far");
            assertTrue(result.message().startsWith("column T: a time does not fit"));
            assertEquals("execution 22000", result.kind() + " " + result.sqlstate());
            assertEquals("[[9999-12-31 00:00:00.0]]",
                    bridge.query("SELECT CAST(t AS varchar(29)) FROM far").texts().toString());
            assertEquals("[[1]]", bridge.query("VALUES 1").texts().toString());
        }
    }

    @Test
    void errorsAndWhatComesAfter() throws Exception {
        try (var bridge = BridgeProcess.open(folder, server.uri(), false)) {
            var syntax = bridge.query("SELECT nothing FROM numbers");
            assertEquals("query 42X04", syntax.kind() + " " + syntax.sqlstate());
            var running = bridge.query("SELECT 1 / (i - 7) FROM numbers");
            assertEquals("execution 22012", running.kind() + " " + running.sqlstate());
            assertTrue(running.error().get("usable").asBoolean());
            assertEquals("[[10]]", bridge.query("SELECT count(*) FROM numbers").texts().toString());
            assertEquals(0, bridge.end());
        }
    }

    @Test
    void nothingIsWritten() throws Exception {
        try (var bridge = BridgeProcess.open(folder, server.uri(), false)) {
            for (String sql : List.of("DELETE FROM numbers", "COMMIT", "-- a\nSELECT 1", "",
                    "CALL SYSCS_UTIL.SYSCS_CHECKPOINT_DATABASE()")) {
                var refused = bridge.query(sql);
                assertEquals("query 25006", refused.kind() + " " + refused.sqlstate());
                assertTrue(refused.message().startsWith("the source test is read-only: "));
            }
            assertEquals("[[10]]", bridge.query("SELECT count(*) FROM numbers").texts().toString());
        }
    }

    @Test
    void aWritableSource() throws Exception {
        server.run("CREATE TABLE written (i int, s varchar(10), d date, t timestamp)");
        try (var bridge = BridgeProcess.open(folder, server.uri(), true)) {
            var inserted = bridge.query("INSERT INTO written (i) VALUES 1, 2");
            assertNull(inserted.error());
            assertTrue(inserted.schema().getFields().isEmpty());
            assertEquals("[[2]]", bridge.query("SELECT count(*) FROM written").texts().toString());
            assertFalse(bridge.query("DELETE FROM written WHERE 1 / (i - 2) = 5").error() == null);
        }
        assertEquals("[[2]]", oracle(server.uri(), "SELECT count(*) FROM written").toString());
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 7, 1000})
    void batches(int batchRows) throws Exception {
        try (var bridge = BridgeProcess.open(folder, server.uri(), false)) {
            bridge.startQuery("SELECT a.i * 100 + b.i FROM numbers a, numbers b ORDER BY 1",
                    false, false, batchRows);
            var result = bridge.result();
            assertEquals(100, result.rows().size());
            assertEquals("[1010]", result.texts().get(99).toString());
        }
    }
}
