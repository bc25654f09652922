package dray.jdbc;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/** A connection of a driver. */
final class Database implements AutoCloseable {
    private static final int VALID_SECONDS = 2;

    private final Open open;
    private final Product product;
    private final Connection connection;
    private final String server;

    private Database(Open open, Connection connection) throws SQLException {
        this.open = open;
        this.product = Product.of(open.uri());
        this.connection = connection;
        var about = connection.getMetaData();
        this.server = about.getDatabaseProductName() + " " + about.getDatabaseProductVersion();
    }

    /** Connects, as read-only as the driver can unless the source is writable. */
    static Database open(Open open) throws SQLException {
        var properties = Product.of(open.uri()).properties(open.writable());
        Connection connection = DriverManager.getConnection(open.uri(), properties);
        try {
            if (!open.writable()) {
                setReadOnly(connection);
                connection.setAutoCommit(false);
            }
            return new Database(open, connection);
        } catch (SQLException | RuntimeException failed) {
            connection.close();
            throw failed;
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
            boolean autoCommit = !ReadOnly.reads(query.sql());
            if (connection.getAutoCommit() != autoCommit) {
                connection.setAutoCommit(autoCommit);
            }
        }
        return connection.prepareStatement(
                query.sql(), ResultSet.TYPE_FORWARD_ONLY, ResultSet.CONCUR_READ_ONLY);
    }

    /** Ends the transaction of a statement: commits only what a writable source has changed. */
    void end(boolean succeeded) throws SQLException {
        if (connection.getAutoCommit()) {
            return;
        }
        if (succeeded && open.writable()) {
            connection.commit();
        } else {
            connection.rollback();
        }
    }

    /** Whether it can run another statement. */
    boolean isUsable() {
        try {
            return !connection.isClosed() && connection.isValid(VALID_SECONDS);
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
