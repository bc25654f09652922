package dray.spark;

import java.util.List;

/**
 * The statements of a write in the SQL of a database. {@link WriteJob} says what they are for. All
 * of them need a {@link Session} of that database.
 */
interface WriteStatements {
    /** Those of a database that takes rows. */
    static WriteStatements of(Dialect dialect) {
        switch (dialect) {
            case POSTGRESQL: return new PostgresWrites();
            case MYSQL: return new MysqlWrites();
            default: throw new DrayException("a Dray server only reads: to write, give the"
                    + " database's own url, postgresql://…, mysql://… or mariadb://…");
        }
    }

    /** The table of a name as SQL writes it. */
    Target find(Session session, String name);

    /** Refuses to empty a table if that can't be undone, or would change rows of other tables. */
    void checkEmptying(Session session, TableName table, boolean isTruncate);

    /**
     * Drops the staging tables for a target that drivers have left which were killed: those whose
     * locks nobody has. What can't be dropped stays, and so does what tells of a commit.
     */
    void dropAbandoned(Session session, TableName target, String schema);

    /** Creates the staging table and takes its lock. Its comment is what it is for. */
    void create(Session session, StagingTable staging, String meaning);

    /** Takes the lock of a staging table, for the session. */
    void lock(Session session, TableName staging);

    /**
     * Begins the transaction of a commit. Attempts that still write into the staging table, though
     * their rows don't count, lose their connections.
     *
     * @return what {@link #isCommitted} needs to know
     */
    String begin(Session session, StagingTable staging, boolean isOverwriting);

    /** Deletes the rows of the target. Until the end of the transaction nobody else adds any. */
    void empty(Session session, TableName target, boolean isTruncate);

    /** Inserts the rows of these attempts into the target, and returns their number. */
    long move(Session session, StagingTable staging, TableName target, List<WrittenRows> attempts);

    /** The staging table and what is beside it, as SQL writes them. */
    List<String> tables(StagingTable staging);

    /** Does within the transaction that by which {@link #isCommitted} can tell. */
    void mark(Session session, StagingTable staging);

    /** Whether a commit that got no answer was done. Waits for the end of its transaction. */
    boolean isCommitted(Session session, StagingTable staging, String transaction);

    /** How a person can tell the same. */
    String signOfCommit(StagingTable staging, String transaction);

    /** Drops what a commit has left of the staging table. */
    void clean(DrayOptions options, StagingTable staging);

    /** Drops the staging table if it is there. Attempts that still write lose their connections. */
    void drop(Session session, StagingTable staging);
}
