package dray.page;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Random changes of random objects, beside the same changes of their values. */
class EditTest {
    private static final int ROUNDS = Math.max(Integer.parseInt(
            System.getenv().getOrDefault("DRAY_JAVA_ROUNDS", "20000")) / 20, 1);
    private static final long SEED = Long.parseLong(
            System.getenv().getOrDefault("DRAY_SEED", "" + System.nanoTime()));
    @Test
    void changesAreThoseOfTheValues() {
        int changes = 0;
        int refused = 0;
        List<Layout> layouts = BuildTest.layouts();
        for (int round = 0; round < ROUNDS; round++) {
            var test = new RandomEdits(new Random(SEED + round));
            try {
                test.edit(layouts.get(test.random.nextInt(layouts.size())));
            } catch (RuntimeException | AssertionError failed) {
                throw new AssertionError("DRAY_SEED=" + (SEED + round)
                        + " DRAY_JAVA_ROUNDS=1 fails again", failed);
            }
            changes += test.changes;
            refused += test.refused;
        }
        System.out.println(changes + " random changes of objects from seed " + SEED
                + " were those of their values, " + refused + " did not fit the page;"
                + " ordinary pages are those that are written from the values");
    }

    /** Pages of all kinds are edited, also moved ones. */
    @Test
    void pagesOfVectorsAreEdited() {
        for (Path vector : Vectors.list("accept", ".page")) {
            VerifiedPage page = Vectors.verify(Vectors.bytes(vector));
            List<Object> rows = Values.rows(page);
            var editor = new DynamicWriter.Editor(page, 4096);
            int last = page.size() - 1;
            editor.object(last).writeAll((List<?>) rows.get(last));
            assertEquals(rows, Values.rows(editor.page()), vector.toString());
            VerifiedPage sealed = editor.seal();
            assertEquals(rows, Values.rows(VerifiedPage.verify(page.layout(), sealed.bytes())));
            assertEquals(page.header().edition() + 1, sealed.header().edition());
        }
    }
}
