package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

class DescriptionTest {
    private static Description of(long rows, long bytes) {
        StructType schema = new StructType().add("id", DataTypes.LongType);
        return new Description(schema, Dialect.MYSQL, rows, bytes);
    }

    private static boolean isLarge(String url, long rows) {
        DrayOptions options = new DrayOptions(Map.of("url", url, "dbtable", "t"), false);
        return Snapshot.isLarge(options, () -> of(rows, -1));
    }

    @Test
    void bytesThatAreExpected() {
        assertEquals(-1, of(-1, -1).aboutBytes());
        assertEquals(7, of(100, 7).aboutBytes());
        assertEquals(1600, of(100, -1).aboutBytes());
        assertEquals(Long.MAX_VALUE, of(Long.MAX_VALUE, -1).aboutBytes());
    }

    @Test
    void whatOneTaskReadsThoughItIsLarge() {
        assertTrue(isLarge("mysql://localhost/shop", 5_000_000));
        assertTrue(isLarge("mariadb://localhost/shop", 5_000_000));
        assertFalse(isLarge("mysql://localhost/shop", 4_000_000));
        assertFalse(isLarge("mysql://localhost/shop", -1));
        // Another database behind a server can't be divided in any way.
        assertFalse(isLarge("dray://localhost/other", 5_000_000));
    }
}
