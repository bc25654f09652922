package dray.jdbc;

/** Why a database can't be opened, or a statement fails: the frame E. */
final class Failure extends Exception {
    private static final long serialVersionUID = 1L;

    /** The kinds of {@code spec/bridge.md} section 3. */
    enum Kind {
        QUERY, EXECUTION, CONNECTION, RESOURCES, LIMIT, CANCELLED, INTERNAL
    }

    private final Kind kind;
    private final String sqlstate;
    private final String hint;

    Failure(Kind kind, String sqlstate, String message, String hint) {
        super(message);
        this.kind = kind;
        this.sqlstate = sqlstate;
        this.hint = hint;
    }

    /** A value, or a type, that its column can't have. */
    static Failure ofColumn(String column, String what, String hint) {
        return new Failure(Kind.EXECUTION, "22000", "column " + column + ": " + what, hint);
    }

    static Failure cancelled() {
        return new Failure(Kind.CANCELLED, "57014", "the statement was cancelled", "");
    }

    Kind kind() {
        return kind;
    }

    /** Five characters, or none. */
    String sqlstate() {
        return sqlstate;
    }

    String hint() {
        return hint;
    }
}
