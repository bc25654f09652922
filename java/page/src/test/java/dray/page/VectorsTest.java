package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** All vectors of pages and page files are accepted with their values, or refused by their name. */
class VectorsTest {
    @Test
    void pagesAreAcceptedWithTheirValues() {
        int objects = 0;
        List<Path> vectors = Vectors.list("accept", ".page");
        for (Path vector : vectors) {
            VerifiedPage page = Vectors.verify(Vectors.bytes(vector));
            Map<String, Object> json = Vectors.json(vector);
            assertEquals(json.get("schema"), Values.words(page.layout().schema().fields()),
                    vector.toString());
            assertEquals(json.get("sequence"), Long.toUnsignedString(page.header().sequence()));
            assertEquals(json.getOrDefault("edition", "0"),
                    Integer.toUnsignedString(page.header().edition()));
            assertEquals(json.get("rows"), Values.rows(page), vector.toString());
            objects += page.size();
        }
        assertTrue(vectors.size() > 40, "the vectors are there");
        System.out.println(vectors.size() + " vectors of pages were accepted, and their " + objects
                + " objects have the values of the JSON");
    }

    /** There is one form of an object, so its bytes can be made from its values. */
    @Test
    void objectsAreWrittenAgainFromTheirValues() {
        int objects = 0;
        for (Path vector : Vectors.list("accept", ".page")) {
            VerifiedPage page = Vectors.verify(Vectors.bytes(vector));
            List<Object> rows = Values.rows(page);
            for (int slot = 0; slot < page.size(); slot++) {
                byte[] written = ValuePages.object(page.layout(), (List<?>) rows.get(slot));
                var found = new byte[Memory.getInt(page.bytes(), page.objectAt(slot))];
                page.bytes().get(page.objectAt(slot), found);
                assertArrayEquals(found, written, vector + " object " + slot);
                objects++;
            }
        }
        System.out.println(objects + " objects of vectors were written again from their values,"
                + " byte for byte");
    }

    @Test
    void pageFilesAreAcceptedWithTheirValues() {
        List<Path> vectors = Vectors.list("accept", ".pages");
        for (Path vector : vectors) {
            PageFile file = PageFile.open(vector);
            Map<String, Object> json = Vectors.json(vector);
            assertEquals(json.get("schema"), Values.words(file.schema().fields()));
            var pages = new ArrayList<Object>();
            for (int page = 0; page < file.pageCount(); page++) {
                pages.add(Values.rows(file.page(page)));
            }
            assertEquals(json.get("pages"), pages, vector.toString());
            assertEquals(json.getOrDefault("key", List.of()), file.key(), vector.toString());
            var index = new ArrayList<Object>();
            if (!file.key().isEmpty()) {
                KeyIndex keys = file.keyIndex();
                for (long i = 0; i < keys.count(); i++) {
                    index.add(List.of(String.format("%016x", keys.hash(i)),
                            "" + keys.ordinal(i)));
                }
            }
            assertEquals(json.getOrDefault("index", List.of()), index, vector.toString());
            file.check();
        }
        assertTrue(vectors.size() >= 8, "the vectors are there");
        System.out.println(vectors.size() + " vectors of page files were accepted with their"
                + " values and keys");
    }

    @Test
    void pagesAreRefusedByName() {
        List<Path> vectors = Vectors.list("reject", ".page");
        for (Path vector : vectors) {
            byte[] bytes = Vectors.bytes(vector);
            var refused = assertThrows(PageException.class, () -> Vectors.verify(bytes),
                    vector.toString());
            assertEquals(Vectors.refusal(vector), refused.refusal().toString(),
                    vector + ": " + refused.getMessage());
        }
        assertTrue(vectors.size() > 80, "the vectors are there");
        System.out.println(vectors.size() + " vectors of pages were refused by their names");
    }

    @Test
    void pageFilesAreRefusedByName() {
        List<Path> vectors = Vectors.list("reject", ".pages");
        for (Path vector : vectors) {
            for (boolean mapped : new boolean[] {false, true}) {
                var refused = assertThrows(PageException.class, () -> {
                    (mapped ? PageFile.open(vector)
                            : PageFile.of(ByteBuffer.wrap(Vectors.bytes(vector)))).check();
                }, vector.toString());
                assertEquals(Vectors.refusal(vector), refused.refusal().toString(),
                        vector + ": " + refused.getMessage());
            }
        }
        assertTrue(vectors.size() > 40, "the vectors are there");
        System.out.println(vectors.size() + " vectors of page files were refused by their names,"
                + " in memory and mapped");
    }
}
