package dray.jdbc;

import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.sql.SQLNonTransientConnectionException;
import java.sql.SQLRecoverableException;
import java.sql.SQLSyntaxErrorException;
import java.sql.SQLTransientConnectionException;
import java.util.LinkedHashSet;
import java.util.stream.Collectors;

/** A driver's errors as those of the frame E, without passwords. */
final class Errors {
    private static final int SQLSTATE_CHARACTERS = 5;
    private static final int MESSAGE_CHARACTERS_MAX = 10_000;

    private final Secrets secrets;

    Errors(String uri) {
        secrets = new Secrets(uri);
    }

    /** Why the database can't be opened. */
    Failure ofOpening(Throwable error, Open open) {
        if (error instanceof SQLException && DriverManager.drivers().noneMatch(
                driver -> accepts(driver, open.uri()))) {
            var names = DriverManager.drivers().map(driver -> driver.getClass().getName())
                    .sorted().collect(Collectors.joining(", "));
            return new Failure(Failure.Kind.CONNECTION, "08001",
                    "no JDBC driver takes this uri, and these are known: "
                            + (names.isEmpty() ? "none" : names)
                            + ". The server's option --jdbc-classpath names the driver's jar",
                    "");
        }
        return failure(Failure.Kind.CONNECTION, error);
    }

    private static boolean accepts(java.sql.Driver driver, String uri) {
        try {
            return driver.acceptsURL(uri);
        } catch (SQLException wrongUri) {
            return true;
        }
    }

    /** Why a statement failed. */
    Failure ofStatement(Throwable error, Cancellation cancellation) {
        if (error instanceof Failure failure) {
            return new Failure(failure.kind(), failure.sqlstate(),
                    secrets.hide(failure.getMessage()), failure.hint());
        }
        if (error instanceof OutOfMemoryError
                || error instanceof org.apache.arrow.memory.OutOfMemoryException) {
            return new Failure(Failure.Kind.RESOURCES, "53200",
                    "the driver and its rows need more memory than the source has",
                    "the server's option --jdbc-memory gives more");
        }
        if (cancellation.isCancelled()) {
            return Failure.cancelled();
        }
        return failure(kind(error), error);
    }

    private static Failure.Kind kind(Throwable error) {
        if (!(error instanceof SQLException failed)) {
            return Failure.Kind.INTERNAL;
        }
        String state = sqlstate(failed);
        if (error instanceof SQLNonTransientConnectionException
                || error instanceof SQLTransientConnectionException
                || error instanceof SQLRecoverableException
                || state.startsWith("08") || state.startsWith("57P")) {
            return Failure.Kind.CONNECTION;
        }
        if (error instanceof SQLSyntaxErrorException
                || error instanceof SQLFeatureNotSupportedException
                || state.matches("(0A|07|25|26|28|37|3D|3F|42|S0).*")) {
            return Failure.Kind.QUERY;
        }
        return state.startsWith("53") ? Failure.Kind.RESOURCES : Failure.Kind.EXECUTION;
    }

    private Failure failure(Failure.Kind kind, Throwable error) {
        String state = error instanceof SQLException failed ? sqlstate(failed) : "";
        // A password that is cut would not be found.
        return new Failure(kind, state, cut(secrets.hide(message(error))), "");
    }

    private static String sqlstate(SQLException error) {
        String state = error.getSQLState();
        return state != null && state.length() == SQLSTATE_CHARACTERS ? state : "";
    }

    /** What an error says, and what its causes say beyond that, in one line. */
    private static String message(Throwable error) {
        var texts = new LinkedHashSet<String>();
        for (Throwable one = error; one != null && texts.size() < 5; one = next(one)) {
            String text = one.getMessage();
            boolean isSql = one instanceof SQLException;
            text = text == null || text.isBlank() || !isSql && one == error
                    ? one.getClass().getSimpleName() + (text == null ? "" : ": " + text) : text;
            String line = text.strip().replaceAll("\\s*[\\r\\n]+\\s*", "; ");
            if (texts.stream().noneMatch(known -> known.contains(line))) {
                texts.add(line);
            }
        }
        return String.join(": ", texts);
    }

    private static String cut(String message) {
        return message.length() <= MESSAGE_CHARACTERS_MAX
                ? message : message.substring(0, MESSAGE_CHARACTERS_MAX) + "…";
    }

    private static Throwable next(Throwable error) {
        return error.getCause() == error ? null : error.getCause();
    }
}
