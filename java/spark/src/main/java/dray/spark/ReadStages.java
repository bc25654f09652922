package dray.spark;

import dray.spark.Snapshots.Output;
import dray.spark.Snapshots.SubmittedStage;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

/**
 * Which of a scan's snapshots its stages were read under.
 *
 * <p>Spark submits a stage again when an executor was lost with what it had computed. The output of
 * a shuffle lives as long as its plan, and that of {@code cache()} until it is given up: also in
 * jobs that begin when that of its stage has ended and its snapshot was given up. What is missing
 * can't come from another snapshot then, since other rows of the first one may be there still.
 */
final class ReadStages {
    private final long scan;
    private int snapshots;
    /** The snapshots, by number. What is not here was read under the first one. */
    private final Map<Output, Integer> read = new HashMap<>();

    /** Of a scan, by its number at the driver. */
    ReadStages(long scan) {
        this.scan = scan;
    }

    /** From now on, the scan has another snapshot. */
    void beginSnapshot() {
        snapshots++;
    }

    /** Refuses to complete under the snapshot of now what was read under one before. */
    void check(Snapshot current) {
        Set<Integer> cached = current.ofApplication().cachedOf(scan);
        if (snapshots <= 1 && cached.isEmpty()) {
            return;
        }
        SubmittedStage stage = current.ofApplication().submittedStage();
        if (stage.isAgain() && read.getOrDefault(stage.output(), 1) != snapshots) {
            throw new DrayException("rows that were lost with an executor can't be read again:"
                    + " their snapshot has ended with its lease, or with the job that read them"
                    + " (load the table anew)");
        }
        read.put(stage.output(), snapshots);
        cached.retainAll(stage.cached());
        for (int rdd : cached) {
            Integer before = read.putIfAbsent(new Output(Output.Kind.CACHED, rdd), snapshots);
            if (before != null && before != snapshots) {
                throw new DrayException("rows that the cache has lost, or not had yet, can't be"
                        + " read: their snapshot has ended (unpersist the table, or give it a"
                        + " longer lease by the option lease)");
            }
            current.keepFor(rdd);
        }
    }
}
