package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/**
 * Pages that are built or edited in place are those that are written from the values, byte for
 * byte, for the schemas of all vectors.
 */
class BuildTest {
    private static final int ROUNDS = Math.max(Integer.parseInt(
            System.getenv().getOrDefault("DRAY_JAVA_ROUNDS", "20000")) / 10, 1);
    private static final long SEED = Long.parseLong(
            System.getenv().getOrDefault("DRAY_SEED", "" + System.nanoTime()));
    private static final int PAGE_BYTES = 4096;

    static List<Layout> layouts() {
        var layouts = new ArrayList<Layout>();
        Vectors.list("accept", ".page").forEach(vector ->
                layouts.add(Vectors.verify(Vectors.bytes(vector)).layout()));
        layouts.add(dray.page.generated.every.EveryPage.LAYOUT);
        layouts.add(dray.page.generated.nested.CustomerPage.LAYOUT);
        return layouts.stream().distinct().filter(layout -> !isHuge(layout.record)).toList();
    }

    /** Whether default values alone are too many for a test. */
    private static boolean isHuge(Record record) {
        return Arrays.stream(record.tails).anyMatch(place -> place.size() > 1000
                || place.items() != null && isHuge(place.items().record()));
    }

    static byte[] bytes(VerifiedPage page) {
        var bytes = new byte[page.bytes().limit()];
        page.bytes().get(0, bytes);
        return bytes;
    }

    /** The pages of these objects, by way of their bytes. */
    private static List<byte[]> expected(Layout layout, List<List<Object>> rows) {
        var pages = new ArrayList<byte[]>();
        var open = new ArrayList<List<Object>>();
        int used = PageHeader.BYTES;
        for (List<Object> row : rows) {
            int size = ValuePages.object(layout, row).length + 4;
            if (used + size > PAGE_BYTES) {
                add(pages, layout, open, PAGE_BYTES, false);
                used = PageHeader.BYTES;
            }
            open.add(row);
            used += size;
            if (used > PAGE_BYTES) {
                add(pages, layout, open, Memory.pad(used, PAGE_BYTES), true);
                used = PageHeader.BYTES;
            }
        }
        add(pages, layout, open, PAGE_BYTES, false);
        return pages;
    }

    private static void add(List<byte[]> pages, Layout layout, List<List<Object>> rows, int bytes,
            boolean large) {
        if (!rows.isEmpty()) {
            ByteBuffer page = ValuePages.page(layout, rows, bytes, large, 0);
            Memory.putLong(page, PageHeader.SEQUENCE_AT, pages.size());
            Memory.putInt(page, PageHeader.CHECKSUM_AT, PageHeader.checksumOf(page));
            pages.add(page.array());
            rows.clear();
        }
    }

    @Test
    void pagesAreBuiltInPlace() {
        List<Layout> layouts = layouts();
        int objects = 0;
        int large = 0;
        for (int round = 0; round < ROUNDS; round++) {
            var random = new Random(SEED + round);
            Layout layout = layouts.get(random.nextInt(layouts.size()));
            var rows = new ArrayList<List<Object>>();
            var builder = new DynamicWriter.Builder(layout, PAGE_BYTES);
            var values = new RandomValues(random);
            values.longer = random.nextInt(2) == 0;
            // An object that is dropped leaves nothing, but may have ended its page before.
            boolean drops = random.nextInt(3) == 0;
            try {
                for (int i = random.nextInt(12); i >= 0; i--) {
                    List<Object> row = values.row(layout);
                    if (drops && random.nextInt(3) == 0) {
                        builder.begin().writeAll(values.row(layout));
                        builder.cancel();
                    }
                    builder.begin().writeAll(row);
                    builder.end();
                    rows.add(row);
                }
                List<VerifiedPage> pages = builder.finish();
                List<byte[]> expected = expected(layout, rows);
                var found = new ArrayList<Object>();
                for (int page = 0; page < pages.size(); page++) {
                    VerifiedPage.verify(layout, pages.get(page).bytes());
                    found.addAll(Values.rows(pages.get(page)));
                    large += pages.get(page).header().large() ? 1 : 0;
                    if (!drops) {
                        assertArrayEquals(expected.get(page), bytes(pages.get(page)));
                    }
                }
                assertEquals(rows, found);
            } catch (RuntimeException | AssertionError failed) {
                throw new AssertionError("DRAY_SEED=" + (SEED + round)
                        + " DRAY_JAVA_ROUNDS=1 fails again", failed);
            }
            objects += rows.size();
        }
        System.out.println(objects + " random objects of " + layouts.size()
                + " schemas were built in place, " + large + " of them on large pages, from seed "
                + SEED + ": the pages are those that are written from the values");
    }

    /** Whatever is written in whatever order, the page is one that a verifier accepts. */
    @Test
    void misuseIsAnExceptionAndNeverAWrongPage() {
        List<Layout> layouts = layouts();
        int misuses = 0;
        int objects = 0;
        for (int round = 0; round < ROUNDS; round++) {
            var random = new Random(SEED + round);
            Layout layout = layouts.get(random.nextInt(layouts.size()));
            var builder = new DynamicWriter.Builder(layout, PAGE_BYTES);
            var values = new RandomValues(random);
            for (int i = random.nextInt(6); i >= 0; i--) {
                DynamicWriter writer = builder.begin();
                List<Place> fields = layout.record.fields;
                for (int writes = random.nextInt(9); writes > 0 && !fields.isEmpty(); writes--) {
                    Place place = fields.get(random.nextInt(fields.size()));
                    try {
                        writer.write(place, values.field(place, 3));
                        if (random.nextInt(4) == 0 && place.items() != null) {
                            // One item of several is not written.
                            writer.begin(place, 2).next();
                        }
                    } catch (IllegalStateException | IllegalArgumentException misuse) {
                        misuses++;
                    }
                }
                try {
                    builder.end();
                    objects++;
                } catch (IllegalStateException misuse) {
                    builder.cancel();
                    misuses++;
                }
            }
            for (VerifiedPage page : builder.finish()) {
                try {
                    VerifiedPage.verify(layout, page.bytes());
                } catch (PageException refused) {
                    throw new AssertionError("DRAY_SEED=" + (SEED + round)
                            + " DRAY_JAVA_ROUNDS=1 fails again", refused);
                }
            }
        }
        System.out.println(misuses + " misuses of builders were refused; all pages of " + objects
                + " objects that were built meanwhile were accepted");
    }

    /** What was not written is missing if it may be, and otherwise 0 or empty. */
    @Test
    void unwrittenFieldsHaveDefaults() {
        for (Layout layout : layouts()) {
            var builder = new DynamicWriter.Builder(layout, PAGE_BYTES);
            builder.begin();
            builder.end();
            var row = new ArrayList<Object>();
            layout.record.fields.forEach(place -> row.add(RandomValues.unset(place)));
            VerifiedPage page = VerifiedPage.verify(layout, builder.finish().get(0).bytes());
            assertEquals(List.of(row), Values.rows(page));
        }
    }
}
