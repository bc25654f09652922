package dray.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReceiptsTest {
    /** A receipt as in spec/partitions.md section 4, without its seal. */
    private static byte[] receipt(int part, long rows, long digest, int reading) {
        ByteBuffer bytes = ByteBuffer.allocate(80).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(24, part).putLong(32, rows).putLong(40, digest).putInt(48, reading);
        return bytes.array();
    }

    @Test
    void eachPartOnce() {
        Receipts read = Receipts.of(List.of(receipt(1, 5, 9, 1), receipt(0, 7, 8, 2)));
        assertEquals(2, read.count());
        assertEquals(12, read.rows());
        assertEquals("", read.difference());
    }

    @Test
    void aPartThatWasReadTwice() {
        Receipts same = Receipts.of(List.of(receipt(0, 5, 9, 1), receipt(0, 5, 9, 2)));
        assertEquals(1, same.count());
        assertEquals("", same.difference());
        Receipts other = Receipts.of(List.of(receipt(0, 5, 9, 1), receipt(0, 5, 8, 2)));
        assertTrue(other.difference().contains("different rows"));
        assertTrue(Receipts.of(List.of(new byte[3])).difference().contains("3 bytes"));
    }
}
