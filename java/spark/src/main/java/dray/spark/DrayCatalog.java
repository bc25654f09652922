package dray.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A catalog of a database's tables: {@code spark.sql.catalog.shop=dray.spark.DrayCatalog} and
 * {@code spark.sql.catalog.shop.url=…} make {@code SELECT … FROM shop.public.orders} work. Other
 * options are those of tables.
 */
public final class DrayCatalog implements StagingTableCatalog, SupportsNamespaces {
    private static final Logger LOG = LoggerFactory.getLogger(DrayCatalog.class);
    /** As the information schema has them, which leaves out materialized views. */
    private static final String TABLES_OF_POSTGRESQL =
            "(SELECT n.nspname AS table_schema, c.relname AS table_name"
            + " FROM pg_catalog.pg_class c"
            + " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
            + " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')"
            + " AND NOT pg_catalog.pg_is_other_temp_schema(n.oid)"
            + " AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')"
            + " OR pg_catalog.has_table_privilege(c.oid,"
            + " 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')"
            + " OR pg_catalog.has_any_column_privilege(c.oid,"
            + " 'SELECT, INSERT, UPDATE, REFERENCES'))) AS tables";

    /** What a url has that nobody else should see. A Dray server's has a token before its host. */
    private static final Pattern SECRET =
            Pattern.compile("(?i)://[^@]*:[^@]+@|^drays?://[^/@]+@|\\bpassword\\s*=");
    private static final String REDACTION = "spark.redaction.regex";
    /** What all versions of Spark hide if {@link #REDACTION} is not set. */
    private static final String REDACTED = "(?i)secret|password|token|access[.]?key";
    /** The catalogs whose urls were warned of. */
    private static final Set<String> WARNED = ConcurrentHashMap.newKeySet();

    private String name;
    private DrayOptions options;
    /** Null until the server was asked. */
    private Dialect dialect;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap given) {
        this.name = name;
        options = new DrayOptions(given.asCaseSensitiveMap(), true);
        SparkEnv spark = SparkEnv.get();
        String redaction = spark == null ? REDACTED : spark.conf().get(REDACTION, REDACTED);
        if (isShown(name, options.url(), redaction) && WARNED.add(name)) {
            LOG.warn("the url of the catalog {} has a password or a token, and Spark shows it in"
                    + " its UI and event log: use a password file, or let {} match {}", name,
                    REDACTION, setting(name));
        }
    }

    private static String setting(String name) {
        return "spark.sql.catalog." + name + ".url";
    }

    /** Whether Spark shows a secret that the url of a catalog has. */
    static boolean isShown(String name, String url, String redaction) {
        Pattern hidden = Pattern.compile(redaction);
        return SECRET.matcher(url).find() && !hidden.matcher(setting(name)).find()
                && !hidden.matcher(url).find();
    }

    @Override
    public String name() {
        return name;
    }

    private synchronized Dialect dialect() {
        if (dialect == null) {
            dialect = Description.of(options, "SELECT 1").dialect();
        }
        if (dialect == Dialect.OTHER) {
            throw new DrayException("the tables of this database can't be listed: read one by"
                    + " spark.read.format(\"dray\") with the option dbtable or query");
        }
        return dialect;
    }

    @Override
    public String[][] listNamespaces() {
        return Rows.read(options, schemata(dialect()) + " ORDER BY 1");
    }

    private static String schemata(Dialect dialect) {
        // Dray's engine has the schemata of files and its own.
        return "SELECT schema_name FROM information_schema.schemata";
    }

    @Override
    public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
        if (namespace.length == 0) {
            return listNamespaces();
        }
        checkNamespace(namespace);
        return new String[0][];
    }

    private void checkNamespace(String[] namespace) throws NoSuchNamespaceException {
        if (!namespaceExists(namespace)) {
            throw new NoSuchNamespaceException(namespace);
        }
    }

    @Override
    public boolean namespaceExists(String[] namespace) {
        return namespace.length == 1 && Rows.read(options, schemata(dialect())
                + " WHERE schema_name = " + named(namespace[0])).length > 0;
    }

    /** A name to compare with. PostgreSQL would cut a literal to the length of its names. */
    private String named(String name) {
        return dialect().literal(name) + (dialect() == Dialect.POSTGRESQL ? "::text" : "");
    }

    @Override
    public Map<String, String> loadNamespaceMetadata(String[] namespace)
            throws NoSuchNamespaceException {
        checkNamespace(namespace);
        return Map.of();
    }

    private String tables(String namespace) {
        return "SELECT table_name FROM " + (dialect() == Dialect.POSTGRESQL
                ? TABLES_OF_POSTGRESQL : "information_schema.tables")
                + " WHERE table_schema = " + named(namespace);
    }

    @Override
    public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
        checkNamespace(namespace);
        List<Identifier> tables = new ArrayList<>();
        for (String[] row : Rows.read(options, tables(namespace[0]) + " ORDER BY 1")) {
            tables.add(Identifier.of(namespace, row[0]));
        }
        return tables.toArray(Identifier[]::new);
    }

    @Override
    public boolean tableExists(Identifier table) {
        String[] namespace = table.namespace();
        return namespace.length == 1 && Rows.read(options, tables(namespace[0])
                + " AND table_name = " + named(table.name())).length > 0;
    }

    @Override
    public Table loadTable(Identifier table) throws NoSuchTableException {
        if (!tableExists(table)) {
            throw new NoSuchTableException(table);
        }
        String schema = table.namespace()[0];
        return DrayTable.ofTable(options, name + "." + schema + "." + table.name(),
                dialect().quoted(schema) + "." + dialect().quoted(table.name()));
    }

    @Override
    public Table createTable(Identifier table, TableInfo info)
            throws TableAlreadyExistsException, NoSuchNamespaceException {
        stageCreate(table, info).commitStagedChanges();
        try {
            return loadTable(table);
        } catch (NoSuchTableException dropped) {
            throw new DrayException("another session has dropped the new table", dropped);
        }
    }

    @Override
    public StagedTable stageCreate(Identifier table, TableInfo info)
            throws TableAlreadyExistsException, NoSuchNamespaceException {
        NewTable staged = stage(table, info, NewTable.Existing.REFUSED);
        if (tableExists(table)) {
            throw new TableAlreadyExistsException(table);
        }
        return staged;
    }

    @Override
    public StagedTable stageReplace(Identifier table, TableInfo info)
            throws NoSuchNamespaceException, NoSuchTableException {
        NewTable staged = stage(table, info, NewTable.Existing.REPLACED);
        if (!tableExists(table)) {
            throw new NoSuchTableException(table);
        }
        return staged;
    }

    @Override
    public StagedTable stageCreateOrReplace(Identifier table, TableInfo info)
            throws NoSuchNamespaceException {
        return stage(table, info, NewTable.Existing.REPLACED_IF_THERE);
    }

    private NewTable stage(Identifier table, TableInfo info, NewTable.Existing existing)
            throws NoSuchNamespaceException {
        if (dialect() != Dialect.POSTGRESQL) {
            // A server that passes statements on says that it only reads.
            new Session(options).close();
            throw new DrayException("Spark creates tables of PostgreSQL only: create this one in"
                    + " the database, and append to it");
        }
        checkNamespace(table.namespace());
        NewTable.check(info);
        NewTable.checkName(table.name(), Integer.parseInt(Rows.read(
                options, "SELECT pg_catalog.current_setting('max_identifier_length')")[0][0]));
        return new NewTable(options, new TableName(dialect(), table.namespace()[0], table.name()),
                info.columns(), existing);
    }

    private static UnsupportedOperationException refused() {
        return new UnsupportedOperationException("Dray's catalog reads, fills, creates and replaces"
                + " tables: do everything else in the database");
    }

    @Override
    public Table alterTable(Identifier table, TableChange... changes) {
        throw refused();
    }

    @Override
    public boolean dropTable(Identifier table) {
        throw refused();
    }

    @Override
    public void renameTable(Identifier table, Identifier other) {
        throw refused();
    }

    @Override
    public void createNamespace(String[] namespace, Map<String, String> metadata) {
        throw refused();
    }

    @Override
    public void alterNamespace(String[] namespace, NamespaceChange... changes) {
        throw refused();
    }

    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade) {
        throw refused();
    }
}
