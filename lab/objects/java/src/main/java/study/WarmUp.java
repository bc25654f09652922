package study;

import java.io.IOException;
import java.util.List;

/**
 * Encodes and reads random objects for a while, so that code is compiled when the clock starts.
 * The stored files are left alone, because they must not be in the page cache.
 */
public final class WarmUp {
    private WarmUp() {}

    /** Runs for the seconds of `--warm-up`. */
    public static void run(Options options, Catalog.Entry entry, Kind kind) throws IOException {
        long end = System.nanoTime() + (long) (seconds(options) * 1e9);
        Implementation implementation = entry.make().apply(kind);
        RandomObjects random = new RandomObjects(1, false);
        while (System.nanoTime() < end) {
            Memory memory = new Memory();
            PageWriter writer = implementation.writer(memory);
            while (memory.pages.size() < 2) {
                writer.add(random.next(kind));
            }
            writer.finish();
            for (int round = 0; round < 20 && System.nanoTime() < end; round++) {
                read(implementation, memory.pages, options.validate() && entry.validatesApart());
            }
        }
        System.gc();
    }

    public static double seconds(Options options) {
        return Double.parseDouble(options.text("warm-up", "1.5"));
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

    /** Keeps the checksums from being optimized away. */
    private static volatile long consumed;
}
