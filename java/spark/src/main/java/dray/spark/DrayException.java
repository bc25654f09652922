package dray.spark;

/** Why Dray could not do something: one sentence, with the server's SQLSTATE if it gave one. */
public final class DrayException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String sqlState;
    private final String kind;

    /** Native code throws this. */
    DrayException(String message, String sqlState, String kind) {
        super(sqlState.isEmpty() ? message : message + " [SQLSTATE " + sqlState + "]");
        this.sqlState = sqlState;
        this.kind = kind;
    }

    /** A wrong call or option. */
    DrayException(String message) {
        this(message, "", "usage");
    }

    /** Something failed in Java. */
    DrayException(String message, Throwable cause) {
        this(message, "", "internal");
        initCause(cause);
    }

    /** The same, with what the user can do. */
    DrayException(DrayException cause, String hint) {
        super(cause.getMessage() + " (" + hint + ")", cause);
        sqlState = cause.sqlState;
        kind = cause.kind;
    }

    /** The SQLSTATE, empty if there is none. */
    public String sqlState() {
        return sqlState;
    }

    /**
     * What kind of thing went wrong: {@code connection}, {@code authentication}, {@code query},
     * {@code execution}, {@code resources}, {@code limit}, {@code cancelled}, {@code protocol},
     * {@code usage} or {@code internal}.
     */
    public String kind() {
        return kind;
    }
}
