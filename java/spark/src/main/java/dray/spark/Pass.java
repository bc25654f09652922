package dray.spark;

import java.lang.ref.WeakReference;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.function.Supplier;

/**
 * How often each partition of an RDD was read under one snapshot, by stages that compute only some
 * of them. {@code toLocalIterator()} and {@code RDD.take()} run one such job after the other.
 * Several of them may read an RDD at a time: then partitions that were read less often than others
 * are still to come for one of them.
 */
final class Pass {
    private final WeakReference<ReadStages> scan;
    private final Supplier<List<TaskRead>> tasks;
    private final int[] reads;
    /** The last one that has read. */
    private PartialStage stage;
    /** When it has. */
    private long readMs;

    /** {@code tasks} gives those that have read under the snapshot. */
    Pass(ReadStages scan, Supplier<List<TaskRead>> tasks, PartialStage stage) {
        this.scan = new WeakReference<>(scan);
        this.tasks = tasks;
        this.stage = stage;
        reads = new int[stage.partitions()];
    }

    synchronized void add(PartialStage reading, int partition) {
        stage = reading;
        readMs = System.currentTimeMillis();
        reads[partition]++;
    }

    /** The partitions that are still to come. */
    synchronized BitSet missing() {
        int most = Arrays.stream(reads).max().orElse(0);
        BitSet missing = new BitSet();
        for (int partition = 0; partition < reads.length; partition++) {
            missing.set(partition, reads[partition] < most);
        }
        return missing;
    }

    private synchronized PartialStage stage() {
        return stage;
    }

    /** Whether the last stage had enough rows before the end of a part, as {@code take()} has. */
    boolean hasEnough() {
        int last = stage().id();
        return tasks.get().stream().anyMatch(task -> task.stage() == last && !task.isToEnd());
    }

    private synchronized boolean isInTime() {
        return System.currentTimeMillis() - readMs < stage.goesOnMs();
    }

    /** Whether a later job may read on. */
    boolean mayGoOn() {
        return isInTime() && scan.get() != null && !missing().isEmpty() && !hasEnough();
    }
}
