package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** What can be told without a database: which columns a scan reads. */
class DrayScanBuilderTest {
    private static final StructType SCHEMA = new StructType()
            .add("a", DataTypes.IntegerType).add("b", DataTypes.StringType);

    private static DrayScanBuilder builder(Dialect dialect) {
        DrayOptions options =
                new DrayOptions(Map.of("url", "dray://localhost", "dbtable", "t"), false);
        Statement all = Statement.ofTable("t", DrayTable.allColumns(SCHEMA, dialect));
        return new DrayScanBuilder(
                options, new Description(SCHEMA, dialect, -1, -1), Optional::empty, all);
    }

    private static String scanned(Dialect dialect, String... columns) {
        DrayScanBuilder builder = builder(dialect);
        StructType required = new StructType();
        for (String column : columns) {
            required = required.add(SCHEMA.apply(column));
        }
        builder.pruneColumns(required);
        assertEquals(required, builder.build().readSchema());
        return builder.build().description();
    }

    /** A server that plans short statements once gets one, whatever is pushed down. */
    @Test
    void allColumns() {
        assertEquals("dray [SELECT * FROM t]", scanned(Dialect.DRAY, "a", "b"));
        assertEquals("dray [SELECT \"a\", \"b\" FROM t]", scanned(Dialect.POSTGRESQL, "a", "b"));
        DrayScanBuilder limited = builder(Dialect.DRAY);
        limited.pushLimit(5);
        limited.pruneColumns(SCHEMA);
        assertEquals("dray [SELECT * FROM t LIMIT 5]", limited.build().description());
    }

    @Test
    void someColumns() {
        for (Dialect dialect : new Dialect[] {Dialect.DRAY, Dialect.POSTGRESQL}) {
            assertEquals("dray [SELECT \"b\" FROM t]", scanned(dialect, "b"));
            assertEquals("dray [SELECT \"b\", \"a\" FROM t]", scanned(dialect, "b", "a"));
            assertEquals("dray [SELECT 1 AS dray_row FROM t]", scanned(dialect));
        }
        assertEquals("dray [SELECT `b` FROM t]", scanned(Dialect.MYSQL, "b"));
    }
}
