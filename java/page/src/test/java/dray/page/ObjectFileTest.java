package dray.page;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dray.page.generated.every.EveryFile;
import dray.page.generated.nested.Customer;
import dray.page.generated.nested.CustomerBuilder;
import dray.page.generated.nested.CustomerFile;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Files of many pages, by generated accessors. */
class ObjectFileTest {
    private static final int OBJECTS = 2000;

    private static String name(int i) {
        return i % 500 == 7 ? "large ".repeat(1000) : "customer number " + i;
    }

    /** Object i has the key i / 2. */
    private static Path write(Path folder, String key) {
        var builder = new CustomerBuilder(4096);
        for (int i = 0; i < OBJECTS; i++) {
            builder.begin().key(i / 2).name(name(i));
            builder.end();
        }
        List<VerifiedPage> pages = builder.finish();
        Path path = folder.resolve(key + ".pages");
        TestFiles.write(path, pages, 4096, key);
        return path;
    }

    @Test
    void objectsAreReadInOrderByNumberAndByKey(@TempDir Path folder) {
        CustomerFile file = CustomerFile.open(write(folder, "key"));
        file.file().check();
        assertEquals(OBJECTS, file.size());
        int i = 0;
        for (Customer customer : file) {
            assertEquals(name(i), customer.name().toString());
            assertEquals(name(i), file.object(i).name().toString());
            i++;
        }
        assertEquals(OBJECTS, i);
        var view = new Customer();
        assertEquals(name(999), file.object(999, view).name().toString());
        for (int key = 0; key < OBJECTS / 2; key++) {
            List<Customer> found = file.find(key);
            assertEquals(List.of(name(2 * key), name(2 * key + 1)),
                    found.stream().map(customer -> customer.name().toString()).toList());
        }
        assertEquals(List.of(), file.find(OBJECTS));
        assertThrows(PageException.class, () -> file.object(OBJECTS));
    }

    @Test
    void filesOfAnotherSchemaOrKeyAreRefused(@TempDir Path folder) {
        Path path = write(folder, "name");
        var schema = assertThrows(PageException.class, () -> EveryFile.open(path));
        assertTrue(schema.getMessage().contains("generate them again"), schema.getMessage());
        CustomerFile file = CustomerFile.open(path);
        var key = assertThrows(PageException.class, () -> file.find(1));
        assertTrue(key.getMessage().contains("[[name]]"), key.getMessage());
    }
}
