package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Random changes of the objects of a page, and the same changes of their values. */
final class RandomEdits {
    private static final int PAGE_BYTES = 4096;

    final Random random;
    private final RandomValues values;
    int changes;
    int refused;

    RandomEdits(Random random) {
        this.random = random;
        values = new RandomValues(random);
        values.longer = random.nextInt(3) == 0;
    }

    /** A random change below a record: first of the page, then of the values. */
    @SuppressWarnings("unchecked")
    private void change(DynamicWriter writer, List<Place> places, List<Object> row) {
        if (places.isEmpty()) {
            return;
        }
        int field = random.nextInt(places.size());
        Place place = places.get(field);
        Object old = row.get(field);
        boolean goesIn = random.nextInt(4) > 0 && old != null;
        if (goesIn && place.type().id() == TypeId.STRUCT) {
            change(writer, place.fields(), (List<Object>) old);
        } else if (goesIn && place.items() != null && random.nextInt(4) > 0) {
            changeItems(writer, place, (List<Object>) old);
        } else {
            Object value = values.field(place, 2);
            writer.write(place, value);
            row.set(field, value);
        }
    }

    @SuppressWarnings("unchecked")
    private void changeItems(DynamicWriter writer, Place place, List<Object> items) {
        Place item = place.items().record().fields.get(0);
        int which = random.nextInt(5);
        if (which == 0 && place.size() < 0) {
            int count = random.nextInt(5);
            writer.resize(place, count);
            while (items.size() > count) {
                items.remove(items.size() - 1);
            }
            while (items.size() < count) {
                items.add(RandomValues.unsetItem(place));
            }
        } else if (which == 1 && place.size() < 0 && !items.isEmpty()) {
            int i = random.nextInt(items.size());
            writer.remove(place, i);
            items.remove(i);
        } else if (!items.isEmpty() && item.type().id() != TypeId.NULL) {
            int i = random.nextInt(items.size());
            DynamicWriter.Items list = writer.existing(place);
            if (which == 2 && place.items().nullable()) {
                list.setMissing(i);
                items.set(i, null);
                return;
            }
            boolean isStruct = item.type().id() == TypeId.STRUCT;
            DynamicWriter at = list.get(i);
            if (items.get(i) == null) {
                items.set(i, RandomValues.unset(item));
            }
            if (isStruct) {
                change(at, item.fields(), (List<Object>) items.get(i));
            } else {
                Object value = values.value(item, 1);
                at.write(item, value);
                items.set(i, value);
            }
        }
    }

    /** Between changes a verifier accepts the page, but for what dead extents have left. */
    private static void verifyBetweenChanges(VerifiedPage page) {
        ByteBuffer copy = ByteBuffer.wrap(BuildTest.bytes(page));
        int end = Memory.getInt(copy, PageHeader.OBJECTS_END_AT);
        for (int at = PageHeader.BYTES; at < end;) {
            int word = Memory.getInt(copy, at);
            int size = word & ~Verifier.DEAD;
            if (word < 0) {
                Memory.zero(copy, at + 4, at + size);
            }
            at += size;
        }
        VerifiedPage.verify(page.layout(), copy);
    }

    /** Values that can be changed. */
    private static Object copy(Object value) {
        if (!(value instanceof List<?> list)) {
            return value;
        }
        var copy = new ArrayList<Object>();
        list.forEach(item -> copy.add(copy(item)));
        return copy;
    }

    @SuppressWarnings("unchecked")
    void edit(Layout layout) {
        var rows = new ArrayList<Object>();
        int count = 1 + random.nextInt(6);
        ByteBuffer built = null;
        boolean large = random.nextInt(8) == 0;
        while (built == null) {
            rows.clear();
            for (int i = 0; i < (large ? 1 : count); i++) {
                rows.add(copy(values.row(layout)));
            }
            int bytes = large ? 4 * PAGE_BYTES : random.nextInt(4) == 0 ? 65536 : PAGE_BYTES;
            built = ValuePages.page(layout, rows, bytes, large, 7);
            if (built == null && count-- == 1) {
                return;
            }
        }
        VerifiedPage page = VerifiedPage.verify(layout, built);
        int standardBytes = large ? PAGE_BYTES : built.limit();
        int edition = 7;
        for (int session = 0; session < 2; session++) {
            List<Object> before = Values.rows(page);
            var editor = new DynamicWriter.Editor(page, standardBytes);
            edition++;
            for (int i = random.nextInt(12); i >= 0; i--) {
                int slot = random.nextInt(rows.size());
                Object row = copy(rows.get(slot));
                try {
                    change(editor.object(slot), layout.record.fields, (List<Object>) row);
                    changes++;
                    rows.set(slot, row);
                } catch (PageException tooLarge) {
                    assertEquals(Refusal.LIMIT, tooLarge.refusal());
                    refused++;
                    // Part of it may have been done. Each part was, or was not.
                    rows.set(slot, copy(Values.rows(editor.page()).get(slot)));
                }
                assertEquals(rows, Values.rows(editor.page()));
                if (random.nextInt(4) == 0) {
                    verifyBetweenChanges(editor.page());
                }
            }
            assertEquals(before, Values.rows(page), "the page that was copied stays as it was");
            if (random.nextBoolean() && !large) {
                editor.compact();
            }
            page = editor.seal();
            VerifiedPage.verify(layout, page.bytes());
            assertEquals(edition, page.header().edition());
            assertFalse(page.header().moved());
            int bytes = page.bytes().limit();
            ByteBuffer expected =
                    ValuePages.page(layout, rows, bytes, bytes > standardBytes, edition);
            assertArrayEquals(expected.array(), BuildTest.bytes(page));
        }
    }
}
