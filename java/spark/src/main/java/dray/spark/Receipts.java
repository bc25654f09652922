package dray.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The receipts of a plan's parts (spec/partitions.md section 4). Spark may run a task again, and
 * takes the output of one of them. So a part may have several receipts, which must agree.
 *
 * @param ofParts    one receipt of each part that was read, by its number
 * @param difference what two receipts of one part disagree about, empty if nothing
 */
record Receipts(Map<Integer, byte[]> ofParts, String difference) {
    private static final int BYTES = 80;
    private static final int INDEX = 24;
    private static final int ROWS = 32;
    private static final int DIGEST = 40;

    static Receipts of(List<byte[]> all) {
        Map<Integer, byte[]> ofParts = new TreeMap<>();
        String difference = "";
        for (byte[] receipt : all) {
            if (receipt.length != BYTES) {
                difference = "a receipt has " + receipt.length + " bytes, expected " + BYTES;
                continue;
            }
            int part = bytes(receipt).getInt(INDEX);
            byte[] before = ofParts.putIfAbsent(part, receipt);
            if (before != null && !sameRows(before, receipt)) {
                difference = "part " + part + " was read twice, with different rows: "
                        + bytes(before).getLong(ROWS) + " and " + bytes(receipt).getLong(ROWS)
                        + " of them";
            }
        }
        return new Receipts(ofParts, difference);
    }

    private static boolean sameRows(byte[] one, byte[] two) {
        return bytes(one).getLong(ROWS) == bytes(two).getLong(ROWS)
                && bytes(one).getLong(DIGEST) == bytes(two).getLong(DIGEST);
    }

    private static ByteBuffer bytes(byte[] receipt) {
        return ByteBuffer.wrap(receipt).order(ByteOrder.LITTLE_ENDIAN);
    }

    int count() {
        return ofParts.size();
    }

    long rows() {
        return ofParts.values().stream().mapToLong(receipt -> bytes(receipt).getLong(ROWS)).sum();
    }

    byte[][] each() {
        return ofParts.values().toArray(byte[][]::new);
    }
}
