package study.spark;

import java.io.Serializable;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import study.model.Entry;
import study.model.SparseVector;

/**
 * Adds up sparse vectors over a tree, as Spark's {@code treeReduce} does, in one form.
 *
 * <p>{@code TreeSum FORM VECTORS ENTRIES DEPTH ROUNDS} prints a line of JSON.
 */
public final class TreeSum {
    /** A vector has so many numbers for each that is not 0. */
    private static final int SPARSE = 10;
    private static final int VALUE_MAX = 1000;
    private static final int DAG_WAIT_MS = 10_000;

    private TreeSum() {}

    /** How vectors are kept between tasks. */
    interface Form<V> extends Serializable {
        V of(SparseVector plain);

        V sum(V one, V other);

        long checksum(V vector);
    }

    private static final Map<String, Form<?>> FORMS = Map.of(
            "objects", new Forms.Objects(),
            "arrays", new Forms.Arrays(),
            "arrow", new Forms.Arrow(),
            "dray", new Forms.Dray());

    public static void main(String[] args) throws Exception {
        int[] numbers = IntStream.range(1, 5).map(i -> Integer.parseInt(args[i])).toArray();
        try (JavaSparkContext context = new JavaSparkContext(new SparkConf())) {
            context.setLogLevel("ERROR");
            System.out.println(run(context, FORMS.get(args[0]), numbers[0], numbers[1],
                    numbers[2], numbers[3]));
        }
    }

    private static <V> String run(JavaSparkContext context, Form<V> form, int vectors,
            int entries, int depth, int rounds) throws Exception {
        AtomicLong moved = new AtomicLong();
        context.sc().addSparkListener(new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                moved.addAndGet(end.taskMetrics().shuffleWriteMetrics().bytesWritten());
            }
        });
        var seeds = IntStream.range(0, vectors).boxed().toList();
        JavaRDD<V> all = context.parallelize(seeds, vectors)
                .map(seed -> form.of(vector(seed, entries))).cache();
        all.count();
        StringBuilder seconds = new StringBuilder();
        long checksum = 0;
        for (int round = 0; round < rounds; round++) {
            context.sc().listenerBus().waitUntilEmpty(DAG_WAIT_MS);
            moved.set(0);
            long start = System.nanoTime();
            V sum = all.treeReduce(form::sum, depth);
            double taken = (System.nanoTime() - start) / 1e9;
            seconds.append(round == 0 ? "" : ", ").append(taken);
            checksum = form.checksum(sum);
        }
        context.sc().listenerBus().waitUntilEmpty(DAG_WAIT_MS);
        return "{\"seconds\": [" + seconds + "], \"moved_bytes\": " + moved
                + ", \"checksum\": \"" + Long.toHexString(checksum) + "\"}";
    }

    /** A vector whose positions ascend, with values whose sums are exact. */
    private static SparseVector vector(int seed, int entries) {
        Random draw = new Random(seed);
        SparseVector made = new SparseVector(entries);
        int position = 0;
        for (int i = 0; i < entries; i++) {
            position += 1 + draw.nextInt(2 * SPARSE - 1);
            made.entries.add(new Entry(position, 1 + draw.nextInt(VALUE_MAX)));
        }
        return made;
    }
}
