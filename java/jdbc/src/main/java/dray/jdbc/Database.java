package dray.jdbc;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** A connection of a driver. */
final class Database implements AutoCloseable {
    private static final int VALID_SECONDS = 2;

    private final Open open;
    private final Product product;
    private final Connection connection;
    private final String server;
    /** MySQL's number of the connection; null if it is not known. */
    private final String number;
    /** Whether a transaction could not be rolled back. */
    private boolean isLost;

    private Database(Open open, Connection connection, String number) throws SQLException {
        this.open = open;
        this.product = Product.of(open.uri());
        this.connection = connection;
        this.number = number;
        var about = connection.getMetaData();
        this.server = about.getDatabaseProductName() + " " + about.getDatabaseProductVersion();
    }

    /** Connects, as read-only as the driver can unless the source is writable. */
    static Database open(Open open) throws SQLException {
        var properties = Product.of(open.uri()).properties(open.writable());
        Connection connection = DriverManager.getConnection(open.uri(), properties);
        try {
            String number = Product.of(open.uri()) == Product.MYSQL ? number(connection) : null;
            if (!open.writable()) {
                setReadOnly(connection);
                connection.setAutoCommit(false);
            }
            return new Database(open, connection, number);
        } catch (SQLException | RuntimeException failed) {
            connection.close();
            throw failed;
        }
    }

    private static String number(Connection connection) throws SQLException {
        try (var statement = connection.createStatement();
                var row = statement.executeQuery("SELECT CONNECTION_ID()")) {
            return row.next() ? row.getString(1) : null;
        } catch (SQLException unknown) {
            // Other databases speak MySQL's protocol, too.
            if (!connection.isValid(VALID_SECONDS)) {
                throw unknown;
            }
            return null;
        }
    }

    private static void setReadOnly(Connection connection) {
        try {
            connection.setReadOnly(true);
        } catch (SQLException notSupported) {
            // Statements are still limited to those that read, and rolled back.
            System.err.println("the driver has no read-only connections");
        }
    }

    String server() {
        return server;
    }

    String dialect() {
        return product.dialect();
    }

    Product product() {
        return product;
    }

    /** Begins the transaction of a statement, if it may run here. */
    PreparedStatement prepare(Query query) throws SQLException, Failure {
        if (!open.writable()) {
            ReadOnly.check(open.name(), query.sql());
        } else {
            // PostgreSQL's driver gives rows as they come only within a transaction, and some
            // statements run only outside.
            boolean autoCommit = !ReadOnly.isTransactional(query.sql());
            if (connection.getAutoCommit() != autoCommit) {
                connection.setAutoCommit(autoCommit);
            }
        }
        return connection.prepareStatement(
                query.sql(), ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY);
    }

    /**
     * Lets the database give up the rows of a statement that are left: drivers read them all when
     * they close it.
     */
    void stop(Statement statement) {
        try {
            // MySQL's driver cancels nothing once it has the first row.
            if (product != Product.MYSQL) {
                statement.cancel();
            } else if (number != null) {
                kill();
            }
        } catch (SQLException | RuntimeException | AbstractMethodError notSupported) {
            System.err.println("stopping: " + notSupported.getClass().getName());
        }
    }

    private void kill() throws SQLException {
        var properties = product.properties(open.writable());
        try (var other = DriverManager.getConnection(open.uri(), properties);
                var statement = other.createStatement()) {
            statement.execute("KILL QUERY " + number);
        }
    }

    /** Ends the transaction of a statement: commits only what a writable source has changed. */
    void end(boolean succeeded) throws SQLException {
        if (connection.getAutoCommit()) {
            return;
        }
        if (succeeded && open.writable()) {
            connection.commit();
            return;
        }
        try {
            connection.rollback();
        } catch (SQLException interrupted) {
            // What has stopped the statement can be late, and meet this.
            isLost = true;
            connection.rollback();
            isLost = false;
        }
    }

    /** Whether it can run another statement. */
    boolean isUsable() {
        try {
            return !isLost && !connection.isClosed() && connection.isValid(VALID_SECONDS);
        } catch (SQLException | RuntimeException | AbstractMethodError broken) {
            return false;
        }
    }

    @Override
    public void close() {
        try {
            if (!connection.isClosed()) {
                end(false);
                connection.close();
            }
        } catch (SQLException | RuntimeException broken) {
            System.err.println("closing: " + broken.getClass().getName());
        }
    }
}
