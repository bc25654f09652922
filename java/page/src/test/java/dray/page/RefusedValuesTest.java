package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dray.page.generated.every.Every;
import dray.page.generated.every.EveryBuilder;
import dray.page.generated.every.EveryEditor;
import dray.page.generated.every.EveryPage;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** A value that is refused is not written: an item that was missing still is. */
class RefusedValuesTest {
    /** What lists refuse as their second item. */
    private static final Map<String, Consumer<Every.Writer>> REFUSED = new LinkedHashMap<>();

    static {
        REFUSED.put("no string", w -> w.textListOrNull().set(1, null));
        REFUSED.put("half a pair", w -> w.textListOrNull().set(1, "\ud800"));
        REFUSED.put("a full page of text", w -> w.textListOrNull().set(1, "x".repeat(5000)));
        REFUSED.put("no bytes", w -> w.binaryListOrNull().set(1, null));
        REFUSED.put("a full page of bytes", w -> w.binaryListOrNull().set(1, new byte[5000]));
        REFUSED.put("another width", w -> w.uuidListOrNull().set(1, new byte[15]));
        REFUSED.put("no interval", w -> w.dayTimeListOrNull().set(1, null));
        REFUSED.put("half an interval", w -> w.dayTimeListOrNull().set(1, new byte[4]));
        REFUSED.put("no decimal", w -> w.dec32ListOrNull().set(1, null));
        REFUSED.put("another scale", w -> w.dec32ListOrNull().set(1, new BigDecimal("1.005")));
        REFUSED.put("too large", w -> w.dec32ListOrNull().set(1, new BigDecimal("1e9")));
        REFUSED.put("fewer than no items", w -> w.lists().set(1, -1));
        REFUSED.put("a full page of items", w -> w.lists().set(1, 1000));
    }

    /** Runs what is refused, if it is to be tried. */
    private static void refused(boolean isTried, Executable... refused) {
        Arrays.stream(refused).filter(any -> isTried)
                .forEach(each -> assertThrows(RuntimeException.class, each));
    }

    private static byte[] built(boolean isTried) {
        var builder = new EveryBuilder(4096);
        for (int i = 0; i < 2; i++) {
            Every.Writer every = builder.begin();
            DecimalListWriter decimals = every.dec32ListOrNull(2);
            refused(isTried, () -> decimals.add(null), () -> decimals.add(new BigDecimal("0.001")),
                    () -> decimals.add(new BigDecimal("1e9")));
            decimals.add(BigDecimal.ONE);
            refused(isTried, () -> decimals.add(null));
            decimals.addMissing();
            BytesListWriter intervals = every.dayTimeListOrNull(2);
            intervals.addMissing();
            refused(isTried, () -> intervals.add(null), () -> intervals.add(new byte[7]));
            intervals.addMissing();
            Utf8ListWriter texts = every.textListOrNull(2);
            refused(isTried, () -> texts.add(null), () -> texts.add("\udc00"));
            texts.add("a text that needs a tail");
            refused(isTried, () -> texts.add(null));
            texts.addMissing();
            BytesListWriter binaries = every.binaryListOrNull(2);
            refused(isTried, () -> binaries.add(null));
            binaries.addMissing();
            binaries.addMissing();
            BytesListWriter uuids = every.uuidListOrNull(2);
            uuids.addMissing();
            refused(isTried, () -> uuids.add(new byte[17]));
            uuids.addMissing();
            // No page has room for so many items.
            refused(isTried, () -> every.lists(1 << 30));
            ListListWriter<Int64ListWriter> lists = every.lists(2);
            refused(isTried, () -> lists.next(-1), () -> lists.next(1 << 30));
            lists.next(1).add(5);
            refused(isTried, () -> lists.next(-1));
            lists.addMissing();
            builder.end();
        }
        VerifiedPage page = builder.finish().get(0);
        return BuildTest.bytes(VerifiedPage.verify(page.layout(), page.bytes()));
    }

    @Test
    void buildersGoOnWithTheSameItem() {
        assertArrayEquals(built(false), built(true));
    }

    @Test
    void editorsLeaveTheItemMissing() {
        VerifiedPage page = VerifiedPage.verify(
                EveryPage.LAYOUT, ByteBuffer.wrap(built(false)));
        REFUSED.forEach((name, set) -> {
            var editor = new EveryEditor(page, 4096);
            byte[] before = BuildTest.bytes(editor.page());
            Every.Writer writer = editor.object(1);
            assertThrows(RuntimeException.class, () -> set.accept(writer), name);
            assertArrayEquals(before, BuildTest.bytes(editor.page()), name);
        });
    }

    /** Lists that are made anew, and whose items come one after the other. */
    @Test
    void editorsGoOnWithTheSameItem() {
        VerifiedPage page = VerifiedPage.verify(
                EveryPage.LAYOUT, ByteBuffer.wrap(built(false)));
        var editor = new EveryEditor(page, 4096);
        Utf8ListWriter texts = editor.object(1).textListOrNull(2);
        refused(true, () -> texts.add(null), () -> texts.add("x".repeat(5000)));
        texts.addAll("a", "b");
        Every every = new EveryPage(editor.page()).get(1);
        assertEquals("a", every.textListOrNull().get(0).toString());
        assertEquals("b", every.textListOrNull().get(1).toString());
    }

    /** Writes a list of lists of two items, and a string. */
    private static final class Pairs extends ViewWriter {
        private static final Supplier<Int16ListWriter> PAIR = Int16ListWriter::new;

        ListListWriter<Int16ListWriter> pairs(int count) {
            return putList(0, count, new ListListWriter<>(PAIR));
        }

        ListListWriter<Int16ListWriter> pairs() {
            return editList(0, new ListListWriter<>(PAIR));
        }

        void last(String value) {
            putString(1, value);
        }

        private static VerifiedPage page(Layout layout, boolean isTried) {
            var builder = new PageBuilder<Pairs>(layout, 4096, new Pairs()) {};
            Pairs pairs = builder.begin();
            ListListWriter<Int16ListWriter> list = pairs.pairs(2);
            refused(isTried, () -> list.next(3));
            list.next(2).addAll((short) 1, (short) 2);
            refused(isTried, () -> list.next(1));
            if (list.place.items().nullable()) {
                list.addMissing();
            } else {
                list.next(2).addAll((short) 3, (short) 4);
            }
            pairs.last("a text that needs a tail");
            builder.end();
            return VerifiedPage.verify(layout, builder.finish().get(0).bytes());
        }
    }

    /** Lists of a fixed size, whose items are there as soon as the list is. */
    @Test
    void fixedListsOfAnotherSizeAreNotBegun() {
        for (String schema : List.of(
                "AgAAAAUAAABwYWlycwAdBAAAAGl0ZW0BHgIAAAAEAAAAaXRlbQADAAAAAAAABAAAAGxhc3QAGgAA",
                "AgAAAAUAAABwYWlycwAdBAAAAGl0ZW0AHgIAAAAEAAAAaXRlbQADAAAAAAAABAAAAGxhc3QAGgAA")) {
            Layout layout = Layout.ofBase64(schema);
            VerifiedPage page = Pairs.page(layout, false);
            assertArrayEquals(BuildTest.bytes(page), BuildTest.bytes(Pairs.page(layout, true)));
            var editor = new PageEditor<Pairs>(page, layout, Pairs::new, 4096) {};
            editor.seal();
            var other = new PageEditor<Pairs>(page, layout, Pairs::new, 4096) {};
            assertThrows(IllegalArgumentException.class, () -> other.object(0).pairs().set(1, 3));
            assertArrayEquals(BuildTest.bytes(editor.page()), BuildTest.bytes(other.seal()));
        }
    }
}
