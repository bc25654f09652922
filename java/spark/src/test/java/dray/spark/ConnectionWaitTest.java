package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

class ConnectionWaitTest {
    private static final DrayException FULL =
            new DrayException("too many connections for role \"few\"", "53300", "resources");

    private int tries;

    private static DrayOptions waiting(int seconds) {
        return new DrayOptions(Map.of("url", "dray://localhost", "dbtable", "t",
                "connectionWait", String.valueOf(seconds)), false);
    }

    private static boolean isRefused(String message, String sqlState, String kind) {
        return ConnectionWait.isRefused(new DrayException(message, sqlState, kind));
    }

    @Test
    void howServersRefuse() {
        assertTrue(ConnectionWait.isRefused(FULL));
        // MySQL's errors 1040, 1203 and 1226.
        assertTrue(isRefused("Too many connections", "", "connection"));
        assertTrue(isRefused("Too many connections", "08004", "resources"));
        assertTrue(isRefused("the server refused the connection with error 1040 (its message came"
                + " before TLS, and may be somebody else's)", "", "connection"));
        assertTrue(isRefused("User few already has more than 'max_user_connections' active"
                + " connections", "42000", "connection"));
        assertTrue(isRefused("User 'few' has exceeded the 'max_user_connections' resource (current"
                + " value: 1)", "42000", "connection"));
        // What waiting does not help against.
        assertFalse(isRefused("User 'few' has exceeded the 'max_connections_per_hour' resource",
                "42000", "connection"));
        assertFalse(isRefused("no column max_user_connections", "42S22", "query"));
        assertFalse(isRefused("127.0.0.1:1040 does not answer", "", "connection"));
    }

    @Test
    void anotherTry() {
        assertEquals(3, (int) ConnectionWait.get(waiting(60), () -> {
            if (++tries < 3) {
                throw FULL;
            }
            return tries;
        }));
    }

    @Test
    void nobodyHasEnded() {
        DrayException failure = assertThrows(DrayException.class,
                () -> ConnectionWait.run(waiting(0), () -> {
                    tries++;
                    throw FULL;
                }));
        assertEquals(1, tries);
        assertEquals("53300", failure.sqlState());
        assertTrue(failure.getMessage().contains("option connectionWait"), failure.getMessage());
    }

    @Test
    void otherErrors() {
        DrayException other = new DrayException("there is no table t", "42P01", "query");
        assertEquals(other, assertThrows(DrayException.class,
                () -> ConnectionWait.run(waiting(60), () -> {
                    throw other;
                })));
    }

    @Test
    void interrupted() {
        Thread.currentThread().interrupt();
        assertThrows(DrayException.class, () -> ConnectionWait.run(waiting(60), () -> {
            throw FULL;
        }));
        assertTrue(Thread.interrupted());
    }
}
