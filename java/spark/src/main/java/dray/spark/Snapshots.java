package dray.spark;

import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.apache.spark.Dependency;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;
import org.apache.spark.storage.RDDInfo;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Gives up the snapshots of an application when nothing can need them any more.
 *
 * <p>Spark tells a source neither that a scan has ended nor what a scan is read for. So a snapshot
 * is given up when everything has ended that had begun when its parts were last handed out: all
 * executions of SQL and all jobs, whosoever they are. If the rows are cached, all parts must have
 * been read, too; and so if jobs have read only some partitions of an RDD, unless they had enough
 * rows. A stage that begins later finds that the snapshot is gone, and its scan takes another one.
 *
 * <p>That is looked at whenever something ends. A clock looks, too: some scans are planned and
 * never run, and others are planned by a thread whose execution has failed meanwhile.
 */
final class Snapshots extends SparkListener {
    /** The local property that has the number of a thread's execution. */
    static final String EXECUTION_ID = "spark.sql.execution.id";
    /**
     * How Spark names the jobs of PySpark's {@code take()} and the like. Each has an RDD of its
     * own, and the next one comes at once.
     */
    private static final String PYTHON_JOB = "runJob at PythonRDD";
    private static final long LOOK_MS = 1000;
    /** How long parts are kept for a job that has not begun. */
    private static final long UNUSED_MS = 5000;
    /** How long the end of an application waits for servers. */
    private static final long END_MS = 5000;
    /** How long Spark may take to tell what it submits. */
    private static final long TELL_MS = 30_000;
    private static final Map<SparkContext, Snapshots> OF_CONTEXTS = new WeakHashMap<>();

    private final SparkContext context;
    private final ConcurrentLinkedQueue<Snapshot> held = new ConcurrentLinkedQueue<>();
    /** Those that have a name, by url and name. */
    private final Map<List<String>, NamedSnapshot> named = new ConcurrentHashMap<>();
    /** When the executions that run began, by the driver's clock. */
    private final Map<Long, Long> executions = new HashMap<>();
    /** The same of jobs. */
    private final Map<Integer, Long> jobs = new HashMap<>();
    /** The stage that was submitted last. */
    private SubmittedStage submitted;
    private final PartialStages partialStages = new PartialStages();
    /** The shuffles that were ever written. */
    private final BitSet shuffles = new BitSet();
    /** Why rows can't be right that executions have read which run. */
    private final Map<String, String> problems = new ConcurrentHashMap<>();
    private final ScheduledExecutorService clock =
            Executors.newSingleThreadScheduledExecutor(daemons("dray snapshots"));
    /** Giving up waits for a server, and listeners must not. */
    private final ExecutorService releasing =
            Executors.newCachedThreadPool(daemons("dray release"));

    private Snapshots(SparkContext context) {
        this.context = context;
        clock.scheduleWithFixedDelay(this::tick, LOOK_MS, LOOK_MS, TimeUnit.MILLISECONDS);
    }

    private static ThreadFactory daemons(String name) {
        return run -> {
            Thread thread = new Thread(run, name);
            thread.setDaemon(true);
            return thread;
        };
    }

    static synchronized Snapshots of(SparkContext context) {
        return OF_CONTEXTS.computeIfAbsent(context, key -> {
            Snapshots snapshots = new Snapshots(key);
            key.addSparkListener(snapshots);
            return snapshots;
        });
    }

    private static synchronized void forget(SparkContext context) {
        OF_CONTEXTS.remove(context);
    }

    /** Holds a snapshot that this thread's execution has taken. */
    void add(Snapshot snapshot) {
        // The execution may have begun before this listened.
        String execution = context.getLocalProperty(EXECUTION_ID);
        if (execution != null) {
            begin(executions, Long.valueOf(execution), snapshot.handedOut());
        }
        held.add(snapshot);
    }

    /** The snapshot that scans with such options have. It begins when it is used first. */
    NamedSnapshot named(DrayOptions options) {
        return named.computeIfAbsent(List.of(options.url(), options.snapshot()),
                key -> new NamedSnapshot(options));
    }

    /** Gives up the snapshots of a name. Returns whether there was one. */
    static boolean releaseNamed(String name) {
        List<Snapshots> all;
        synchronized (Snapshots.class) {
            all = List.copyOf(OF_CONTEXTS.values());
        }
        boolean found = false;
        for (Snapshots snapshots : all) {
            for (Map.Entry<List<String>, NamedSnapshot> one : snapshots.named.entrySet()) {
                if (one.getValue().isNamed(name)
                        && snapshots.named.remove(one.getKey(), one.getValue())) {
                    one.getValue().release();
                    found = true;
                }
            }
        }
        return found;
    }

    /** Ends the jobs that have read something wrong, and keeps their executions from writing it. */
    void fail(String problem, List<Receipt> read) {
        for (Receipt receipt : read) {
            if (receipt.execution() != null) {
                problems.put(receipt.execution(), problem);
            }
            context.cancelStage(receipt.stage(), problem);
        }
    }

    /** Fails if this thread's execution has read something wrong. */
    static void checkReceipts(SparkContext context) {
        Snapshots snapshots;
        synchronized (Snapshots.class) {
            snapshots = OF_CONTEXTS.get(context);
        }
        String execution = context.getLocalProperty(EXECUTION_ID);
        if (snapshots != null && execution != null && snapshots.problems.containsKey(execution)) {
            throw new DrayException("nothing is written: " + snapshots.problems.get(execution));
        }
    }

    /** Tells when the listener has seen all that Spark had told by a time. */
    private static final class Tick implements SparkListenerEvent {
        private final long time = System.currentTimeMillis();

        @Override
        public boolean logEvent() {
            return false;
        }
    }

    /** What stages compute and others use: rows that stay where they were computed. */
    record Output(Kind kind, int id) {
        /** Of what the number is: a stage, a shuffle, or an RDD. */
        enum Kind { RESULT, SHUFFLE, CACHED }
    }

    /**
     * A stage that Spark submits.
     *
     * @param isAgain whether it is to compute what is missing of its output
     * @param cached the RDDs in it that are kept
     * @param partial if it computes only some partitions, else null
     */
    record SubmittedStage(
            Output output, boolean isAgain, List<Integer> cached, PartialStage partial) {}

    /** The RDDs that {@code cache()} or {@code persist()} keep, and that need a scan's rows. */
    Set<Integer> cachedOf(long scan) {
        Set<Integer> found = new HashSet<>();
        CollectionConverters.asJava(context.getPersistentRDDs()).forEach((id, rdd) -> {
            if (needs(rdd, scan)) {
                found.add((Integer) id);
            }
        });
        return found;
    }

    private static boolean needs(RDD<?> rdd, long scan) {
        Set<Integer> seen = new HashSet<>();
        Deque<RDD<?>> open = new ArrayDeque<>(List.of(rdd));
        while (!open.isEmpty()) {
            RDD<?> next = open.pop();
            if (DrayPartition.isOf(next, scan)) {
                return true;
            }
            CollectionConverters.asJava(next.dependencies()).stream()
                    .map(Dependency::rdd).filter(above -> seen.add(above.id()))
                    .forEach(open::push);
        }
        return false;
    }

    /** Whether an RDD is still kept. */
    boolean isCached(int rdd) {
        return context.getPersistentRDDs().contains(rdd);
    }

    /** Its latch opens when the listener has seen all that Spark had told before. */
    private record Marker(CountDownLatch seen) implements SparkListenerEvent {
        @Override
        public boolean logEvent() {
            return false;
        }
    }

    /** Says that the stage that Spark submits now gets the parts of a scan. */
    private record Reading(PartialStages.Read read) implements SparkListenerEvent {
        @Override
        public boolean logEvent() {
            return false;
        }
    }

    /**
     * Notes that the stage that Spark submits now reads a scan. The event follows that of the
     * stage, as {@link #submittedStage} says, but nothing waits for it.
     */
    void noteReading(PartialStages.Read read) {
        context.listenerBus().post(new Reading(read));
    }

    /**
     * The stage that Spark submits now. Spark's scheduler tells listeners of a stage, and then
     * serializes its readers in the same thread, which calls this.
     */
    SubmittedStage submittedStage() {
        CountDownLatch seen = new CountDownLatch(1);
        context.listenerBus().post(new Marker(seen));
        boolean told;
        try {
            told = seen.await(TELL_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            told = false;
        }
        synchronized (this) {
            if (!told || submitted == null) {
                throw new DrayException("Spark's listeners are too late to tell whether a stage"
                        + " reads parts again (load the table anew)");
            }
            return submitted;
        }
    }

    @Override
    public synchronized void onStageSubmitted(SparkListenerStageSubmitted event) {
        StageInfo stage = event.stageInfo();
        boolean isAgain = stage.attemptNumber() > 0;
        Output output = new Output(Output.Kind.RESULT, stage.stageId());
        if (stage.shuffleDepId().isDefined()) {
            int shuffle = (Integer) stage.shuffleDepId().get();
            isAgain |= shuffles.get(shuffle);
            shuffles.set(shuffle);
            output = new Output(Output.Kind.SHUFFLE, shuffle);
        }
        List<Integer> cached = CollectionConverters.asJava(stage.rddInfos()).stream()
                .filter(rdd -> rdd.storageLevel().isValid()).map(RDDInfo::id).toList();
        PartialStage partial = partialStages.submitted(stage, goesOnMs(event));
        submitted = new SubmittedStage(output, isAgain, cached, partial);
    }

    /** How long after a stage another job may read on. */
    private long goesOnMs(SparkListenerStageSubmitted event) {
        if (isOfExecution(event.properties())) {
            // It keeps its snapshots by itself.
            return 0;
        }
        return event.stageInfo().name().startsWith(PYTHON_JOB) ? UNUSED_MS : Long.MAX_VALUE;
    }

    /** Whether the execution runs that began a job. Threads keep its number after its end. */
    private boolean isOfExecution(Properties ofJob) {
        String id = ofJob == null ? null : ofJob.getProperty(EXECUTION_ID);
        return id != null && executions.containsKey(Long.valueOf(id));
    }

    @Override
    public synchronized void onTaskEnd(SparkListenerTaskEnd end) {
        partialStages.onTaskEnd(end);
    }

    private void tick() {
        if (!held.isEmpty() || !named.isEmpty()) {
            context.listenerBus().post(new Tick());
        }
        // Those of an application that does nothing end with their leases.
        if (runsAnything()) {
            named.values().stream().filter(NamedSnapshot::isDue)
                    .forEach(due -> releasing.execute(due::renew));
        }
    }

    @Override
    public void onJobStart(SparkListenerJobStart start) {
        partialStages.onJobStart(start);
        begin(jobs, start.jobId(), start.time());
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd end) {
        partialStages.onJobEnd(end);
        end(jobs, end.jobId(), end.time());
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        if (event instanceof SparkListenerSQLExecutionStart start) {
            begin(executions, start.executionId(), start.time());
        } else if (event instanceof SparkListenerSQLExecutionEnd end) {
            problems.remove(String.valueOf(end.executionId()));
            end(executions, end.executionId(), end.time());
        } else if (event instanceof Tick tick) {
            look(tick.time - UNUSED_MS);
        } else if (event instanceof Marker marker) {
            marker.seen.countDown();
        } else if (event instanceof Reading reading && submitted != null) {
            partialStages.read(submitted.partial, reading.read);
        }
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
        clock.shutdown();
        release(Long.MAX_VALUE, List.copyOf(held));
        List.copyOf(named.values()).forEach(one -> releasing.execute(one::release));
        named.clear();
        forget(context);
        releasing.shutdown();
        try {
            // Nobody tells the servers after the process has ended.
            releasing.awaitTermination(END_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private synchronized <K> void begin(Map<K, Long> running, K what, long time) {
        running.putIfAbsent(what, time);
    }

    private synchronized <K> void end(Map<K, Long> running, K what, long time) {
        running.remove(what);
        look(time);
    }

    /** Gives up what nothing needs, and nobody got since then. */
    private synchronized void look(long since) {
        // A thread may plan for an execution that has failed, and Spark may lose an event.
        executions.keySet().removeIf(id -> SQLExecution.getQueryExecution(id) == null);
        release(since, held.stream().filter(snapshot -> {
            long handedOut = snapshot.handedOut();
            return snapshot.isOver() || handedOut < since
                    && !stillRuns(handedOut) && !snapshot.isPartlyRead();
        }).toList());
    }

    /** Whether something runs that had begun by then, as far as Spark has told yet. */
    synchronized boolean stillRuns(long since) {
        return hasBegunBy(since, executions) || hasBegunBy(since, jobs);
    }

    private synchronized boolean runsAnything() {
        return !executions.isEmpty() || !jobs.isEmpty();
    }

    private static boolean hasBegunBy(long time, Map<?, Long> running) {
        return running.values().stream().anyMatch(begun -> begun <= time);
    }

    private void release(long since, List<Snapshot> unused) {
        held.removeAll(unused);
        for (Snapshot snapshot : unused) {
            releasing.execute(() -> {
                if (!snapshot.release(snapshot.isOver() ? Long.MAX_VALUE : since)) {
                    // Somebody got the parts meanwhile.
                    held.add(snapshot);
                }
            });
        }
    }
}
