package dray.spark;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;

/**
 * The name of a table.
 *
 * @param dialect whose SQL writes it
 * @param schema  in MySQL its database
 */
record TableName(Dialect dialect, String schema, String name) implements Serializable {
    private static final SecureRandom RANDOM = new SecureRandom();
    /** How the names of unfinished tables begin, as everywhere in Dray. */
    private static final String UNFINISHED = "dray_unfinished_";
    /** The most bytes of a name, without those that MySQL's mark has more. */
    private static final int BYTES_MAX = 59;
    private static final int RANDOM_DIGITS = 16;

    /** As SQL writes it. */
    String sql() {
        return dialect.quoted(schema) + "." + dialect.quoted(name);
    }

    /** A name that no other table has, and that says which table it is for. */
    TableName unfinished(String inSchema) {
        return new TableName(dialect, inSchema,
                unfinishedPrefix() + String.format("%016x", RANDOM.nextLong()));
    }

    /** The digits of such a name, which no other one has. */
    String randomDigits() {
        return name.substring(name.length() - RANDOM_DIGITS);
    }

    /** What stands before the digits of such names. Other tables may share it. */
    String unfinishedPrefix() {
        int room = BYTES_MAX - UNFINISHED.length() - "_".length() - RANDOM_DIGITS;
        String shown = name;
        while (shown.getBytes(StandardCharsets.UTF_8).length > room) {
            shown = shown.substring(0, shown.offsetByCodePoints(shown.length(), -1));
        }
        return UNFINISHED + shown + "_";
    }
}
