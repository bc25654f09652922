package study.experiment;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import study.Implementation;
import study.Index;
import study.Item;
import study.Kind;
import study.Memory;
import study.Meter;
import study.PageWriter;
import study.Result;
import study.Run;
import study.StoredFile;
import study.UsageException;
import study.WarmUp;
import study.model.Plain;

/** The phases of an access, each alone, over pages in memory. */
public final class Phases {
    private final Run run;
    private final String phase;
    private final Implementation implementation;
    private final boolean validate;
    private final Memory stored;
    /** Of `mutate` in place: the pages that are changed. */
    private Memory copy;
    /** What `mutate`, `grow` and `encode` write. */
    private Memory written;
    /** What `encode` begins with, and `materialise` ends with. */
    private List<Plain> plains = new ArrayList<>();

    private Phases(Run run) throws IOException {
        this.run = run;
        phase = run.options().text("phase");
        implementation = run.implementation();
        validate = run.validates();
        if (phase.equals("validate") && !run.entry().validatesApart()) {
            throw new UsageException("validation is no separate step of this implementation");
        }
        if (phase.equals("grow") && run.kind() != Kind.CUSTOMER) {
            throw new UsageException("only customers have a list that grows");
        }
        Path folder = run.options().path("folder");
        Index index = Index.of(folder, run.kind());
        long count = run.options().number("count");
        index.require(0, count);
        try (StoredFile file = StoredFile.read(StoredFile.pages(folder, run.kind()))) {
            stored = Memory.of(file, index, (int) count);
        }
    }

    public static void run(Run run, Result result) throws IOException {
        Phases phases = new Phases(run);
        WarmUp warm = new WarmUp(run.options());
        while (!warm.isDone()) {
            phases.prepare();
            Meter meter = new Meter();
            phases.once();
            meter.stop();
        }
        int repeat = (int) run.options().number("repeat", 1);
        double[] walls = new double[repeat];
        double[] cpus = new double[repeat];
        long sum = 0;
        Meter all = new Meter();
        for (int i = 0; i < repeat; i++) {
            phases.prepare();
            Meter meter = new Meter();
            sum = phases.once();
            meter.stop();
            walls[i] = meter.wall();
            cpus[i] = meter.cpu();
        }
        all.stop().reportJvm(result);
        Arrays.sort(walls);
        Arrays.sort(cpus);
        result.seconds("wall_s", walls[repeat / 2]).seconds("cpu_s", cpus[repeat / 2])
                .seconds("io_s", 0).number("bytes", 0).checksum(phases.checksum(sum));
    }

    /** Before each time: what is not measured. */
    private void prepare() throws IOException {
        written = new Memory();
        if (phase.equals("encode") && plains.isEmpty()) {
            for (Memory.Page page : stored.pages) {
                for (int position : page.positions()) {
                    plains.add(implementation.open(page.bytes(), position).plain());
                }
            }
        } else if (phase.equals("materialise")) {
            plains = new ArrayList<>();
        } else if (phase.equals("mutate") && implementation.mutatesInPlace()) {
            copy = stored.copy();
        }
    }

    /** Does the phase for all objects; the checksum of phases that have one. */
    private long once() throws IOException {
        return switch (phase) {
            case "validate" -> validateAll();
            case "open" -> open();
            case "touch-one" -> touchOne();
            case "touch-all" -> touchAll();
            case "materialise" -> materialise();
            case "mutate" -> mutate();
            case "grow" -> grow();
            case "encode" -> encode();
            default -> throw new UsageException("there is no phase " + phase);
        };
    }

    private long checksum(long sum) throws IOException {
        if (phase.equals("mutate") && implementation.mutatesInPlace()) {
            return copy.checksum(implementation);
        }
        return switch (phase) {
            case "open" -> stored.checksum(implementation);
            case "materialise" -> plains.stream().mapToLong(Item::checksum).sum();
            case "mutate", "grow", "encode" -> written.checksum(implementation);
            default -> sum;
        };
    }

    private long validateAll() throws IOException {
        for (Memory.Page page : stored.pages) {
            implementation.validate(page.bytes());
        }
        return 0;
    }

    private void check(Memory.Page page) throws IOException {
        if (validate) {
            implementation.validate(page.bytes());
        }
    }

    private long open() throws IOException {
        for (Memory.Page page : stored.pages) {
            check(page);
            // All objects of a page are there at once, as those are that a program works with.
            Item[] items = new Item[page.positions().length];
            for (int i = 0; i < items.length; i++) {
                items[i] = implementation.open(page.bytes(), page.positions()[i]);
            }
            kept = items;
        }
        return 0;
    }

    private long touchOne() throws IOException {
        long sum = 0;
        for (Memory.Page page : stored.pages) {
            check(page);
            for (int position : page.positions()) {
                sum += implementation.open(page.bytes(), position).key();
            }
        }
        return sum;
    }

    private long touchAll() throws IOException {
        long sum = 0;
        for (Memory.Page page : stored.pages) {
            check(page);
            for (int position : page.positions()) {
                sum += implementation.open(page.bytes(), position).checksum();
            }
        }
        return sum;
    }

    private long materialise() throws IOException {
        for (Memory.Page page : stored.pages) {
            check(page);
            for (int position : page.positions()) {
                plains.add(implementation.open(page.bytes(), position).plain());
            }
        }
        return 0;
    }

    private long mutate() throws IOException {
        for (Memory.Page page : (implementation.mutatesInPlace() ? copy : stored).pages) {
            check(page);
            implementation.mutatePage(page.bytes(), page.positions(), written);
        }
        return 0;
    }

    private long grow() throws IOException {
        for (Memory.Page page : stored.pages) {
            check(page);
            implementation.growPage(page.bytes(), page.positions(), written);
        }
        return 0;
    }

    private long encode() throws IOException {
        PageWriter writer = implementation.writer(written);
        for (Plain plain : plains) {
            writer.add(plain);
        }
        writer.finish();
        return 0;
    }

    /** Keeps opened objects from being optimized away. */
    private static volatile Item[] kept;
}
