package dray.page;

import java.util.Locale;

/**
 * The names of the refusals in {@code spec/page.md} and {@code spec/page-file.md} section 9, and
 * two that are not about bytes: {@link #IO} and {@link #USAGE}.
 */
public enum Refusal {
    MAGIC, VERSION, FLAGS, RESERVED, OBJECTS, SIZE, CHECKSUM, SLOT, EXTENT, BITMAP, MISSING,
    BOOLEAN, STRING, ITEMS, TAIL, UTF8, PADDING, SCHEMA, LIMIT, CUT, DIGEST, FOOTER, INDEX, KEYS,
    PAGE,
    /** The file can't be read. */
    IO,
    /** The calling program asked for something that the file or page does not have or take. */
    USAGE;

    private final String word = name().toLowerCase(Locale.ROOT);

    /** The name as the specification writes it. */
    @Override
    public String toString() {
        return word;
    }
}
