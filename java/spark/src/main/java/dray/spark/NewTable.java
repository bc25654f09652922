package dray.spark;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VarcharType;

/** A table that a catalog creates, with the rows of a query or without any. */
final class NewTable implements StagedTable, SupportsWrite {
    /** What happens to a table of the same name. */
    enum Existing {
        REFUSED(""),
        REPLACED("DROP TABLE "),
        REPLACED_IF_THERE("DROP TABLE IF EXISTS ");

        private final String drop;

        Existing(String drop) {
            this.drop = drop;
        }
    }

    /** Properties that Spark sets by itself, and that mean nothing here. */
    private static final Set<String> OF_SPARK =
            Set.of(TableCatalog.PROP_OWNER, TableCatalog.PROP_PROVIDER);

    private final DrayOptions options;
    private final TableName name;
    private final Column[] columns;
    private final Existing existing;
    /** Null until there are rows. */
    private WriteJob job;

    NewTable(DrayOptions options, TableName name, Column[] columns, Existing existing) {
        this.options = options;
        this.name = name;
        this.columns = columns;
        this.existing = existing;
    }

    /** Refuses what a table of Spark may have, and this one would not. */
    static void check(TableInfo info) {
        if (info.partitions().length > 0 || info.constraints().length > 0) {
            throw new DrayException("a table with partitions or constraints is created in the"
                    + " database, not by Spark");
        }
        for (String property : info.properties().keySet()) {
            if (!OF_SPARK.contains(property)) {
                throw new DrayException("a table of PostgreSQL has no property " + property);
            }
        }
        for (Column column : info.columns()) {
            if (column.dataType().existsRecursively(NewTable::isCollated)) {
                throw new DrayException("column " + column.name() + " has the type "
                        + column.dataType().sql() + ", whose collation the new column would not"
                        + " have: create the table in the database");
            }
            if (column.defaultValue() != null || column.generationExpression() != null
                    || column.identityColumnSpec() != null) {
                throw new DrayException("column " + column.name() + " has a default, an identity or"
                        + " an expression: create the table in the database");
            }
        }
    }

    private static boolean isCollated(DataType type) {
        return type instanceof StringType && !(type instanceof CharType)
                && !(type instanceof VarcharType) && !type.equals(DataTypes.StringType);
    }

    /** Refuses a name that the server would cut: a table of the shorter name is another one. */
    static void checkName(String name, int bytesMax) {
        if (name.isEmpty() || name.indexOf('\0') >= 0) {
            throw new DrayException("the name of a table of PostgreSQL has at least one character,"
                    + " and none that is NUL: give it another one");
        }
        int bytes = name.getBytes(StandardCharsets.UTF_8).length;
        if (bytes > bytesMax) {
            throw new DrayException("the name " + name + " has " + bytes + " bytes, and names of"
                    + " this server have " + bytesMax + ": shorten it");
        }
    }

    /** The name that it gets. */
    TableName tableName() {
        return name;
    }

    @Override
    public String name() {
        return "dray " + name.sql();
    }

    // Older versions of Spark call it, newer ones have columns() of it.
    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
        StructType schema = new StructType();
        for (Column column : columns) {
            schema = schema.add(column.name(), column.dataType(), column.nullable());
        }
        return schema;
    }

    @Override
    public Set<TableCapability> capabilities() {
        // REPLACE overwrites, although a new table has no rows.
        return Set.of(TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        DrayOptions ofWrite = options.ofWrite(info.options().asCaseSensitiveMap());
        job = WriteJob.into(ofWrite, this, info.schema());
        return new SupportsTruncate() {
            @Override
            public WriteBuilder truncate() {
                return this;
            }

            @Override
            public Write build() {
                return new DrayWrite(ofWrite, job);
            }
        };
    }

    /** Creates it under another name. */
    void create(Session session, DrayOptions ofWrite, TableName unnamed) {
        try (TableWriter none = new TableWriter(ofWrite, unnamed, "create", schema())) {
            none.end();
        }
        for (Column column : columns) {
            String quoted = Dialect.POSTGRESQL.quoted(column.name());
            if (!column.nullable()) {
                session.run("ALTER TABLE " + unnamed.sql() + " ALTER COLUMN " + quoted
                        + " SET NOT NULL");
            }
            if (column.comment() != null) {
                session.run("COMMENT ON COLUMN " + unnamed.sql() + "." + quoted + " IS "
                        + Dialect.POSTGRESQL.literal(column.comment()));
            }
        }
    }

    /** Gives it its name, in the transaction that fills it. */
    void publish(Session session, TableName unnamed) {
        if (existing != Existing.REFUSED) {
            PostgresWrites.runAlone(session, existing.drop + name.sql());
        }
        session.run("ALTER TABLE " + unnamed.sql() + " RENAME TO "
                + Dialect.POSTGRESQL.quoted(name.name()));
    }

    /** Spark calls it after the commit of the rows, if there are any. */
    @Override
    public void commitStagedChanges() {
        if (job != null) {
            return;
        }
        job = WriteJob.into(options, this, schema());
        job.begin("");
        try {
            job.commit(List.of());
        } catch (DrayException failure) {
            job.abort();
            throw failure;
        }
    }

    @Override
    public void abortStagedChanges() {
        if (job != null) {
            job.abort();
        }
    }
}
