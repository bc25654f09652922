package dray.spark.pushdown;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructType;

/** PostgreSQL, MySQL or MariaDB by its JDBC driver. */
final class JdbcDatabase implements Database {
    private final String name;
    private final Dialect dialect;
    private final Connection connection;
    private final List<SourceColumn> columns;

    JdbcDatabase(String name, String uri, List<NastyTable.Column> table, List<Object[]> rows)
            throws SQLException {
        this.name = name;
        dialect = isPostgres() ? new PostgreSql() : new MySql();
        connection = DriverManager.getConnection(uri);
        create(table);
        insert(table, rows);
        columns = describe(table);
    }

    private boolean isPostgres() {
        return name.equals("postgresql");
    }

    private void create(List<NastyTable.Column> table) throws SQLException {
        if (isPostgres()) {
            run("CREATE EXTENSION IF NOT EXISTS citext");
            run("CREATE COLLATION IF NOT EXISTS nocase (provider = icu, deterministic = false,"
                    + " locale = 'und-u-ks-level2')");
        } else {
            run("SET time_zone = '+00:00'");
        }
        run("DROP TABLE IF EXISTS t");
        var definitions = new ArrayList<String>();
        for (NastyTable.Column column : table) {
            definitions.add(dialect.identifier(column.name()) + " " + column.definition(name));
        }
        run("CREATE TABLE t (" + String.join(", ", definitions) + ")"
                + (isPostgres() ? "" : " CHARACTER SET utf8mb4"));
    }

    private void run(String sql) throws SQLException {
        try (var statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    private void insert(List<NastyTable.Column> table, List<Object[]> rows) throws SQLException {
        String marks = "?, ".repeat(table.size() - 1) + "?";
        try (var statement = connection.prepareStatement("INSERT INTO t VALUES (" + marks + ")")) {
            for (Object[] row : rows) {
                for (int i = 0; i < row.length; i++) {
                    set(statement, i + 1, table.get(i), row[i]);
                }
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }

    private void set(PreparedStatement statement, int place, NastyTable.Column column, Object value)
            throws SQLException {
        boolean nan = value instanceof Number number && !(value instanceof BigDecimal)
                && !Double.isFinite(number.doubleValue());
        if (value == null || nan && !isPostgres()) {
            statement.setNull(place, java.sql.Types.NULL);
        } else if (value instanceof Instant instant) {
            statement.setObject(place, isPostgres() ? instant.atOffset(ZoneOffset.UTC)
                    : LocalDateTime.ofInstant(instant, ZoneOffset.UTC));
        } else if (isPostgres() && column.definition(name).equals("citext")) {
            statement.setObject(place, value, java.sql.Types.OTHER);
        } else {
            statement.setObject(place, value);
        }
    }

    private List<SourceColumn> describe(List<NastyTable.Column> table) throws SQLException {
        var rows = new ArrayList<String[]>();
        var names = table.stream().map(NastyTable.Column::name).toList();
        String sql = dialect.describe("t", names).orElseThrow();
        try (var statement = connection.createStatement();
                var found = statement.executeQuery(sql)) {
            while (found.next()) {
                rows.add(new String[] {
                    found.getString(1), found.getString(2), found.getString(3)});
            }
        }
        return SourceColumn.list(NastyTable.schema(table), rows.toArray(String[][]::new));
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Dialect dialect() {
        return dialect;
    }

    @Override
    public List<SourceColumn> columns() {
        return columns;
    }

    @Override
    public synchronized List<Row> rows(String sql, StructType schema) throws SQLException {
        var rows = new ArrayList<Row>();
        // Prepared, so that MySQL sends floats in binary.
        try (var statement = connection.prepareStatement(sql);
                var found = statement.executeQuery()) {
            while (found.next()) {
                Object[] row = new Object[schema.length()];
                for (int i = 0; i < row.length; i++) {
                    row[i] = value(found, i + 1, schema.apply(i).dataType());
                }
                rows.add(RowFactory.create(row));
            }
        } catch (SQLException error) {
            throw new SQLException(error.getMessage() + " in " + sql, error);
        }
        return rows;
    }

    private Object value(ResultSet found, int place, DataType type) throws SQLException {
        if (found.getObject(place) == null) {
            return null;
        } else if (type instanceof DecimalType) {
            return found.getBigDecimal(place);
        }
        return switch (type.typeName()) {
            case "boolean" -> found.getBoolean(place);
            case "byte" -> found.getByte(place);
            case "short" -> found.getShort(place);
            case "integer" -> found.getInt(place);
            case "long" -> found.getLong(place);
            case "float" -> found.getFloat(place);
            case "double" -> found.getDouble(place);
            case "binary" -> found.getBytes(place);
            case "date" -> found.getObject(place, LocalDate.class);
            case "timestamp_ntz" -> found.getObject(place, LocalDateTime.class);
            case "timestamp" -> isPostgres()
                    ? found.getObject(place, OffsetDateTime.class).toInstant()
                    : found.getObject(place, LocalDateTime.class).toInstant(ZoneOffset.UTC);
            default -> found.getString(place);
        };
    }

    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
