package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dray.page.generated.nested.CustomerBuilder;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PageFileTest {
    private static Path vector(String name) {
        return Vectors.ROOT.resolve("spec/vectors/accept").resolve(name);
    }

    private static List<Object> rows(PageFile file) {
        var rows = new ArrayList<Object>();
        for (int page = 0; page < file.pageCount(); page++) {
            rows.addAll(Values.rows(file.page(page)));
        }
        return rows;
    }

    /** Files of more than 2 GiB are read in windows, which are small here. */
    @Test
    void filesAreReadInWindowsOfAnySize() {
        for (Path vector : Vectors.list("accept", ".pages")) {
            ByteBuffer bytes = ByteBuffer.wrap(Vectors.bytes(vector));
            PageFile whole = PageFile.of(bytes);
            for (int part = 16; part <= 1 << 16; part *= 2) {
                PageFile parts = PageFile.read(Source.of(bytes, part));
                assertEquals(rows(whole), rows(parts));
                parts.check();
                var salvaged = new ArrayList<Object>();
                Salvage.of(Source.of(bytes, part)).pages()
                        .forEach(page -> salvaged.addAll(Values.rows(page)));
                assertEquals(rows(whole), salvaged);
            }
        }
    }

    @Test
    void everyOrdinalIsOnItsPage() {
        for (Path vector : Vectors.list("accept", ".pages")) {
            PageFile file = PageFile.open(vector);
            long ordinal = 0;
            for (int page = 0; page < file.pageCount(); page++) {
                assertEquals(ordinal, file.firstOf(page));
                for (int slot = 0; slot < file.page(page).size(); slot++) {
                    assertEquals(page, file.pageOf(ordinal++));
                }
            }
            long objects = ordinal;
            assertEquals(objects, file.size());
            assertThrows(PageException.class, () -> file.pageOf(objects));
            assertThrows(PageException.class, () -> file.pageOf(-1));
        }
    }

    @Test
    void objectsAreFoundByTheirKeys() {
        PageFile worked = PageFile.open(vector("file-worked.pages"));
        assertArrayEquals(new long[] {1}, worked.find(-1));
        assertArrayEquals(new long[] {2}, worked.find(2L));
        assertArrayEquals(new long[] {}, worked.find(3));
        assertArrayEquals(new long[] {}, worked.find(1L << 40), "no int32 has this value");
        assertThrows(PageException.class, () -> worked.find("7"));
        assertThrows(PageException.class, () -> worked.find(7, 7));
        PageFile keys = PageFile.open(vector("file-keys.pages"));
        List<Object> rows = rows(keys);
        int found = 0;
        for (int ordinal = 0; ordinal < rows.size(); ordinal++) {
            List<?> row = (List<?>) rows.get(ordinal);
            List<?> inner = (List<?>) row.get(1);
            if (row.get(0) == null || inner == null || inner.get(0) == null) {
                continue;
            }
            var hex = java.util.HexFormat.of();
            long[] ordinals = keys.find(row.get(0), inner.get(0),
                    hex.parseHex((String) inner.get(1)), hex.parseHex((String) inner.get(2)),
                    new java.math.BigInteger((String) row.get(2)));
            int sought = ordinal;
            assertTrue(java.util.Arrays.stream(ordinals).anyMatch(i -> i == sought));
            found++;
        }
        assertEquals(keys.keyIndex().count(), found);
        PageFile floats = PageFile.open(vector("file-float.pages"));
        assertArrayEquals(new long[] {0, 2}, floats.find(0.0f));
        assertArrayEquals(new long[] {1}, floats.find(-0.0f), "0.0 and -0.0 are two keys");
        assertArrayEquals(new long[] {3}, floats.find(Float.NaN));
    }

    @Test
    void threadsShareTheVerifiedPages() throws Exception {
        PageFile file = PageFile.open(vector("file-pages.pages"));
        ExecutorService threads = Executors.newFixedThreadPool(8);
        try {
            var tasks = new ArrayList<Callable<List<VerifiedPage>>>();
            for (int i = 0; i < 64; i++) {
                tasks.add(() -> {
                    var pages = new ArrayList<VerifiedPage>();
                    for (int page = 0; page < file.pageCount(); page++) {
                        pages.add(file.page(page));
                    }
                    return pages;
                });
            }
            for (Future<List<VerifiedPage>> task : threads.invokeAll(tasks)) {
                for (int page = 0; page < file.pageCount(); page++) {
                    assertSame(file.page(page), task.get().get(page));
                }
            }
        } finally {
            threads.shutdown();
        }
    }

    @Test
    void aRegularPageOfAnotherSizeIsRefused(@TempDir Path folder) {
        var builder = new CustomerBuilder(8192);
        builder.begin().key(1);
        builder.end();
        List<VerifiedPage> pages = builder.finish();
        Path path = folder.resolve("customers.pages");
        TestFiles.write(path, pages, 8192, "key");
        assertEquals(1, PageFile.open(path).page(0).size());
        TestFiles.write(path, pages, 4096, "key");
        var refused = assertThrows(PageException.class, () -> PageFile.open(path).page(0));
        assertEquals(Refusal.PAGE, refused.refusal());
        assertTrue(refused.getMessage().contains("8192 bytes"), refused.getMessage());
    }

    @Test
    void aFileThatIsNotThereIsNamed() {
        var refused = assertThrows(PageException.class,
                () -> PageFile.open(Path.of("/nowhere/x.pages")));
        assertEquals(Refusal.IO, refused.refusal());
        assertTrue(refused.getMessage().contains("/nowhere/x.pages"), refused.getMessage());
    }
}
