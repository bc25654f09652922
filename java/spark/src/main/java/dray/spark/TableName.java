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

    /** As SQL writes it. */
    String sql() {
        return dialect.quoted(schema) + "." + dialect.quoted(name);
    }

    /** A name that no other table has, and that says which table it is for. */
    TableName unfinished(String inSchema) {
        String random = String.format("_%016x", RANDOM.nextLong());
        int room = BYTES_MAX - UNFINISHED.length() - random.length();
        String shown = name;
        while (shown.getBytes(StandardCharsets.UTF_8).length > room) {
            shown = shown.substring(0, shown.offsetByCodePoints(shown.length(), -1));
        }
        return new TableName(dialect, inSchema, UNFINISHED + shown + random);
    }
}
