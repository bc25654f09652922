package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class StagingTableTest {
    private static final TableName ORDERS =
            new TableName(Dialect.POSTGRESQL, "public", "orders");

    @Test
    void names() {
        String name = ORDERS.unfinished("other").name();
        assertEquals("dray_unfinished_orders_", ORDERS.unfinishedPrefix());
        assertTrue(name.matches("dray_unfinished_orders_[0-9a-f]{16}"), name);
        TableName wide = new TableName(Dialect.MYSQL, "s", "ä".repeat(30));
        assertTrue(wide.unfinished("s").name().startsWith(wide.unfinishedPrefix()));
        assertEquals(59, wide.unfinished("s").name().getBytes(StandardCharsets.UTF_8).length);
    }

    @Test
    void whoseItIs() {
        String meaning = StagingTable.meaning("app-1", ORDERS);
        assertEquals("rows that Spark application app-1 writes into \"public\".\"orders\", while"
                + " its driver holds a lock", meaning);
        assertTrue(StagingTable.isMeaning(meaning, ORDERS));
        assertFalse(StagingTable.isMeaning(
                meaning, new TableName(Dialect.POSTGRESQL, "public", "order")));
        // Of writers that hold no lock.
        for (String other : new String[] {null, "", "my own",
            "rows that Spark application app-1 writes into \"public\".\"orders\""}) {
            assertFalse(StagingTable.isMeaning(other, ORDERS));
        }
    }
}
