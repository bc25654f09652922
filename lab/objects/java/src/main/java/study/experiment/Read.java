package study.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import study.Implementation;
import study.Index;
import study.Item;
import study.Meter;
import study.Result;
import study.Run;
import study.StoredFile;
import study.UsageException;

/** Experiment 1: reads stored objects, one range or random ones. */
public final class Read {
    private final Run run;
    private final Index index;
    private final Implementation implementation;
    private final StoredFile file;
    private final boolean validate;
    private byte[] page = new byte[0];
    private long ready;
    private long touch;
    private long sum;
    private Exception failure;

    private Read(Run run, Index index, Path folder) throws IOException {
        this.run = run;
        this.index = index;
        implementation = run.implementation();
        file = StoredFile.read(StoredFile.pages(folder, run.kind()));
        validate = run.validates();
    }

    public static void run(Run run, Result result) throws Exception {
        Path folder = run.options().path("folder");
        Index index = Index.of(folder, run.kind());
        String order = run.options().text("order", "sequential");
        long count = run.options().number("count");
        long start = order.equals("random") ? 0 : run.options().number("start", 0);
        int threads = (int) run.options().number("threads", 1);
        if (order.equals("sequential")) {
            index.require(start, count);
        } else if (!order.equals("random")) {
            throw new UsageException("--order is sequential or random");
        }
        run.warmUp();
        List<Read> reads = new ArrayList<>();
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            Read read = new Read(run, index, folder);
            long from = start + count * i / threads;
            long to = start + count * (i + 1) / threads;
            reads.add(read);
            workers.add(new Thread(() -> read.work(order, from, to)));
        }
        Meter meter = new Meter();
        workers.forEach(Thread::start);
        for (Thread worker : workers) {
            worker.join();
        }
        meter.stop().report(result);
        long[] totals = new long[5];
        for (Read read : reads) {
            if (read.failure != null) {
                throw read.failure;
            }
            totals[0] += read.file.nanoseconds();
            totals[1] += read.ready;
            totals[2] += read.touch;
            totals[3] += read.file.bytes();
            totals[4] += read.sum;
            read.file.close();
        }
        result.seconds("io_s", totals[0] * 1e-9).seconds("ready_s", totals[1] * 1e-9)
                .seconds("touch_s", totals[2] * 1e-9).number("bytes", totals[3])
                .checksum(totals[4]);
    }

    private void work(String order, long from, long to) {
        try {
            if (order.equals("random")) {
                random(run.options().number("seed", 0), from, to);
            } else {
                sequential((int) from, (int) to);
            }
        } catch (IOException | RuntimeException error) {
            failure = error;
        }
        Meter.threadEnds();
    }

    private void sequential(int from, int to) throws IOException {
        for (int i = from; i < to; ) {
            load(i);
            int end = index.endOfPage(i, to);
            long begin = System.nanoTime();
            if (validate) {
                implementation.validate(page);
            }
            Item[] items = new Item[end - i];
            for (int at = 0; at < items.length; at++) {
                items[at] = implementation.open(page, index.position(i + at));
            }
            long opened = System.nanoTime();
            for (Item item : items) {
                sum += item.checksum();
            }
            touch += System.nanoTime() - opened;
            ready += opened - begin;
            i = end;
        }
    }

    private void random(long seed, long from, long to) throws IOException {
        for (long i = from; i < to; i++) {
            int object = (int) Long.remainderUnsigned(mix(seed + i), index.size());
            load(object);
            long begin = System.nanoTime();
            if (validate) {
                implementation.validate(page, index.position(object));
            }
            Item item = implementation.open(page, index.position(object));
            long opened = System.nanoTime();
            sum += item.checksum();
            touch += System.nanoTime() - opened;
            ready += opened - begin;
        }
    }

    /** Reads the page of an object into the array that the page before was in, if it fits. */
    private void load(int object) throws IOException {
        int length = index.pageBytes(object);
        if (page.length != length) {
            page = new byte[length];
        }
        file.read(page, length, index.offset(object));
    }

    private static long mix(long x) {
        x *= 0x9E3779B97F4A7C15L;
        x ^= x >>> 32;
        x *= 0xD6E8FEB86659FD93L;
        return x ^ (x >>> 32);
    }
}
