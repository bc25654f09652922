package dray.spark;

import dray.spark.Snapshots.Output;
import dray.spark.Snapshots.SubmittedStage;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Which of a scan's snapshots its stages were read under.
 *
 * <p>Spark submits a stage again when an executor was lost with what it had computed. The output of
 * a shuffle lives as long as its plan, and that of {@code cache()} until it is given up: also in
 * jobs that begin when that of its stage has ended and its snapshot was given up. What is missing
 * can't come from another snapshot then, since other rows of the first one may be there still. Nor
 * can the parts that one job after the other reads for {@code toLocalIterator()}.
 */
final class ReadStages {
    private final long scan;
    private int snapshots;
    /** The snapshots, by number. What is not here was read under the first one. */
    private final Map<Output, Integer> read = new HashMap<>();
    /**
     * What stages have read that compute only some partitions of an RDD, by the numbers of the RDD
     * and of the snapshot.
     */
    private final Map<Integer, Map<Integer, Pass>> passes = new HashMap<>();

    /** Of a scan, by its number at the driver. */
    ReadStages(long scan) {
        this.scan = scan;
    }

    /** From now on, the scan has another snapshot. */
    void beginSnapshot() {
        snapshots++;
    }

    /**
     * Refuses to complete under the snapshot of now what was read under one before.
     *
     * @return the partitions of the stage's RDD for which no part can be read, since another
     *         snapshot has those before them
     */
    BitSet check(Snapshot current) {
        current.ofApplication().noteReading(new PartialStages.Read(this, snapshots, current));
        Set<Integer> cached = current.ofApplication().cachedOf(scan);
        if (snapshots <= 1 && cached.isEmpty()) {
            return new BitSet();
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
        PartialStage partial = stage.partial();
        return partial == null ? new BitSet() : refused(partial.rdd(), snapshots);
    }

    /**
     * The partitions of an RDD that can't be read under a snapshot, since jobs have yet to read
     * them that have read others under another one.
     */
    BitSet refused(int rdd, int number) {
        BitSet refused = new BitSet();
        synchronized (passes) {
            passes.getOrDefault(rdd, Map.of()).forEach((other, pass) -> {
                if (other != number) {
                    refused.or(pass.missing());
                }
            });
        }
        return refused;
    }

    /**
     * Notes that a stage has computed a partition of an RDD. It may have rows of other scans only.
     *
     * @param number of the snapshot
     * @param tasks  gives what has read under the snapshot
     * @param begun  gets what begins with this partition
     */
    void hasRead(PartialStage stage, int partition, int number, Supplier<List<TaskRead>> tasks,
            Consumer<Pass> begun) {
        if (tasks.get().stream().noneMatch(
                task -> task.stage() == stage.id() && task.partition() == partition)) {
            return;
        }
        synchronized (passes) {
            Map<Integer, Pass> ofRdd =
                    passes.computeIfAbsent(stage.rdd(), key -> new HashMap<>());
            // Whoever had enough rows has begun again.
            ofRdd.entrySet().removeIf(
                    other -> other.getKey() != number && other.getValue().hasEnough());
            Pass pass = ofRdd.get(number);
            if (pass == null) {
                pass = new Pass(this, tasks, stage);
                ofRdd.put(number, pass);
                begun.accept(pass);
            }
            pass.add(stage, partition);
            if (pass.missing().isEmpty()) {
                ofRdd.remove(number);
            }
        }
    }
}
