package dray.spark;

import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * The table in which the rows of a job wait for its commit. Each attempt at a task puts its number
 * beside its rows, so what attempts leave that did not count is never moved.
 *
 * @param table   its name, and its schema's
 * @param columns the target's columns that get data
 * @param data    the data's columns, in the same order
 */
record StagingTable(TableName table, List<Target.Column> columns, StructType data) {
    private static final String ATTEMPT = "dray_attempt";
    private static final String ROW = "dray_row";
    private static final String OF_APPLICATION = "rows that Spark application ";
    private static final String LOCKED = ", while its driver holds a lock";

    /** How its database is written. */
    WriteStatements statements() {
        return WriteStatements.of(table.dialect());
    }

    /** The comment of a staging table whose job holds its lock. */
    static String meaning(String application, TableName target) {
        return OF_APPLICATION + application + into(target);
    }

    /** Whether a comment is one of a staging table for a target. */
    static boolean isMeaning(String comment, TableName target) {
        return comment != null && comment.startsWith(OF_APPLICATION)
                && comment.endsWith(into(target));
    }

    private static String into(TableName target) {
        return " writes into " + target.sql() + LOCKED;
    }

    /** A column of its own, whose name no column of the data has in any case. */
    private String own(String name) {
        while (columns.stream().map(Target.Column::name).anyMatch(name::equalsIgnoreCase)) {
            name += "_";
        }
        return name;
    }

    /** Whether each row has its number within the attempt: with it, MySQL's has a primary key. */
    static boolean hasRowNumbers(TableName table) {
        return table.dialect() == Dialect.MYSQL;
    }

    /**
     * What tasks write: the data under the names of the target's columns, the attempt, and perhaps
     * the row's number.
     */
    StructType rows() {
        StructType rows = new StructType();
        for (int i = 0; i < columns.size(); i++) {
            rows = rows.add(columns.get(i).name(), data.apply(i).dataType());
        }
        rows = rows.add(own(ATTEMPT), DataTypes.LongType);
        return hasRowNumbers(table) ? rows.add(own(ROW), DataTypes.LongType) : rows;
    }

    /** The column of the attempts' numbers, as SQL writes it. */
    String attempt() {
        return quoted(own(ATTEMPT));
    }

    /** The other columns, as SQL writes them. */
    String names() {
        return columns.stream().map(column -> quoted(column.name()))
                .collect(Collectors.joining(", "));
    }

    /** What stands between the parentheses of CREATE TABLE. */
    String definitions() {
        return columns.stream().map(column -> definition(column) + ", ")
                .collect(Collectors.joining()) + attempt() + " bigint NOT NULL"
                + (hasRowNumbers(table) ? ", " + quoted(own(ROW)) + " bigint NOT NULL, PRIMARY KEY ("
                + attempt() + ", " + quoted(own(ROW)) + ")" : "");
    }

    private String definition(Target.Column column) {
        String type = quoted(column.name()) + " " + column.type();
        if (!column.isNotNull()) {
            // Without NULL, a TIMESTAMP of MySQL may be NOT NULL.
            return type + " NULL";
        }
        // Without a default, the second one may have one of zeros, which MySQL refuses.
        return type + " NOT NULL" + (table.dialect() == Dialect.MYSQL
                && column.type().startsWith("timestamp") ? " DEFAULT '2000-01-01 00:00:00'" : "");
    }

    private String quoted(String name) {
        return table.dialect().quoted(name);
    }

    /** The error of a staging table for which a privilege is missing. */
    static DrayException notCreated(DrayException failure) {
        return new DrayException("no staging table can be created: " + failure.getMessage()
                + " (option stagingSchema names another schema)");
    }
}
