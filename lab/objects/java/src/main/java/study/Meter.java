package study;

import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** Time, CPU time and collections from its construction to `stop`. */
public final class Meter {
    private static final List<GarbageCollectorMXBean> COLLECTORS =
            ManagementFactory.getGarbageCollectorMXBeans();

    private static final Path TASKS = Path.of("/proc/self/task");

    /** CPU time of threads that have ended, which /proc no longer knows. */
    private static final AtomicLong ENDED = new AtomicLong();

    private final long collectionMs = collectionMs();
    private final long compilationMs = compilationMs();
    private final long otherCpu = otherThreads();
    private final long ownCpu = ownThread();
    private final long wall = System.nanoTime();
    private long wallEnd;
    private long cpuEnd;
    private long collectionMsEnd;
    private long compilationMsEnd;

    public Meter stop() {
        wallEnd = System.nanoTime();
        cpuEnd = ownThread() - ownCpu + otherThreads() - otherCpu;
        collectionMsEnd = collectionMs();
        compilationMsEnd = compilationMs();
        return this;
    }

    public double wall() {
        return (wallEnd - wall) * 1e-9;
    }

    public double cpu() {
        return cpuEnd * 1e-9;
    }

    /** Adds what was measured. `cpu_s` is of all threads, those of the collector among them. */
    public void report(Result result) {
        result.seconds("wall_s", wall()).seconds("cpu_s", cpu());
        reportJvm(result);
    }

    /** Adds what only Java has. */
    public void reportJvm(Result result) {
        List<String> names = new ArrayList<>();
        COLLECTORS.forEach(collector -> names.add(collector.getName()));
        result.text("gc", String.join(", ", names));
        result.seconds("gc_s", (collectionMsEnd - collectionMs) * 1e-3);
        result.seconds("jit_s", (compilationMsEnd - compilationMs) * 1e-3);
        result.number("heap_max", Runtime.getRuntime().maxMemory());
    }

    /** The peak of resident memory of the process. */
    public static long peakBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            }
        }
        return 0;
    }

    /** A thread calls this last, so that its CPU time is not lost. */
    public static void threadEnds() {
        ENDED.addAndGet(ownThread());
    }

    private static long ownThread() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    /**
     * CPU time of all other threads in nanoseconds, which Linux tells of each. What Java tells of
     * the process goes in steps of 10 ms.
     */
    private static long otherThreads() {
        long sum = ENDED.get();
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
            Path own = Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName();
            for (Path task : tasks) {
                sum += task.getFileName().equals(own) ? 0 : cpuTime(task);
            }
            return sum;
        } catch (IOException error) {
            throw new UsageException("Linux does not tell the CPU time of threads: " + error);
        }
    }

    private static long cpuTime(Path task) throws IOException {
        try {
            String times = Files.readString(task.resolve("schedstat"));
            return Long.parseLong(times.substring(0, times.indexOf(' ')));
        } catch (NoSuchFileException ended) {
            // Threads of the compiler come and go.
            return 0;
        }
    }

    private static long collectionMs() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : COLLECTORS) {
            sum += Math.max(0, collector.getCollectionTime());
        }
        return sum;
    }

    static long compilationMs() {
        return ManagementFactory.getCompilationMXBean().getTotalCompilationTime();
    }
}
