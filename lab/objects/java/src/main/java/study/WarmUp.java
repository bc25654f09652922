package study;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Encodes and reads random objects for a while, so that code is compiled when the clock starts.
 * The stored files are left alone, because they must not be in the page cache.
 */
public final class WarmUp {
    /** Time that the compiler may still take when code counts as compiled. */
    private static final double COMPILING = 0.05;

    private static final double INTERVAL_S = 0.3;
    private static final double LONGEST = 6;

    private final double seconds;
    private final long begin = System.nanoTime();
    private long intervalBegin = begin;
    private long compilationMs = Meter.compilationMs();

    /** Begins to warm up for the seconds of `--warm-up` or JAVA_WARM_UP, or longer. */
    public WarmUp(Options options) {
        String otherwise = System.getenv().getOrDefault("JAVA_WARM_UP", "1");
        seconds = Double.parseDouble(options.text("warm-up", otherwise));
    }

    /**
     * Whether the time is over and the compiler has little to do. That is not waited for longer
     * than six times the seconds.
     */
    public boolean isDone() {
        long now = System.nanoTime();
        double passed = (now - begin) * 1e-9;
        double interval = (now - intervalBegin) * 1e-9;
        if (interval < INTERVAL_S && passed < LONGEST * seconds) {
            return seconds == 0;
        }
        long compiled = Meter.compilationMs() - compilationMs;
        compilationMs += compiled;
        intervalBegin = now;
        boolean calm = compiled * 1e-3 < COMPILING * interval;
        return passed >= seconds && calm || passed >= LONGEST * seconds;
    }

    /** Warms up. */
    public static void run(Options options, Catalog.Entry entry, Kind kind) throws IOException {
        WarmUp warm = new WarmUp(options);
        Implementation implementation = entry.make().apply(kind);
        RandomObjects random = new RandomObjects(1, false);
        while (!warm.isDone()) {
            Memory memory = new Memory();
            PageWriter writer = implementation.writer(memory);
            while (memory.pages.size() < 2) {
                writer.add(random.next(kind));
            }
            writer.finish();
            if (kind == Kind.VECTOR) {
                sum(implementation, random);
            }
            for (int round = 0; round < 20; round++) {
                read(implementation, memory.pages, options.validate() && entry.validatesApart());
            }
        }
        System.gc();
    }

    private static void read(Implementation implementation, List<Memory.Page> pages,
            boolean validate) throws IOException {
        for (Memory.Page page : pages) {
            if (validate) {
                implementation.validate(page.bytes());
            }
            Item[] items = new Item[page.positions().length];
            for (int i = 0; i < items.length; i++) {
                items[i] = implementation.open(page.bytes(), page.positions()[i]);
            }
            long sum = 0;
            for (Item item : items) {
                sum += item.checksum();
            }
            consumed = sum;
        }
    }

    /** As a node of a tree does. */
    private static void sum(Implementation implementation, RandomObjects random)
            throws IOException {
        List<Entries> vectors = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            vectors.add((Entries) message(implementation, random.next(Kind.VECTOR)));
        }
        message(implementation, implementation.sum(vectors));
    }

    private static Item message(Implementation implementation, Item vector) throws IOException {
        Sink out = new Sink(1 << 16);
        implementation.encodeMessage(vector, out);
        return implementation.openMessage(Arrays.copyOf(out.bytes, out.at));
    }

    /** Keeps the checksums from being optimized away. */
    private static volatile long consumed;
}
