package dray.jdbc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Databases that fail, statements that are cancelled, and servers that go away. */
@Timeout(60)
class FailuresTest {
    private static final String FOREVER =
            "SELECT a.x, b.x FROM system_range(1, 1000000) a, system_range(1, 1000000) b";

    @TempDir
    Path folder;

    @Test
    void noDriverAndNoDatabase() throws Exception {
        try (var bridge = new BridgeProcess(folder)) {
            var error = bridge.open("jdbc:nothing://host/db?password=s3cret", false);
            assertEquals("08001", error.get("sqlstate").asText());
            String message = error.get("message").asText();
            assertTrue(message.startsWith("no JDBC driver takes this uri, and these are known: "));
            assertTrue(message.contains("org.h2.Driver"), message);
            assertTrue(message.contains("--jdbc-classpath"), message);
            assertFalse(error.toString().contains("s3cret"));
            assertThrows(EOFException.class, bridge::next);
        }
        try (var bridge = new BridgeProcess(folder)) {
            var error = bridge.open("jdbc:derby://127.0.0.1:1/shop;password=s3cret", false);
            assertEquals("connection", error.get("kind").asText());
            assertTrue(error.get("message").asText().contains("127.0.0.1"), error.toString());
            assertFalse(error.toString().contains("s3cret"));
        }
    }

    @Test
    void aWrongPassword() throws Exception {
        String uri = "jdbc:h2:" + folder.resolve("locked") + ";USER=sa;PASSWORD=";
        DriverManager.getConnection(uri + "right").close();
        try (var bridge = new BridgeProcess(folder)) {
            var error = bridge.open(uri + "wr0ng", false);
            assertEquals("28000", error.get("sqlstate").asText());
            assertFalse(error.toString().contains("wr0ng"));
            assertFalse(Files.readString(bridge.log).contains("wr0ng"));
        }
    }

    @Test
    void cancelling() throws Exception {
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false)) {
            bridge.send('C', "{}".getBytes());
            // Between rows, and before the first.
            String silent = "SELECT sum(a.x + b.x) FROM system_range(1, 1000000) a,"
                    + " system_range(1, 1000000) b";
            for (String sql : new String[] {silent, silent}) {
                bridge.startQuery(sql, false, false, 100);
                Thread.sleep(500);
                bridge.send('C', "{}".getBytes());
                var cancelled = bridge.result();
                assertEquals("cancelled 57014", cancelled.kind() + " " + cancelled.sqlstate());
                assertTrue(cancelled.error().get("usable").asBoolean());
            }
            // At once.
            bridge.startQuery(silent, false, false, 100);
            bridge.send('C', "{}".getBytes());
            assertEquals("cancelled", bridge.result().kind());
            assertEquals("[[1]]", bridge.query("SELECT 1").texts().toString());
        }
    }

    @Test
    void theInputEnds() throws Exception {
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false)) {
            assertEquals(0, bridge.end());
        }
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false)) {
            bridge.startQuery(FOREVER, false, false, 100);
            bridge.end();
            assertFalse(bridge.isAlive());
        }
    }

    @Test
    void framesThatAreWrong() throws Exception {
        for (char kind : new char[] {'X', 'O', 'F'}) {
            try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false)) {
                bridge.send(kind, new byte[0]);
                assertThrows(EOFException.class, bridge::next);
                assertNotEquals(0, bridge.end());
            }
        }
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false)) {
            assertThrows(IOException.class, () -> {
                bridge.send('D', new byte[(1 << 20) + 1]);
                bridge.next();
            });
        }
    }

    @Test
    void theServerOfTheDatabaseIsKilled() throws Exception {
        try (var server = new DerbyServer(folder)) {
            server.run("CREATE TABLE numbers (i int)", "INSERT INTO numbers VALUES 1, 2, 3, 4, 5,"
                    + " 6, 7, 8, 9, 10");
            try (var bridge = BridgeProcess.open(folder, server.uri(), false)) {
                bridge.startQuery("SELECT a.i, cast('x' as char(254)) FROM numbers a, numbers b,"
                        + " numbers c, numbers d, numbers e, numbers f, numbers g",
                        false, false, 100);
                assertEquals('B', bridge.next().kind());
                assertEquals('D', bridge.next().kind());
                server.kill();
                var lost = bridge.result();
                assertEquals("connection", lost.kind());
                assertFalse(lost.error().get("usable").asBoolean());
                assertThrows(EOFException.class, bridge::next);
            }
        }
    }

    @Test
    void aDriverThatPrints() throws Exception {
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", true)) {
            assertEquals(null, bridge.query("CREATE ALIAS shout AS 'int shout() {"
                    + " System.out.println(\"FRAMES\"); return 1; }'").error());
            assertEquals("[[1]]", bridge.query("SELECT shout()").texts().toString());
            assertTrue(Files.readString(bridge.log).contains("FRAMES"));
        }
    }

    @Test
    void tooLittleMemory() throws Exception {
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false, "-Xmx24m")) {
            var failed = bridge.query("SELECT repeat('x', 20000000) AS t");
            assertEquals("resources 53200", failed.kind() + " " + failed.sqlstate(),
                    failed.error().toString());
        }
    }

    @Test
    void rowsBeyondTheLimit() throws Exception {
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false)) {
            var failed = bridge.query("SELECT repeat('x', 300) AS a, repeat('x', 300) AS b", 500);
            assertEquals("limit 54000", failed.kind() + " " + failed.sqlstate());
            assertTrue(failed.message().contains("a row needs 608 bytes"), failed.message());
        }
    }

    @Test
    void largeCells() throws Exception {
        try (var bridge = BridgeProcess.open(folder, "jdbc:h2:mem:", false, "-Xmx512m")) {
            var large = bridge.query("SELECT repeat('x', 20000000) AS t");
            assertEquals(20_000_000, large.texts().get(0).get(0).length());
            var larger = bridge.query("SELECT repeat('x', 70000000) AS t");
            assertEquals("limit 54000", larger.kind() + " " + larger.sqlstate());
            assertTrue(larger.message().startsWith("column T: a value has more than 64 MiB"));
        }
    }
}
