package study;

import java.io.IOException;
import study.experiment.Aggregate;
import study.experiment.Check;
import study.experiment.Phases;
import study.experiment.Read;
import study.experiment.Received;
import study.experiment.Serve;
import study.experiment.Sort;
import study.experiment.Store;

/** The command line: `--list`, `--check`, or an experiment with its options. */
public final class Harness {
    private Harness() {}

    public static void main(String[] words) throws Exception {
        try {
            if (words.length > 0 && words[0].equals("--list")) {
                Catalog.print();
            } else if (words.length > 0 && words[0].equals("--check")) {
                Check.run(words.length > 1 ? Long.parseLong(words[1]) : 1);
            } else {
                run(new Options(words));
            }
        } catch (UsageException | IOException error) {
            System.err.println("harness: " + error);
            System.exit(1);
        }
    }

    private static void run(Options options) throws Exception {
        Run run = Run.of(options);
        Result result = new Result();
        options.values().forEach(result::text);
        switch (options.text("experiment")) {
            case "store" -> Store.run(run, result);
            case "read" -> Read.run(run, result);
            case "phases" -> Phases.run(run, result);
            case "sort" -> Sort.run(run, result);
            case "aggregate" -> Aggregate.run(run, result);
            case "serve" -> Serve.run(run, result);
            case "received" -> Received.run(run, result);
            default -> throw new UsageException(
                    "there is no experiment " + options.text("experiment"));
        }
        result.number("peak_bytes", Meter.peakBytes());
        result.print();
    }
}
