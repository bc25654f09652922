package study.experiment;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import study.Catalog;
import study.Entries;
import study.Implementation;
import study.Item;
import study.Kind;
import study.Memory;
import study.PageWriter;
import study.RandomObjects;
import study.Sink;
import study.StoredFile;
import study.model.Customer;
import study.model.Plain;
import study.model.SparseVector;

/** Checks each implementation with random objects: `harness --check SEED`. */
public final class Check {
    private static final int OBJECTS = 200;

    private final Catalog.Entry entry;
    private final Kind kind;
    private final long seed;
    private final Implementation implementation;

    private Check(Catalog.Entry entry, Kind kind, long seed) {
        this.entry = entry;
        this.kind = kind;
        this.seed = seed;
        implementation = entry.make().apply(kind);
    }

    /** Checks all implementations and kinds of objects, and exits if one fails. */
    public static void run(long seed) {
        int passed = 0;
        int failed = 0;
        for (Catalog.Entry entry : Catalog.ALL) {
            for (Kind kind : Kind.values()) {
                try {
                    new Check(entry, kind, seed).all();
                    passed++;
                } catch (Exception | AssertionError error) {
                    System.err.printf("%s, %s, seed %d:%n", entry.name(), kind.option(), seed);
                    error.printStackTrace();
                    failed++;
                }
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        if (failed > 0) {
            System.exit(1);
        }
    }

    private void all() throws IOException {
        roundTrip();
        if (kind == Kind.VECTOR) {
            sum();
        } else {
            rewrite();
            mutate();
        }
        if (kind == Kind.CUSTOMER) {
            grow();
        }
    }

    /** The same objects each time. */
    private List<Plain> objects() {
        RandomObjects random = new RandomObjects(seed, true);
        List<Plain> objects = new ArrayList<>();
        for (int i = 0; i < OBJECTS; i++) {
            objects.add(random.next(kind));
        }
        return objects;
    }

    private Memory written(Iterable<? extends Item> items) throws IOException {
        Memory memory = new Memory();
        PageWriter writer = implementation.writer(memory);
        for (Item item : items) {
            writer.add(item);
        }
        writer.finish();
        return memory;
    }

    private List<Item> opened(Memory memory) throws IOException {
        List<Item> items = new ArrayList<>();
        for (Memory.Page page : memory.pages) {
            byte[] header = Arrays.copyOf(page.bytes(), StoredFile.HEADER);
            expect("page bytes", page.bytes().length, implementation.pageBytes(header));
            if (!Arrays.equals(page.positions(), implementation.positions(page.bytes()))) {
                throw new AssertionError("a page's positions are not those that were written");
            }
            if (entry.validatesApart()) {
                implementation.validate(page.bytes());
            }
            for (int position : page.positions()) {
                if (entry.validatesApart()) {
                    implementation.validate(page.bytes(), position);
                }
                items.add(implementation.open(page.bytes(), position));
            }
        }
        return items;
    }

    /** Objects that are written and read equal the others in all fields. */
    private void expectSame(List<Plain> expected, List<Item> found) {
        expect("objects", expected.size(), found.size());
        for (int i = 0; i < expected.size(); i++) {
            Plain plain = expected.get(i);
            Item item = found.get(i);
            expect("key", plain.key(), item.key());
            expect("sort key", plain.sortKey(), item.sortKey());
            expect("checksum", plain.checksum(), item.checksum());
            expect("checksum of the copy", plain.checksum(), item.plain().checksum());
            if (kind != Kind.VECTOR && !plain.same(item.plain())) {
                throw new AssertionError("an object does not equal what was written");
            }
        }
    }

    private void roundTrip() throws IOException {
        expectSame(objects(), opened(written(objects())));
    }

    /** As a sort does: opened objects are compared, and written again. */
    private void rewrite() throws IOException {
        List<Item> first = opened(written(objects()));
        List<Item> second = opened(written(first));
        expectSame(objects(), second);
        for (int i = 0; i < first.size(); i++) {
            if (!first.get(i).same(first.get(i)) || !first.get(i).same(second.get(i))) {
                throw new AssertionError("an object does not equal its copy");
            }
            boolean same = first.get(i).same(second.get(first.size() - 1 - i));
            if (same != (i == first.size() - 1 - i)) {
                throw new AssertionError("an object equals another one");
            }
        }
    }

    private void mutate() throws IOException {
        Memory before = written(objects());
        Memory after = new Memory();
        for (Memory.Page page : before.pages) {
            implementation.mutatePage(page.bytes(), page.positions(), after);
        }
        List<Plain> expected = objects();
        expected.forEach(Plain::change);
        expectSame(expected, opened(implementation.mutatesInPlace() ? before : after));
    }

    private void grow() throws IOException {
        Memory after = new Memory();
        for (Memory.Page page : written(objects()).pages) {
            implementation.growPage(page.bytes(), page.positions(), after);
        }
        List<Plain> expected = objects();
        expected.forEach(plain -> ((Customer) plain).grow());
        expectSame(expected, opened(after));
    }

    /** A sum of three vectors that travel as messages. */
    private void sum() throws IOException {
        List<Plain> plains = objects().subList(0, 3);
        List<Entries> messages = new ArrayList<>();
        for (Plain plain : plains) {
            messages.add((Entries) message(plain));
        }
        double[] dense = new double[50_000];
        for (Plain plain : plains) {
            ((SparseVector) plain).entries.forEach(entry -> dense[entry.position] += entry.value);
        }
        SparseVector expected = new SparseVector();
        for (int i = 0; i < dense.length; i++) {
            if (dense[i] != 0) {
                expected.entries.add(new study.model.Entry(i, dense[i]));
            }
        }
        Item sum = implementation.sum(messages);
        expect("sum", expected.checksum(), sum.checksum());
        expect("sum as a message", expected.checksum(), message(sum).checksum());
    }

    private Item message(Item vector) throws IOException {
        Sink out = new Sink(16);
        implementation.encodeMessage(vector, out);
        return implementation.openMessage(Arrays.copyOf(out.bytes, out.at));
    }

    private static void expect(String what, long expected, long found) {
        if (expected != found) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }
}
