package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.CollectionAccumulator;
import org.junit.jupiter.api.Test;

class ReceiptsTest {
    private static final boolean DIVIDED = true;

    private final List<String> found = new ArrayList<>();

    /** A receipt as in spec/partitions.md section 4, without its seal. */
    private static Receipt receipt(int part, long rows, long digest, int stage, String execution) {
        ByteBuffer bytes = ByteBuffer.allocate(80).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(24, part).putLong(32, rows).putLong(40, digest).putInt(48, stage);
        return new Receipt(bytes.array(), stage, execution);
    }

    private static Receipt receipt(int part, long rows, long digest) {
        return receipt(part, rows, digest, 1, null);
    }

    /** Those of a driver. */
    private Receipts receipts(boolean isDivided) {
        return new Receipts(isDivided, (difference, before, receipt) -> found.add(
                difference + " (stages " + before.stage() + " and " + receipt.stage() + ")"));
    }

    /** What a task sends that has read these. */
    private static Receipts ofTask(Receipts driver, Receipt... read) {
        Receipts receipts = (Receipts) driver.copyAndReset();
        for (Receipt receipt : read) {
            receipts.add(receipt, driver.known());
        }
        return receipts;
    }

    private static String refused(Receipts driver, Receipt... read) {
        return assertThrows(DrayException.class, () -> ofTask(driver, read)).getMessage();
    }

    @Test
    void eachPartOnce() {
        Receipts read = receipts(DIVIDED);
        assertTrue(read.isZero());
        read.merge(ofTask(read, receipt(1, 5, 9)));
        read.merge(ofTask(read, receipt(0, 7, 8)));
        assertEquals(2, read.count());
        assertEquals(12, read.rows());
        assertEquals(2, read.each().length);
        assertEquals(List.of(), found);
    }

    @Test
    void aPartThatWasReadTwiceMeanwhile() {
        Receipts read = receipts(DIVIDED);
        Receipts one = ofTask(read, receipt(3, 5, 9, 1, "7"));
        Receipts same = ofTask(read, receipt(3, 5, 9, 2, "7"));
        Receipts other = ofTask(read, receipt(3, 6, 8, 4, "8"));
        read.merge(one);
        read.merge(same);
        assertEquals(List.of(), found);
        read.merge(other);
        assertEquals(List.of("part 3 was read twice, with different rows: 5 and 6 of them"
                + " (stages 1 and 4)"), found);
        assertEquals(1, read.count());
        assertEquals(5, read.rows());
    }

    @Test
    void aPartThatIsReadAgain() {
        Receipts read = receipts(DIVIDED);
        read.merge(ofTask(read, receipt(0, 5, 9, 1, "7")));
        ofTask(read, receipt(0, 5, 9, 2, "8"));
        String said = refused(read, receipt(0, 5, 8, 2, "8"));
        assertTrue(said.contains("part 0 was read twice, with different rows: 5 and 5"), said);
        // Also by one task.
        assertTrue(refused(read, receipt(1, 1, 1), receipt(1, 2, 1)).contains("1 and 2 of them"));
    }

    @Test
    void aStatementThatIsOnePart() {
        Receipts read = receipts(!DIVIDED);
        read.merge(ofTask(read, receipt(0, 5, 9, 1, "7")));
        // Each execution, and each stage without one, may have other rows, but not within it.
        read.merge(ofTask(read, receipt(0, 5, 8, 2, "8")));
        read.merge(ofTask(read, receipt(0, 5, 7, 3, null)));
        assertEquals(List.of(), found);
        assertEquals(1, read.count());
        assertTrue(refused(read, receipt(0, 5, 8, 4, "7")).contains("read twice"));
        assertTrue(refused(read, receipt(0, 5, 8, 3, null)).contains("read twice"));
    }

    @Test
    void readersHaveWhatTheDriverKnows() throws Exception {
        Receipts read = receipts(DIVIDED);
        read.merge(ofTask(read, receipt(1, 5, 9)));
        DrayOptions options =
                new DrayOptions(Map.of("url", "dray://localhost", "dbtable", "t"), false);
        PartReaderFactory factory = new PartReaderFactory(options, "SELECT 1", new StructType(),
                null, new byte[2][0], read, new CollectionAccumulator<>(), new BitSet());
        factory.add(receipt(0, 1, 2));
        factory.add(receipt(1, 5, 9));
        assertThrows(DrayException.class, () -> factory.add(receipt(1, 5, 8)));
    }

    @Test
    void whatIsKnownTravels() throws Exception {
        Receipts read = receipts(DIVIDED);
        read.merge(ofTask(read, receipt(1, 5, 9, 1, "7")));
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(read.known());
        }
        try (ObjectInputStream in = new ObjectInputStream(
                new ByteArrayInputStream(bytes.toByteArray()))) {
            Map<?, ?> known = (Map<?, ?>) in.readObject();
            assertEquals(read.known().keySet(), known.keySet());
            Receipt receipt = (Receipt) known.get(new Receipts.Key(1, ""));
            assertEquals("", receipt.difference(read.value().get(0)));
        }
    }

    @Test
    void aReceiptOfAnotherLength() {
        String said = assertThrows(DrayException.class,
                () -> new Receipt(new byte[3], 1, null)).getMessage();
        assertTrue(said.contains("3 bytes"), said);
    }
}
