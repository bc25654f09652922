package dray.spark;

import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.util.AccumulatorV2;

/**
 * The receipts of a plan's parts. Tasks add theirs, and Spark merges at the driver those of the
 * tasks whose output it takes. It may run a task again, so a part may have several receipts. They
 * must agree: other rows would stand beside some that were taken from the first reading.
 */
final class Receipts extends AccumulatorV2<Receipt, List<Receipt>> {
    private static final long serialVersionUID = 1;

    /**
     * What has the same rows each time that it is read.
     *
     * @param run empty if all readings of the part must agree
     */
    record Key(int part, String run) implements Serializable {
        private static final long serialVersionUID = 1;
    }

    /** Gets two receipts that differ. */
    interface Differences {
        void found(String difference, Receipt before, Receipt receipt);
    }

    /**
     * Whether there are several parts. The snapshot decides their rows. A statement that is one
     * part may have others whenever it runs, as {@code SELECT random()} has. So different queries
     * may read it with different rows.
     */
    private final boolean isDivided;
    /** Heartbeats of an executor serialize it while a task adds to it. */
    private final Map<Key, Receipt> first = new ConcurrentHashMap<>();
    /** Null at the executors. */
    private final transient Differences differences;

    Receipts(boolean isDivided, Differences differences) {
        this.isDivided = isDivided;
        this.differences = differences;
    }

    private Key key(Receipt receipt) {
        return new Key(receipt.part(), isDivided ? "" : receipt.run());
    }

    /** One receipt of each part, or of each run that has read it. */
    Map<Key, Receipt> known() {
        return new HashMap<>(first);
    }

    /** Adds a receipt of this task's, unless it differs from one that is known. */
    void add(Receipt receipt, Map<Key, Receipt> known) {
        Receipt before = known.get(key(receipt));
        String difference = before == null ? "" : receipt.difference(before);
        if (!difference.isEmpty()) {
            throw new DrayException(difference);
        }
        add(receipt);
    }

    @Override
    public void add(Receipt receipt) {
        Receipt before = first.putIfAbsent(key(receipt), receipt);
        String difference = before == null ? "" : receipt.difference(before);
        if (!difference.isEmpty()) {
            throw new DrayException(difference);
        }
    }

    @Override
    public void merge(AccumulatorV2<Receipt, List<Receipt>> other) {
        for (Receipt receipt : other.value()) {
            Receipt before = first.putIfAbsent(key(receipt), receipt);
            String difference = before == null ? "" : receipt.difference(before);
            if (!difference.isEmpty() && differences != null) {
                differences.found(difference, before, receipt);
            }
        }
    }

    @Override
    public List<Receipt> value() {
        return List.copyOf(first.values());
    }

    @Override
    public boolean isZero() {
        return first.isEmpty();
    }

    @Override
    public void reset() {
        first.clear();
    }

    @Override
    public Receipts copy() {
        Receipts copy = new Receipts(isDivided, differences);
        copy.first.putAll(first);
        return copy;
    }

    /** One receipt of each part. */
    private Map<Integer, Receipt> ofParts() {
        Map<Integer, Receipt> ofParts = new HashMap<>();
        first.values().forEach(receipt -> ofParts.putIfAbsent(receipt.part(), receipt));
        return ofParts;
    }

    /** How many parts have receipts. */
    int count() {
        return ofParts().size();
    }

    /** The rows of these parts. */
    long rows() {
        return ofParts().values().stream().mapToLong(Receipt::rows).sum();
    }

    byte[][] each() {
        return ofParts().values().stream().map(Receipt::bytes).toArray(byte[][]::new);
    }
}
