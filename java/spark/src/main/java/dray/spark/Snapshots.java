package dray.spark;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * Gives up the snapshots of an application when nothing can need them any more.
 *
 * <p>Spark tells a source neither that a scan has ended nor what a scan is read for. So a snapshot
 * is given up when everything has ended that had begun when its parts were last handed out: all
 * executions of SQL and all jobs, whosoever they are. A stage that begins later finds that the
 * snapshot is gone, and its scan takes another one.
 */
final class Snapshots extends SparkListener {
    /** The local property that has the number of a thread's execution. */
    private static final String EXECUTION_ID = "spark.sql.execution.id";
    private static final Map<SparkContext, Snapshots> OF_CONTEXTS = new WeakHashMap<>();
    /** Giving up waits for a server, and listeners must not. */
    private static final ExecutorService RELEASING = Executors.newSingleThreadExecutor(run -> {
        Thread thread = new Thread(run, "dray release");
        thread.setDaemon(true);
        return thread;
    });

    private final SparkContext context;
    private final ConcurrentLinkedQueue<Snapshot> held = new ConcurrentLinkedQueue<>();
    /** What runs, and since when by the driver's clock. */
    private final Map<String, Long> running = new HashMap<>();

    private Snapshots(SparkContext context) {
        this.context = context;
    }

    static synchronized Snapshots of(SparkContext context) {
        return OF_CONTEXTS.computeIfAbsent(context, key -> {
            Snapshots snapshots = new Snapshots(key);
            key.addSparkListener(snapshots);
            return snapshots;
        });
    }

    /** Holds a snapshot that this thread's execution has taken. */
    void add(Snapshot snapshot) {
        // The execution may have begun before this listened.
        String execution = context.getLocalProperty(EXECUTION_ID);
        if (execution != null) {
            begin("execution " + execution, snapshot.handedOut());
        }
        held.add(snapshot);
    }

    @Override
    public void onJobStart(SparkListenerJobStart start) {
        begin("job " + start.jobId(), start.time());
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd end) {
        end("job " + end.jobId(), end.time());
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerSQLExecutionStart start) {
            begin("execution " + start.executionId(), start.time());
        } else if (event instanceof SparkListenerSQLExecutionEnd end) {
            end("execution " + end.executionId(), end.time());
        }
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        release(Long.MAX_VALUE, List.copyOf(held));
    }

    private synchronized void begin(String what, long time) {
        running.putIfAbsent(what, time);
    }

    private synchronized void end(String what, long time) {
        running.remove(what);
        List<Snapshot> unused = held.stream().filter(snapshot -> {
            long handedOut = snapshot.handedOut();
            return snapshot.isOver() || handedOut < time
                    && running.values().stream().noneMatch(since -> since <= handedOut);
        }).toList();
        release(time, unused);
    }

    private void release(long time, List<Snapshot> unused) {
        held.removeAll(unused);
        for (Snapshot snapshot : unused) {
            RELEASING.execute(() -> {
                if (!snapshot.release(snapshot.isOver() ? Long.MAX_VALUE : time)) {
                    // Somebody got the parts meanwhile.
                    held.add(snapshot);
                }
            });
        }
    }
}
