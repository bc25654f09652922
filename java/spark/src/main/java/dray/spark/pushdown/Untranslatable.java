package dray.spark.pushdown;

/** The database could mean something else by an expression; the message says why. */
public final class Untranslatable extends Exception {
    private static final long serialVersionUID = 1;

    Untranslatable(String reason) {
        // It is an answer and no failure, so it has no stack trace.
        super(reason, null, false, false);
    }
}
