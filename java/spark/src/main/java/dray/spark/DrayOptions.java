package dray.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** All options of the connector. Their names are not case-sensitive, as everywhere in Spark. */
final class DrayOptions implements Serializable {
    private static final long serialVersionUID = 1;

    /** What option names stand for. The README has the same table. */
    enum Name {
        url("where to connect"),
        dbtable("a table, or anything else that may stand after FROM"),
        query("a SELECT"),
        numPartitions("the most parts that a scan is divided into"),
        maxConnections("the most parts that a scan is divided into, whatever else is set"),
        bytesPerPartition("how many bytes of Arrow data a part should have"),
        lease("how many seconds a scan's parts can be read"),
        pushDown("whether the database filters, aggregates and sorts: true, false"),
        taskMemory("the most bytes of batches that a task holds"),
        numeric("what numeric without a precision becomes: text, float64, decimal(p,s)"),
        nonfinite("what infinite dates and NaN among decimals become: error, null, text"),
        extension("whether PostgreSQL's extension is used: auto, always, never"),
        connectTimeout("the seconds that connecting may take"),
        readTimeout("the seconds that a server may be silent"),
        batchRows("the least rows of a batch"),
        batchBytes("the bytes that make a batch");

        private final String meaning;

        Name(String meaning) {
            this.meaning = meaning;
        }
    }

    /** Those that native code knows. */
    private static final List<Name> NATIVE = List.of(Name.numeric, Name.nonfinite, Name.extension,
            Name.connectTimeout, Name.readTimeout, Name.batchRows, Name.batchBytes);
    /** Options of Spark's JDBC source that have no place here, and why. */
    private static final Map<String, String> OF_JDBC = Map.of(
            "partitioncolumn", "tables are divided by their blocks or their primary key",
            "lowerbound", "tables are divided by their blocks or their primary key",
            "upperbound", "tables are divided by their blocks or their primary key",
            "predicates", "tables are divided by their blocks or their primary key",
            "fetchsize", "rows come as batches, see batchRows",
            "driver", "there is no JDBC driver",
            "user", "the url has the user",
            "password", "the url has the password, or a password file",
            "path", "a table is named by dbtable");
    private static final long LEASE_SECONDS = 3600;
    private static final long LEASE_SECONDS_MAX = 24 * 3600;
    static final int PARTS_MAX = 65536;
    private static final long TASK_MEMORY = 1L << 30;
    private static final String NONFINITE_ERROR = "error";

    private final LinkedHashMap<Name, String> values = new LinkedHashMap<>();

    /** The options of a table, or of a catalog, which names neither table nor query. */
    DrayOptions(Map<String, String> given, boolean ofCatalog) {
        for (Map.Entry<String, String> option : new TreeMap<>(given).entrySet()) {
            values.put(name(option.getKey()), option.getValue().trim());
        }
        if (url().isEmpty()) {
            throw new DrayException("option url is missing: it names the server, as in"
                    + " postgresql://me@localhost/shop or dray://localhost/shop");
        }
        boolean table = values.containsKey(Name.dbtable);
        boolean query = values.containsKey(Name.query);
        if (ofCatalog ? table || query : table == query) {
            throw new DrayException(ofCatalog ? "a catalog has neither dbtable nor query"
                    : "one of the options dbtable and query is needed, and not both");
        }
        atMost();
        bytesPerPartition();
        leaseMs();
        isPushDown();
        taskMemory();
    }

    private static Name name(String given) {
        String wanted = given.toLowerCase(Locale.ROOT);
        for (Name name : Name.values()) {
            if (name.name().toLowerCase(Locale.ROOT).equals(wanted)) {
                return name;
            }
        }
        String why = OF_JDBC.get(wanted);
        if (why != null) {
            throw new DrayException("there is no option " + given + ": " + why);
        }
        Name nearest = Stream.of(Name.values()).min(Comparator.comparing(
                name -> distance(name.name().toLowerCase(Locale.ROOT), wanted))).orElseThrow();
        throw new DrayException("there is no option " + given + ": " + nearest + " is the nearest, "
                + nearest.meaning + " (there are " + Stream.of(Name.values()).map(Name::name)
                .collect(Collectors.joining(", ")) + ")");
    }

    /** How many letters must be added, removed or replaced. */
    private static int distance(String one, String two) {
        int[] row = new int[two.length() + 1];
        for (int j = 0; j <= two.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= one.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= two.length(); j++) {
                int replaced = diagonal + (one.charAt(i - 1) == two.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, Math.min(row[j], row[j - 1]) + 1);
            }
        }
        return row[two.length()];
    }

    /** Where to connect. It may have a password, so it is in no message. */
    String url() {
        return values.getOrDefault(Name.url, "");
    }

    /** What stands after FROM, or null. */
    String dbtable() {
        return values.get(Name.dbtable);
    }

    /** A SELECT without a semicolon, or null. */
    String query() {
        String query = values.get(Name.query);
        return query == null ? null : query.replaceFirst("[\\s;]+$", "");
    }

    /** The most parts, 0 if the size of the table decides. */
    int atMost() {
        long parts = number(Name.numPartitions, 1, PARTS_MAX).orElse(0);
        long connections = number(Name.maxConnections, 1, PARTS_MAX).orElse(0);
        return (int) (parts == 0 || connections == 0
                ? Math.max(parts, connections) : Math.min(parts, connections));
    }

    /** How large parts should be, if this says so and not their number. */
    OptionalLong bytesPerPartition() {
        OptionalLong bytes = number(Name.bytesPerPartition, 1, Long.MAX_VALUE);
        if (bytes.isPresent() && values.containsKey(Name.numPartitions)) {
            throw new DrayException("options numPartitions and bytesPerPartition exclude each"
                    + " other");
        }
        return bytes;
    }

    long leaseMs() {
        return number(Name.lease, 1, LEASE_SECONDS_MAX).orElse(LEASE_SECONDS) * 1000;
    }

    /** Whether more than the choice of columns and a limit is pushed down. */
    boolean isPushDown() {
        String text = values.getOrDefault(Name.pushDown, "false").toLowerCase(Locale.ROOT);
        if (!text.equals("true") && !text.equals("false")) {
            throw new DrayException("option pushDown is \"" + text + "\", expected true or false");
        }
        return text.equals("true");
    }

    /** Whether a column of the type has the database's values, and NULL only where it has. */
    boolean isExact(DataType type) {
        boolean decimal = type instanceof DecimalType;
        boolean time = type instanceof DateType || type instanceof TimestampType
                || type instanceof TimestampNTZType;
        String nonfinite = values.getOrDefault(Name.nonfinite, NONFINITE_ERROR);
        return !(decimal && values.containsKey(Name.numeric))
                && (!(decimal || time) || nonfinite.equals(NONFINITE_ERROR));
    }

    /** The most bytes of batches that a task holds. */
    long taskMemory() {
        return number(Name.taskMemory, 1, Long.MAX_VALUE).orElse(TASK_MEMORY);
    }

    /** The options of {@link Native}: names and values in turn. */
    String[] natives() {
        List<String> pairs = new ArrayList<>();
        for (Name name : NATIVE) {
            if (values.containsKey(name)) {
                pairs.add(name.name());
                pairs.add(values.get(name));
            }
        }
        return pairs.toArray(String[]::new);
    }

    private OptionalLong number(Name name, long least, long most) {
        String text = values.get(name);
        if (text == null) {
            return OptionalLong.empty();
        }
        try {
            long number = Long.parseLong(text);
            if (number >= least && number <= most) {
                return OptionalLong.of(number);
            }
        } catch (NumberFormatException notANumber) {
            // The message below says so.
        }
        throw new DrayException("option " + name + " is \"" + text + "\", expected a number from "
                + least + (most == Long.MAX_VALUE ? " on" : " to " + most));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof DrayOptions options && values.equals(options.values);
    }

    @Override
    public int hashCode() {
        return values.hashCode();
    }
}
