package dray.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.types.CalendarIntervalType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** All options of the connector. Their names are not case-sensitive, as everywhere in Spark. */
final class DrayOptions implements Serializable {
    private static final long serialVersionUID = 1;

    /** What option names stand for. The README has the same table. */
    enum Name {
        url("where to connect"),
        servers("the Dray servers that read the parts of each other's plans"),
        dbtable("a table, or anything else that may stand after FROM"),
        query("a SELECT"),
        numPartitions("the most parts that a scan is divided into"),
        maxConnections("the most parts that a scan is divided into, whatever else is set"),
        bytesPerPartition("how many bytes of Arrow data a part should have"),
        lease("how many seconds a scan's parts can be read"),
        snapshot("the name of a snapshot that several scans have"),
        pushDown("whether the database filters, aggregates and sorts: true, false"),
        aggregates("where what is pushed down is aggregated: auto, whole, parts"),
        taskMemory("the most bytes of batches that a task holds"),
        numeric("what numeric without a precision becomes: text, float64, decimal(p,s)"),
        nonfinite("what infinite dates and NaN among decimals become: error, null, text"),
        extension("whether PostgreSQL's extension is used: auto, always, never"),
        connectTimeout("the seconds that connecting may take"),
        readTimeout("the seconds that a server may be silent"),
        connectionWait("the seconds that others may have all connections"),
        batchRows("the least rows of a batch"),
        batchBytes("the bytes that make a batch"),
        truncate("whether overwriting empties a table of PostgreSQL by TRUNCATE: true, false"),
        stagingSchema("the schema of the table in which rows wait for the commit");

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
    /** Those that say something about writing. */
    private static final Set<Name> OF_WRITING = EnumSet.of(Name.url, Name.dbtable, Name.taskMemory,
            Name.connectTimeout, Name.readTimeout, Name.connectionWait, Name.batchRows,
            Name.batchBytes, Name.truncate, Name.stagingSchema);
    /** Those that a read of a table can have, since its columns stay what they are. */
    private static final Set<Name> OF_READING = EnumSet.complementOf(EnumSet.of(Name.url,
            Name.dbtable, Name.query, Name.numeric, Name.nonfinite, Name.truncate,
            Name.stagingSchema));
    private static final long LEASE_SECONDS = 3600;
    private static final long LEASE_SECONDS_MAX = 24 * 3600;
    private static final long CONNECTION_WAIT_SECONDS = 60;
    private static final long CONNECTION_WAIT_SECONDS_MAX = 24 * 3600;
    static final int PARTS_MAX = 65536;
    private static final long TASK_MEMORY = 1L << 30;
    private static final long BATCH_ROWS = 65536;
    private static final long BATCH_BYTES = 8L << 20;
    /** Batches of a task that may be on their way at a time, with the one that is filled. */
    private static final long BATCHES_WRITTEN = 8;
    private static final String NONFINITE_ERROR = "error";
    /** A host, or an IPv6 address in brackets, and perhaps a port. */
    private static final Pattern SERVER =
            Pattern.compile("(?:\\[[0-9A-Fa-f:.%]+]|[^\\s,:/?@\\[\\]]+)(?::[0-9]{1,5})?");
    private static final Pattern DECIMAL =
            Pattern.compile("decimal\\(\\s*(\\d{1,3})\\s*(?:,\\s*(\\d{1,3})\\s*)?\\)");
    /** The digits of Arrow's longest decimals. */
    private static final int DIGITS_MAX = 76;
    private static final double TIMEOUT_SECONDS_MAX = 10 * 365 * 86_400.0;

    private final LinkedHashMap<Name, String> values = new LinkedHashMap<>();

    /** The options of a table, or of a catalog, which names neither table nor query. */
    DrayOptions(Map<String, String> given, boolean ofCatalog) {
        List<String> wrong = new ArrayList<>();
        for (Map.Entry<String, String> option : new TreeMap<>(given).entrySet()) {
            check(wrong, () -> values.put(name(option.getKey()), option.getValue().trim()));
        }
        if (!wrong.isEmpty()) {
            wrong.add("there are " + Stream.of(Name.values()).map(Name::name)
                    .collect(Collectors.joining(", ")));
        }
        boolean table = values.containsKey(Name.dbtable);
        boolean query = values.containsKey(Name.query);
        if (url().isEmpty()) {
            wrong.add("option url is missing: it names the server, as in"
                    + " postgresql://me@localhost/shop or dray://localhost/shop");
        }
        // One of them may be among the names that are wrong.
        if (wrong.isEmpty() && (ofCatalog ? table || query : table == query)) {
            wrong.add(ofCatalog ? "a catalog has neither dbtable nor query"
                    : "one of the options dbtable and query is needed, and not both");
        }
        checkValues(wrong);
    }

    /** Fails if values are wrong, or something else was. */
    private void checkValues(List<String> wrong) {
        for (Runnable value : List.<Runnable>of(this::atMost, this::bytesPerPartition,
                this::leaseMs, this::connectionWaitSeconds, this::snapshot, this::isPushDown,
                this::aggregation, this::isTruncate, this::taskMemory, this::batchRows,
                this::batchBytes, this::checkNumeric,
                this::servers, () -> checkOneOf(Name.nonfinite, NONFINITE_ERROR, "null", "text"),
                () -> checkOneOf(Name.extension, "auto", "always", "never"),
                () -> checkTimeout(Name.connectTimeout), () -> checkTimeout(Name.readTimeout))) {
            check(wrong, value);
        }
        if (!wrong.isEmpty()) {
            throw new DrayException(String.join("; ", wrong));
        }
    }

    private static void check(List<String> wrong, Runnable option) {
        try {
            option.run();
        } catch (DrayException refused) {
            wrong.add(refused.getMessage());
        }
    }

    private DrayOptions(LinkedHashMap<Name, String> values) {
        this.values.putAll(values);
    }

    /** These, and what is given for one read. */
    DrayOptions ofRead(Map<String, String> given) {
        DrayOptions options = new DrayOptions(values);
        List<String> wrong = new ArrayList<>();
        for (Map.Entry<String, String> option : new TreeMap<>(given).entrySet()) {
            check(wrong, () -> {
                Name name = name(option.getKey());
                if (!OF_READING.contains(name)) {
                    checkOwn(name, option.getValue());
                }
                options.values.put(name, option.getValue().trim());
            });
        }
        options.checkValues(wrong);
        return options;
    }

    /** Refuses another value than the one by which the table was found. */
    private void checkOwn(Name name, String given) {
        if (!given.trim().equals(values.get(name))) {
            throw new DrayException("option " + name + " can't be given for one use of a table, but"
                    + " for the table or the catalog");
        }
    }

    /** These, and what is given for one write. */
    DrayOptions ofWrite(Map<String, String> given) {
        DrayOptions options = new DrayOptions(values);
        List<String> wrong = new ArrayList<>();
        for (Map.Entry<String, String> option : new TreeMap<>(given).entrySet()) {
            check(wrong, () -> {
                Name name = name(option.getKey());
                if (name == Name.url || name == Name.dbtable) {
                    checkOwn(name, option.getValue());
                }
                if (!OF_WRITING.contains(name)) {
                    throw new DrayException("option " + name + " is for reading: " + name.meaning);
                }
                options.values.put(name, option.getValue().trim());
            });
        }
        if (!wrong.isEmpty()) {
            wrong.add("writing takes " + OF_WRITING.stream().map(Name::name)
                    .collect(Collectors.joining(", ")));
        }
        options.checkValues(wrong);
        return options;
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
                + nearest.meaning);
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

    /** The servers that read parts in turn, as the option names them; none if the url's does. */
    private List<String> servers() {
        String text = values.get(Name.servers);
        if (text == null) {
            return List.of();
        }
        if (!url().startsWith("dray://") && !url().startsWith("drays://")) {
            throw new DrayException("option servers is for Dray servers, and the url is not"
                    + " dray://HOST or drays://HOST");
        }
        List<String> servers = Stream.of(text.split(",", -1)).map(String::trim).toList();
        for (String server : servers) {
            if (!SERVER.matcher(server).matches()) {
                throw new DrayException("option servers has \"" + server + "\", expected hosts with"
                        + " or without ports, with commas between: HOST,HOST:PORT");
            }
        }
        return servers;
    }

    /** Where an attempt at a task reads a part: each attempt at the next server. */
    String urlOfPart(int index, int attempt) {
        List<String> servers = servers();
        if (servers.isEmpty()) {
            return url();
        }
        String server = servers.get((int) (((long) index + attempt) % servers.size()));
        int end = url().indexOf('?') < 0 ? url().length() : url().indexOf('?');
        String before = url().substring(0, end);
        int host = Math.max(before.indexOf("://") + "://".length(), before.lastIndexOf('@') + 1);
        int path = before.indexOf('/', host) < 0 ? end : before.indexOf('/', host);
        String port = portOf(server).isEmpty() ? portOf(before.substring(host, path)) : "";
        return before.substring(0, host) + server + port + url().substring(path);
    }

    /** With its colon; empty if there is none. */
    private static String portOf(String server) {
        int colon = server.lastIndexOf(':');
        return colon < 0 || server.endsWith("]") ? "" : server.substring(colon);
    }

    /** Whether statements of both can be one: only what is read may differ. */
    boolean isSameSource(DrayOptions other) {
        return withoutTable().equals(other.withoutTable());
    }

    private Map<Name, String> withoutTable() {
        Map<Name, String> rest = new LinkedHashMap<>(values);
        rest.keySet().removeAll(List.of(Name.dbtable, Name.query));
        return rest;
    }

    /** What stands after FROM, or null. */
    String dbtable() {
        return values.get(Name.dbtable);
    }

    /** Whether these are a catalog's, which name neither table nor query. */
    boolean isOfCatalog() {
        return !values.containsKey(Name.dbtable) && !values.containsKey(Name.query);
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

    /** How long to wait while others have all connections that the source allows. */
    long connectionWaitSeconds() {
        return number(Name.connectionWait, 0, CONNECTION_WAIT_SECONDS_MAX)
                .orElse(CONNECTION_WAIT_SECONDS);
    }

    /** The name of the snapshot that scans have in common, null if each has its own. */
    String snapshot() {
        String name = values.get(Name.snapshot);
        if (name != null && name.isEmpty()) {
            throw new DrayException("option snapshot is empty, expected a name: scans with the same"
                    + " url and name have one snapshot");
        }
        return name;
    }

    /** Whether more than the choice of columns and a limit is pushed down. */
    boolean isPushDown() {
        return is(Name.pushDown, true);
    }

    /** Where aggregates are computed that are pushed down. */
    enum Aggregation {
        /** What seems to be faster. */
        AUTO,
        /** By one statement. */
        WHOLE,
        /** By each part of a table, and of these by Spark. */
        PARTS
    }

    Aggregation aggregation() {
        String text = values.getOrDefault(Name.aggregates, "auto").toUpperCase(Locale.ROOT);
        for (Aggregation known : Aggregation.values()) {
            if (known.name().equals(text)) {
                return known;
            }
        }
        throw new DrayException("option aggregates is \"" + values.get(Name.aggregates)
                + "\", expected auto, whole or parts");
    }

    /** Whether the url is of PostgreSQL itself, and not of a Dray server before it. */
    boolean isPostgreSql() {
        String url = url();
        return url.startsWith("postgresql://") || url.startsWith("postgres://")
                || !url.contains("://") && url.contains("=");
    }

    /** Whether the url is of MySQL or MariaDB itself. */
    boolean isMySql() {
        return url().startsWith("mysql://") || url().startsWith("mariadb://");
    }

    /** Whether overwriting empties the table by TRUNCATE. */
    boolean isTruncate() {
        return is(Name.truncate, false);
    }

    private boolean is(Name name, boolean otherwise) {
        String text = values.getOrDefault(name, String.valueOf(otherwise))
                .toLowerCase(Locale.ROOT);
        if (!text.equals("true") && !text.equals("false")) {
            throw new DrayException("option " + name + " is \"" + text
                    + "\", expected true or false");
        }
        return text.equals("true");
    }

    /** The schema of staging tables, null for that of the table. */
    String stagingSchema() {
        return values.get(Name.stagingSchema);
    }

    /** How many rows make a batch. */
    long batchRows() {
        return number(Name.batchRows, 1, Integer.MAX_VALUE).orElse(BATCH_ROWS);
    }

    /** How many bytes make a batch that is written. */
    long batchBytes() {
        long bytes = number(Name.batchBytes, 1, Long.MAX_VALUE).orElse(BATCH_BYTES);
        return Math.min(bytes, taskMemory() / BATCHES_WRITTEN);
    }

    /**
     * Whether a column of the type has the database's values, and NULL only where it has, and the
     * database's aggregates of it have Spark's.
     */
    boolean isExact(DataType type) {
        boolean decimal = type instanceof DecimalType;
        boolean finite = decimal || type instanceof DateType || type instanceof TimestampType
                || type instanceof TimestampNTZType || type instanceof TimeType
                || type instanceof CalendarIntervalType;
        // A sum of what has no precision would be rounded to one, where reading it is an error.
        boolean rounded = decimal && values.getOrDefault(Name.numeric, "").startsWith("decimal");
        return !rounded && (!finite
                || values.getOrDefault(Name.nonfinite, NONFINITE_ERROR).equals(NONFINITE_ERROR));
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

    /**
     * Those for a statement that is read as a whole. MariaDB may read it over several connections,
     * as many as it likes.
     */
    String[] nativesOfWhole() {
        if (!isMySql() || !values.containsKey(Name.maxConnections)) {
            return natives();
        }
        return Stream.concat(Stream.of(natives()), Stream.of("partitions", "1"))
                .toArray(String[]::new);
    }

    // Native code refuses the same values, but one after the other.

    private void checkNumeric() {
        String text = values.getOrDefault(Name.numeric, "text");
        Matcher decimal = DECIMAL.matcher(text);
        boolean isDecimal = decimal.matches();
        if (isDecimal) {
            int precision = Integer.parseInt(decimal.group(1));
            int scale = decimal.group(2) == null ? 0 : Integer.parseInt(decimal.group(2));
            isDecimal = precision > 0 && precision <= DIGITS_MAX && scale <= precision;
        }
        if (!isDecimal && !text.equals("text") && !text.equals("float64")) {
            throw new DrayException("option numeric is \"" + text + "\", expected text, float64 or"
                    + " decimal(PRECISION,SCALE) up to " + DIGITS_MAX + " digits");
        }
    }

    private void checkOneOf(Name name, String... known) {
        String text = values.get(name);
        if (text != null && !List.of(known).contains(text)) {
            throw new DrayException("option " + name + " is \"" + text + "\", expected one of "
                    + String.join(", ", known));
        }
    }

    private void checkTimeout(Name name) {
        String text = values.get(name);
        if (text != null && !isSeconds(text)) {
            throw new DrayException("option " + name + " is \"" + text + "\", expected a number of"
                    + " seconds above 0 and up to ten years");
        }
    }

    private static boolean isSeconds(String text) {
        try {
            double seconds = Double.parseDouble(text);
            return seconds > 0 && seconds <= TIMEOUT_SECONDS_MAX;
        } catch (NumberFormatException notANumber) {
            return false;
        }
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
