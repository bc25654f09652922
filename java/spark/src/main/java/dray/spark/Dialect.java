package dray.spark;

import java.util.Locale;
import java.util.Optional;

/** Whose SQL a server takes. */
enum Dialect {
    DRAY('"'),
    POSTGRESQL('"'),
    MYSQL('`'),
    /**
     * Another database behind a Dray server. How it writes names and limits is not known, so its
     * statements are only those that were given.
     */
    OTHER('"');

    private final char quote;

    Dialect(char quote) {
        this.quote = quote;
    }

    /** As {@link Native#dialect} names it. */
    static Dialect of(String name) {
        switch (name) {
            case "dray": return DRAY;
            case "postgresql": return POSTGRESQL;
            case "mysql": return MYSQL;
            default: return OTHER;
        }
    }

    /** How the server writes what Spark means; none of {@link #OTHER}. */
    Optional<dray.spark.pushdown.Dialect> translation() {
        return dray.spark.pushdown.Dialect.of(name().toLowerCase(Locale.ROOT));
    }

    /** An identifier that means exactly this name. */
    String quoted(String name) {
        String mark = String.valueOf(quote);
        return mark + name.replace(mark, mark + mark) + mark;
    }

    /**
     * A string as a literal. Neither quotes nor the backslashes of MySQL end it, nor those of
     * PostgreSQL under any setting of {@code standard_conforming_strings}.
     */
    String literal(String text) {
        String quoted = "'" + text.replace("'", "''") + "'";
        if (text.indexOf('\\') < 0 || this != MYSQL && this != POSTGRESQL) {
            return quoted;
        }
        return (this == POSTGRESQL ? "E" : "") + quoted.replace("\\", "\\\\");
    }
}
