package dray.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;

/** Cancels what a task waits for in native code when Spark kills the task. */
final class TaskWatch {
    private static final long PERIOD_MS = 100;
    private static final Map<Long, TaskContext> READING = new ConcurrentHashMap<>();

    static {
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor(run -> {
            Thread thread = new Thread(run, "dray task watch");
            thread.setDaemon(true);
            return thread;
        });
        clock.scheduleWithFixedDelay(
                TaskWatch::look, PERIOD_MS, PERIOD_MS, TimeUnit.MILLISECONDS);
    }

    private TaskWatch() {}

    /** Watches a task until {@link #end}. There is no task if a program reads by itself. */
    static void begin(TaskContext task, long handle) {
        if (task != null) {
            READING.put(handle, task);
        }
    }

    static void end(long handle) {
        READING.remove(handle);
    }

    private static void look() {
        READING.forEach((handle, task) -> {
            if (task.isInterrupted()) {
                Native.cancel(handle);
            }
        });
    }
}
