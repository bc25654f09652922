package dray.spark;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.util.CollectionAccumulator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The stages that run and compute only some partitions of an RDD, and the scans that they read.
 * Only the thread of the listener uses it.
 */
final class PartialStages {
    private final Map<Integer, List<Integer>> ofJobs = new HashMap<>();
    private final Map<Integer, Running> running = new HashMap<>();

    /** A stage, the scans that it reads, and the partitions that it has computed. */
    private record Running(PartialStage stage, Set<Read> scans, BitSet computed) {}

    /** A scan, and its snapshot with its number. */
    record Read(ReadStages scan, int number, Snapshot snapshot) {}

    void onJobStart(SparkListenerJobStart start) {
        var stages = new ArrayList<Integer>();
        CollectionConverters.asJava(start.stageIds()).forEach(id -> stages.add((Integer) id));
        ofJobs.put(start.jobId(), stages);
    }

    void onJobEnd(SparkListenerJobEnd end) {
        List<Integer> stages = ofJobs.remove(end.jobId());
        if (stages != null) {
            running.keySet().removeAll(stages);
        }
    }

    /** The stage that is submitted, or null if it computes all partitions. */
    PartialStage submitted(StageInfo stage, long goesOnMs) {
        if (stage.attemptNumber() == 0 && stage.shuffleDepId().isEmpty()) {
            RDDInfo of = stage.rddInfos().head();
            if (stage.numTasks() < of.numPartitions()) {
                PartialStage partial = new PartialStage(
                        stage.stageId(), of.id(), of.numPartitions(), goesOnMs);
                running.put(partial.id(),
                        new Running(partial, new LinkedHashSet<>(), new BitSet()));
            }
        }
        Running found = running.get(stage.stageId());
        return found == null ? null : found.stage;
    }

    void read(PartialStage stage, Read read) {
        Running found = stage == null ? null : running.get(stage.id());
        if (found != null) {
            found.scans.add(read);
        }
    }

    void onTaskEnd(SparkListenerTaskEnd end) {
        Running found = running.get(end.stageId());
        if (found == null || !end.taskInfo().successful()) {
            return;
        }
        int partition = end.taskInfo().partitionId();
        if (!found.computed.get(partition)) {
            found.computed.set(partition);
            for (Read read : found.scans) {
                CollectionAccumulator<TaskRead> tasks = read.snapshot.tasks();
                read.scan.hasRead(found.stage, partition, read.number, tasks::value,
                        read.snapshot::keepFor);
            }
        }
    }
}
