package dray.spark;

import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writing into MySQL and MariaDB. DROP is no part of a transaction there, so a commit leaves a mark
 * in a second table beside the staging table:
 *
 * <pre>
 *   begin   CREATE TABLE staging · CREATE TABLE mark · INSERT INTO mark VALUES (0)
 *   commit  START TRANSACTION · [DELETE] · INSERT … SELECT · UPDATE mark … 1 · COMMIT · DROP both
 * </pre>
 */
final class MysqlWrites implements WriteStatements {
    private static final Logger LOG = LoggerFactory.getLogger(MysqlWrites.class);
    /** A name with or without that of its database. */
    private static final String IDENTIFIER = "(`(?:[^`]|``)+`|[0-9A-Za-z$_\\u0080-\\uffff]+)";
    private static final Pattern NAME =
            Pattern.compile("\\s*(?:" + IDENTIFIER + "\\s*\\.\\s*)?" + IDENTIFIER + "\\s*");
    /** How EXTRA of a column says that the server computes it. A default may be computed, too. */
    private static final Pattern GENERATED = Pattern.compile("(?<!DEFAULT_)GENERATED|PERSISTENT");
    /** What the server says of a privilege that is missing, and of names that are not there. */
    private static final String DENIED_OR_WRONG = "42000";
    private static final Set<String> TABLES = Set.of("BASE TABLE", "SYSTEM VERSIONED");
    private static final String MARK = "_end";
    private static final String NO_TABLE = "42S02";
    /** How often the locks of tasks that should have ended are waited for, and how long. */
    private static final int TRIES = 10;
    private static final int TRY_SECONDS = 2;
    /** How long the server keeps a transaction whose client is gone, and others wait for it. */
    private static final int SILENCE_SECONDS = 300;
    private static final int PATIENCE_SECONDS = 600;

    /**
     * What does not fit is an error, 0 is 0, and quotes and backslashes are MySQL's own. Other modes
     * of the server that tasks have, too, stay.
     */
    static void set(Session session) {
        String kept = Stream.of("ALLOW_INVALID_DATES", "NO_ZERO_DATE", "NO_ZERO_IN_DATE",
                        "ERROR_FOR_DIVISION_BY_ZERO")
                .map(mode -> ", IF(FIND_IN_SET('" + mode + "', @@sql_mode), '" + mode + "', NULL)")
                .collect(Collectors.joining());
        session.run("SET SESSION sql_mode = CONCAT_WS(',', 'STRICT_ALL_TABLES',"
                + " 'NO_AUTO_VALUE_ON_ZERO', 'NO_ENGINE_SUBSTITUTION'" + kept + "),"
                + " autocommit = 1, sql_safe_updates = 0,"
                + " innodb_lock_wait_timeout = " + PATIENCE_SECONDS
                + ", wait_timeout = " + SILENCE_SECONDS);
    }

    @Override
    public Target find(Session session, String name) {
        TableName table = parse(session, name);
        checkEngine(session, table);
        return new Target(table, session.ask(9, "SHOW FULL COLUMNS FROM " + table.sql()).stream()
                .map(MysqlWrites::column).toList());
    }

    private static TableName parse(Session session, String name) {
        Matcher matcher = NAME.matcher(name);
        if (!matcher.matches()) {
            throw Target.noName(name);
        }
        String schema = matcher.group(1) == null
                ? session.ask(1, "SELECT DATABASE()").get(0).get(0) : plain(matcher.group(1));
        if (schema == null) {
            throw new DrayException("neither the url nor " + name + " names a database");
        }
        return new TableName(Dialect.MYSQL, schema, plain(matcher.group(2)));
    }

    private static String plain(String identifier) {
        return identifier.startsWith("`")
                ? identifier.substring(1, identifier.length() - 1).replace("``", "`") : identifier;
    }

    /** Rows of other engines can't be taken back. */
    private static void checkEngine(Session session, TableName table) {
        List<List<String>> rows = session.ask(3, "SELECT t.table_type, t.engine, e.transactions"
                + " FROM information_schema.tables t"
                + " LEFT JOIN information_schema.engines e ON e.engine = t.engine"
                + " WHERE t.table_schema = " + literal(table.schema())
                + " AND t.table_name = " + literal(table.name()));
        if (rows.isEmpty()) {
            throw new DrayException("there is no table " + table.sql() + " to write into");
        }
        List<String> facts = rows.get(0);
        if (!TABLES.contains(facts.get(0))) {
            throw new DrayException(table.sql() + " is no table (it is a " + facts.get(0)
                    + "): write into the table behind it");
        }
        if (!"YES".equals(facts.get(2))) {
            throw new DrayException(table.sql() + " has the engine " + facts.get(1) + ", whose rows"
                    + " can't be taken back if a job fails: ALTER TABLE … ENGINE = InnoDB");
        }
    }

    /** A column as SHOW FULL COLUMNS tells it: name, type, collation, NULL, key, default, extra. */
    private static Target.Column column(List<String> row) {
        String extra = row.get(6);
        boolean isGenerated = GENERATED.matcher(extra).find();
        boolean hasDefault = row.get(5) != null || extra.contains("auto_increment")
                || extra.contains("DEFAULT_GENERATED");
        // The collation also tells the character set.
        String type = row.get(1) + (row.get(2) == null ? "" : " COLLATE " + row.get(2));
        return new Target.Column(
                row.get(0), type, row.get(3).equals("NO"), hasDefault, isGenerated);
    }

    /** DELETE would also delete or change rows of tables with such foreign keys. */
    @Override
    public void checkEmptying(Session session, TableName table, boolean isTruncate) {
        if (isTruncate) {
            throw new DrayException("MySQL and MariaDB can't undo TRUNCATE: overwrite "
                    + table.sql() + " without the option truncate");
        }
        if (session.ask(1, "SELECT engine FROM information_schema.tables WHERE engine = 'InnoDB'"
                + " AND table_schema = " + literal(table.schema())
                + " AND table_name = " + literal(table.name())).isEmpty()) {
            throw new DrayException("only a table of the engine InnoDB is overwritten: others"
                    + " can't keep other sessions from adding rows meanwhile");
        }
        List<List<String>> references = session.ask(2, "SELECT constraint_name,"
                + " CONCAT(constraint_schema, '.', table_name)"
                + " FROM information_schema.referential_constraints"
                + " WHERE delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT')"
                + " AND unique_constraint_schema = " + literal(table.schema())
                + " AND referenced_table_name = " + literal(table.name()));
        if (!references.isEmpty()) {
            throw Target.referenced(table, references.get(0).get(0), references.get(0).get(1));
        }
    }

    /**
     * The name of a staging table's lock. The table's own name is not in it: {@link #endAttempts}
     * would end the sessions of others that just try to get it.
     */
    private static String lockOf(TableName staging) {
        return literal("dray job " + staging.randomDigits());
    }

    @Override
    public void lock(Session session, TableName staging) {
        session.run("SELECT GET_LOCK(" + lockOf(staging) + ", " + TRY_SECONDS + ")");
    }

    @Override
    public void dropAbandoned(Session session, TableName target, String schema) {
        if (!hasOneServer(session)) {
            return;
        }
        String prefix = target.unfinishedPrefix();
        Set<String> left = new TreeSet<>();
        for (List<String> row : session.ask(2, "SELECT table_name, table_comment"
                + " FROM information_schema.tables WHERE table_schema = " + literal(schema)
                + " AND LEFT(table_name, " + prefix.codePointCount(0, prefix.length()) + ") = "
                + literal(prefix))) {
            if (StagingTable.isMeaning(row.get(1), target)) {
                left.add(row.get(0).endsWith(MARK)
                        ? row.get(0).substring(0, row.get(0).length() - MARK.length())
                        : row.get(0));
            }
        }
        for (String name : left) {
            dropUnlocked(session, new TableName(Dialect.MYSQL, schema, name));
        }
    }

    /** Whether no other server has the same tables, and locks of its own. */
    private static boolean hasOneServer(Session session) {
        return session.ask(2, "SHOW GLOBAL VARIABLES WHERE variable_name IN ('wsrep_on',"
                + " 'group_replication_group_name') AND value NOT IN ('', 'OFF', '0')").isEmpty();
    }

    private void dropUnlocked(Session session, TableName left) {
        String lock = lockOf(left);
        try {
            if ("1".equals(session.ask(1, "SELECT GET_LOCK(" + lock + ", 0)").get(0).get(0))) {
                try {
                    StagingTable staging = new StagingTable(left, List.of(), new StructType());
                    // Somebody may have to know that a commit without an answer was done.
                    if (!isMarked(session, staging)) {
                        drop(session, staging);
                        LOG.info("dropped {}, which a driver has left that was killed",
                                left.sql());
                    }
                } finally {
                    session.run("SELECT RELEASE_LOCK(" + lock + ")");
                }
            }
        } catch (DrayException failure) {
            LOG.warn("{} is left of a driver that was killed, drop it: {}", left.sql(),
                    failure.getMessage());
        }
    }

    private boolean isMarked(Session session, StagingTable staging) {
        try {
            return isCommitted(session, staging, "");
        } catch (DrayException failure) {
            if (failure.sqlState().equals(NO_TABLE)) {
                return false;
            }
            throw failure;
        }
    }

    @Override
    public void create(Session session, StagingTable staging, String meaning) {
        lock(session, staging.table());
        String end = " ENGINE = InnoDB COMMENT = " + literal(meaning);
        try {
            session.run("CREATE TABLE " + staging.table().sql() + " (" + staging.definitions()
                    + ")" + end);
            session.run("CREATE TABLE " + markTable(staging) + " (is_committed integer NOT NULL PRIMARY"
                    + " KEY)" + end);
            session.run("INSERT INTO " + markTable(staging) + " VALUES (0)");
        } catch (DrayException failure) {
            if (failure.sqlState().equals(DENIED_OR_WRONG)
                    && failure.getMessage().contains("denied")) {
                throw StagingTable.notCreated(failure);
            }
            throw failure;
        }
    }

    private static String markTable(StagingTable staging) {
        TableName table = staging.table();
        return new TableName(table.dialect(), table.schema(), table.name() + MARK).sql();
    }

    @Override
    public String begin(Session session, StagingTable staging, boolean isOverwriting) {
        endAttempts(session, staging);
        // READ COMMITTED moves rows without locking those of other attempts. Only REPEATABLE READ
        // keeps others from adding rows to a table that was emptied.
        session.run("SET TRANSACTION ISOLATION LEVEL "
                + (isOverwriting ? "REPEATABLE READ" : "READ COMMITTED"));
        session.run("START TRANSACTION");
        return "";
    }

    /** Ends the connections that run a statement on the staging table. */
    private static void endAttempts(Session session, StagingTable staging) {
        for (List<String> row : session.ask(1, "SELECT id FROM information_schema.processlist"
                + " WHERE id <> CONNECTION_ID() AND LOCATE(" + literal(staging.table().name())
                + ", info) > 0")) {
            try {
                session.run("KILL " + row.get(0));
            } catch (DrayException failure) {
                // It may have ended by itself, or it is not this user's.
            }
        }
    }

    @Override
    public void empty(Session session, TableName target, boolean isTruncate) {
        session.change("DELETE FROM " + target.sql());
    }

    @Override
    public long move(
            Session session, StagingTable staging, TableName target, List<WrittenRows> attempts) {
        if (attempts.isEmpty()) {
            return 0;
        }
        String numbers = attempts.stream().map(rows -> String.valueOf(rows.attempt()))
                .collect(Collectors.joining(","));
        return session.change("INSERT INTO " + target.sql() + " (" + staging.names() + ") SELECT "
                + staging.names() + " FROM " + staging.table().sql()
                + " WHERE " + staging.attempt() + " IN (" + numbers + ")");
    }

    @Override
    public void mark(Session session, StagingTable staging) {
        session.run("UPDATE " + markTable(staging) + " SET is_committed = 1");
    }

    @Override
    public List<String> tables(StagingTable staging) {
        return List.of(staging.table().sql(), markTable(staging));
    }

    /** The lock of the row waits for the transaction. */
    @Override
    public boolean isCommitted(Session session, StagingTable staging, String transaction) {
        List<List<String>> rows =
                session.ask(1, "SELECT is_committed FROM " + markTable(staging) + " FOR UPDATE");
        if (rows.size() != 1) {
            throw new DrayException("the table " + markTable(staging) + " has " + rows.size() + " rows");
        }
        return rows.get(0).get(0).equals("1");
    }

    @Override
    public String signOfCommit(StagingTable staging, String transaction) {
        return "the row of the table " + markTable(staging) + " is 1";
    }

    @Override
    public void clean(DrayOptions options, StagingTable staging) {
        try (Session session = new Session(options)) {
            drop(session, staging);
        }
    }

    @Override
    public void drop(Session session, StagingTable staging) {
        session.run("SET SESSION lock_wait_timeout = " + TRY_SECONDS);
        for (int i = 1;; i++) {
            endAttempts(session, staging);
            try {
                session.run("DROP TABLE IF EXISTS " + String.join(", ", tables(staging)));
                return;
            } catch (DrayException failure) {
                if (i == TRIES) {
                    throw failure;
                }
            }
        }
    }

    private static String literal(String text) {
        return Dialect.MYSQL.literal(text);
    }
}
