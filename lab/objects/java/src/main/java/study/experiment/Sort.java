package study.experiment;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.PriorityQueue;
import study.Checksum;
import study.Implementation;
import study.Item;
import study.Meter;
import study.PageWriter;
import study.Result;
import study.Run;
import study.StoredFile;

/** Experiment 3: external sort that removes duplicates. */
public final class Sort {
    /**
     * The part of the budget that objects and pages take when a run is sorted. The heap has 1.25
     * times the budget, and a collector needs room beside what lives.
     */
    private static final double LIVE = 0.6;

    /** An object with its key, which is read once. */
    private record Keyed(long key, Item item) implements Comparable<Keyed> {
        static final int BYTES = 24 + 4;

        static Keyed of(Item item) {
            return new Keyed(item.sortKey(), item);
        }

        boolean duplicates(Keyed before) {
            return before != null && key == before.key && item.same(before.item);
        }

        @Override
        public int compareTo(Keyed other) {
            return Long.compare(key, other.key);
        }
    }

    private final Run run;
    private final Implementation implementation;
    private final boolean validate;
    private final Path folder;
    private final long live;
    private final List<Path> runs = new ArrayList<>();
    private long nanoseconds;
    private long bytes;

    private Sort(Run run) {
        this.run = run;
        implementation = run.implementation();
        validate = run.validates();
        folder = run.options().path("output");
        live = (long) (LIVE * run.options().number("memory"));
    }

    public static void run(Run run, Result result) throws IOException {
        run.warmUp();
        Sort sort = new Sort(run);
        Path sorted = sort.folder.resolve("sorted.pages");
        Meter meter = new Meter();
        sort.makeRuns();
        sort.merge(sorted);
        meter.stop().report(result);
        result.seconds("io_s", sort.nanoseconds * 1e-9).number("bytes", sort.bytes)
                .number("runs", sort.runs.size());
        sort.checksum(sorted, result);
        for (Path path : sort.runs) {
            Files.delete(path);
        }
        Files.delete(sorted);
    }

    /** Phase 1. */
    private void makeRuns() throws IOException {
        Path folder = run.options().path("folder");
        try (StoredFile input = StoredFile.read(StoredFile.pages(folder, run.kind()))) {
            List<Keyed> items = new ArrayList<>();
            long offset = 0;
            long used = 0;
            for (byte[] page; (page = input.page(implementation, offset)) != null; ) {
                offset += page.length;
                used += open(page, items);
                if (used >= live) {
                    writeRun(items);
                    items = new ArrayList<>();
                    used = 0;
                }
            }
            if (!items.isEmpty()) {
                writeRun(items);
            }
            count(input);
        }
    }

    /** Adds the objects of a page, and returns about how much of the heap they take. */
    private long open(byte[] page, List<Keyed> items) throws IOException {
        if (validate) {
            implementation.validate(page);
        }
        long used = 0;
        boolean views = false;
        for (int position : implementation.positions(page)) {
            Item item = implementation.open(page, position);
            items.add(Keyed.of(item));
            used += item.heapBytes() + Keyed.BYTES;
            views |= item.viewsBytes();
        }
        return views ? used + page.length : used;
    }

    private void writeRun(List<Keyed> items) throws IOException {
        Keyed[] sorted = items.toArray(new Keyed[0]);
        items.clear();
        Arrays.sort(sorted);
        Path path = folder.resolve("run-" + runs.size() + ".pages");
        runs.add(path);
        try (StoredFile file = StoredFile.create(path)) {
            PageWriter writer = writer(file);
            Keyed before = null;
            for (Keyed next : sorted) {
                if (!next.duplicates(before)) {
                    writer.add(next.item);
                }
                before = next;
            }
            writer.finish();
            count(file);
        }
    }

    private PageWriter writer(StoredFile file) {
        return implementation.writer(
                (page, length, positions, objectBytes) -> file.write(page, length));
    }

    private void count(StoredFile file) {
        nanoseconds += file.nanoseconds();
        bytes += file.bytes();
    }

    /** The next object of a run, one page of which is in memory. */
    private final class Cursor implements Comparable<Cursor> {
        final StoredFile file;
        long offset;
        byte[] page;
        int[] positions = {};
        int at;
        Keyed next;

        Cursor(Path path) throws IOException {
            file = StoredFile.read(path);
        }

        /** Goes on to the next object; false behind the last. */
        boolean advance() throws IOException {
            if (at == positions.length) {
                page = file.page(implementation, offset);
                if (page == null) {
                    count(file);
                    file.close();
                    return false;
                }
                if (validate) {
                    implementation.validate(page);
                }
                offset += page.length;
                positions = implementation.positions(page);
                at = 0;
            }
            next = Keyed.of(implementation.open(page, positions[at++]));
            return true;
        }

        @Override
        public int compareTo(Cursor other) {
            return next.compareTo(other.next);
        }
    }

    /** Phase 2. */
    private void merge(Path sorted) throws IOException {
        PriorityQueue<Cursor> queue = new PriorityQueue<>();
        for (Path path : runs) {
            Cursor cursor = new Cursor(path);
            if (cursor.advance()) {
                queue.add(cursor);
            }
        }
        try (StoredFile file = StoredFile.create(sorted)) {
            PageWriter writer = writer(file);
            Keyed before = null;
            for (Cursor cursor; (cursor = queue.poll()) != null; ) {
                Keyed next = cursor.next;
                if (!next.duplicates(before)) {
                    writer.add(next.item);
                }
                before = next;
                if (cursor.advance()) {
                    queue.add(cursor);
                }
            }
            writer.finish();
            count(file);
        }
    }

    /** Reads the output, which is not timed. */
    private void checksum(Path sorted, Result result) throws IOException {
        long h = 0;
        long objects = 0;
        try (StoredFile file = StoredFile.read(sorted)) {
            long offset = 0;
            for (byte[] page; (page = file.page(implementation, offset)) != null; ) {
                offset += page.length;
                for (int position : implementation.positions(page)) {
                    h = Checksum.add(h, implementation.open(page, position).checksum());
                    objects++;
                }
            }
        }
        result.number("objects", objects).checksum(h);
    }
}
