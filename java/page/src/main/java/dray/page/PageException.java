package dray.page;

/**
 * A page, a page file or a schema was refused, or can't be read, or does not have what a program
 * asked for. It is the only exception that outside bytes cause.
 */
public final class PageException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Refusal refusal;

    public PageException(Refusal refusal, String what) {
        this(refusal, what, null);
    }

    public PageException(Refusal refusal, String what, Throwable cause) {
        super(what, cause);
        this.refusal = refusal;
    }

    /** What was violated, by the specification's name. */
    public Refusal refusal() {
        return refusal;
    }

    /** The same with what it is about in front. */
    PageException about(String what) {
        var about = new PageException(refusal, what + ": " + getMessage(), getCause());
        about.setStackTrace(getStackTrace());
        return about;
    }

    static PageException usage(String what) {
        return new PageException(Refusal.USAGE, what);
    }
}
