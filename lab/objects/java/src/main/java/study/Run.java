package study;

import java.io.IOException;

/** One run of an experiment: what was asked for. */
public record Run(Options options, Catalog.Entry entry, Kind kind) {
    public static Run of(Options options) {
        return new Run(options, Catalog.of(options.text("implementation")),
                Kind.of(options.text("object", "vector")));
    }

    /** An implementation for one thread. */
    public Implementation implementation() {
        return entry.make().apply(kind);
    }

    /** Whether objects are validated before they are opened. */
    public boolean validates() {
        return options.validate() && entry.validatesApart();
    }

    public void warmUp() throws IOException {
        WarmUp.run(options, entry, kind);
    }
}
