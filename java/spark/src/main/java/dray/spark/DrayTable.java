package dray.spark;

import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A table or a query of a database. */
final class DrayTable implements SupportsRead, SupportsWrite {
    private final String name;
    private final DrayOptions options;
    /** What was given: a table, or something else that takes no rows. */
    private final String target;
    private final Description description;
    private final Statement statement;
    /** Null until a scan that pushes down asks for it. */
    private Optional<Pushdown> pushdown;

    private DrayTable(String name, DrayOptions options, String target, String all,
            Function<List<String>, Statement> statement) {
        this.name = name;
        this.options = options;
        this.target = target;
        description = Description.of(options, all);
        checkNames(description.schema());
        List<String> columns = allColumns(description.schema(), description.dialect());
        this.statement = description.dialect() == Dialect.OTHER
                ? Statement.ofQuery(all, columns) : statement.apply(columns);
    }

    /** Whatever may stand after FROM. */
    static DrayTable ofTable(DrayOptions options, String name, String from) {
        return new DrayTable(name, options, from, "SELECT * FROM " + from,
                columns -> Statement.ofTable(from, columns));
    }

    static DrayTable ofQuery(DrayOptions options, String query) {
        return new DrayTable(
                "query", options, query, query, columns -> Statement.ofQuery(query, columns));
    }

    /** Refuses columns of the same name, since Spark reads the first for all of them. */
    private static void checkNames(StructType schema) {
        Set<String> names = new HashSet<>();
        for (String name : schema.fieldNames()) {
            if (!names.add(name)) {
                throw new DrayException("two columns have the name " + name + ", and Spark reads"
                        + " the first for both: give each its own name by AS in a query");
            }
        }
    }

    /**
     * The expressions that read all columns of a table. Those of a Dray server don't change, and it
     * plans a short statement once, however many they are.
     */
    static List<String> allColumns(StructType schema, Dialect dialect) {
        return dialect == Dialect.DRAY ? List.of("*") : columns(schema, dialect);
    }

    /** The expressions that read columns of the table. */
    static List<String> columns(StructType schema, Dialect dialect) {
        return Stream.of(schema.fieldNames()).map(dialect::quoted).toList();
    }

    boolean isOf(DrayOptions others, StructType schema) {
        return options.equals(others) && description.schema().equals(schema);
    }

    @Override
    public String name() {
        return "dray " + name;
    }

    // Older versions of Spark call it, newer ones have columns() of it.
    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
        return description.schema();
    }

    // Spark finds what it has cached by it.
    @Override
    public boolean equals(Object other) {
        return other instanceof DrayTable table && isOf(table.options, table.schema())
                && statement.equals(table.statement);
    }

    @Override
    public int hashCode() {
        return statement.hashCode();
    }

    @Override
    public Set<TableCapability> capabilities() {
        Set<TableCapability> capabilities = EnumSet.of(TableCapability.BATCH_READ,
                TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
        if (!options.isOfCatalog()) {
            // Spark would cast to the table's types, and so round or cut. It has to do so for the
            // tables of a catalog, since INSERT names no columns.
            capabilities.add(TableCapability.ACCEPT_ANY_SCHEMA);
        }
        return capabilities;
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new DrayWriteBuilder(options.ofWrite(info.options().asCaseSensitiveMap()),
                target, info.schema());
    }

    @Override
    public DrayScanBuilder newScanBuilder(CaseInsensitiveStringMap ofScan) {
        DrayOptions ofRead = options.ofRead(ofScan.asCaseSensitiveMap());
        return new DrayScanBuilder(ofRead, description, () -> pushdown(ofRead), statement);
    }

    private synchronized Optional<Pushdown> pushdown(DrayOptions ofRead) {
        if (!ofRead.isPushDown()) {
            return Optional.empty();
        }
        if (pushdown == null) {
            pushdown = Pushdown.of(ofRead, description, statement.from());
        }
        return pushdown;
    }
}
