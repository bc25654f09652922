package dray.page;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dray.page.generated.every.EveryPage;
import dray.page.generated.nested.Customer;
import dray.page.generated.nested.CustomerPage;
import dray.page.generated.nested.ItemsItem;
import dray.page.generated.nested.OrdersItem;
import java.nio.ByteBuffer;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

/** Generated accessors of the nested object of {@code spec/page.md} section 8. */
class AccessorsTest {
    private static VerifiedPage vector(String name) {
        return Vectors.verify(Vectors.bytes(
                Vectors.ROOT.resolve("spec/vectors/accept").resolve(name)));
    }

    private static VerifiedPage example() {
        return vector("nested-example.page");
    }

    @Test
    void theNestedObjectIsRead() {
        Customer miller = new CustomerPage(example()).get(0);
        assertEquals(5, miller.key());
        assertEquals("Miller", miller.name().toString());
        OrdersItem.List orders = miller.orders();
        assertEquals(2, orders.size());
        assertEquals(LocalDate.ofEpochDay(100), orders.get(0).dateDate());
        ItemsItem.List items = orders.get(0).items();
        assertEquals(1, items.get(0).part());
        assertEquals(10, items.get(0).quantity());
        assertEquals(2, items.get(1).part());
        assertFalse(items.get(1).hasQuantity());
        assertEquals(-1, items.get(1).quantityOr((short) -1));
        assertFalse(orders.get(1).hasDate());
        assertTrue(orders.get(1).items().isEmpty());
    }

    @Test
    void whatIsNotThereIsAnException() {
        Customer miller = new CustomerPage(example()).get(0);
        var missing = assertThrows(NoSuchElementException.class,
                () -> miller.orders().get(0).items().get(1).quantity());
        assertTrue(missing.getMessage().contains("quantity"), missing.getMessage());
        assertThrows(IndexOutOfBoundsException.class, () -> miller.orders().get(2));
        assertThrows(IndexOutOfBoundsException.class, () -> miller.orders().get(-1));
        var page = new CustomerPage(example());
        assertThrows(PageException.class, () -> page.get(page.size()));
    }

    @Test
    void aViewIsMovedFromItemToItem() {
        var item = new ItemsItem();
        var parts = new ArrayList<Integer>();
        for (Customer customer : new CustomerPage(example())) {
            for (OrdersItem order : customer.orders()) {
                ItemsItem.List items = order.items();
                for (int i = 0; i < items.size(); i++) {
                    parts.add(items.get(i, item).part());
                }
            }
        }
        assertEquals(List.of(1, 2), parts);
    }

    @Test
    void accessorsOfAnotherSchemaAreRefused() {
        var refused = assertThrows(PageException.class, () -> new EveryPage(example()));
        assertEquals(Refusal.USAGE, refused.refusal());
        assertTrue(refused.getMessage().contains("dray accessors"), refused.getMessage());
    }

    @Test
    void stringsAreComparedByTheirBytes() {
        List<String> texts = List.of("", "a", "ab", "a longer string than twelve", "é", "€", "𝄞",
                "a longer string than twelvf", "\uFFFD", "a longer string");
        var views = new ArrayList<Utf8>();
        for (String text : texts) {
            ByteBuffer bytes = ByteBuffer.wrap(
                    text.getBytes(java.nio.charset.StandardCharsets.UTF_8));
            views.add(new Utf8(bytes, 0, bytes.limit()));
        }
        for (int i = 0; i < texts.size(); i++) {
            for (int j = 0; j < texts.size(); j++) {
                assertEquals(i == j, views.get(i).equals(views.get(j)));
                int[] a = texts.get(i).codePoints().toArray();
                int[] b = texts.get(j).codePoints().toArray();
                assertEquals(Integer.signum(java.util.Arrays.compare(a, b)),
                        Integer.signum(views.get(i).compareTo(views.get(j))),
                        texts.get(i) + " and " + texts.get(j));
            }
            assertEquals(texts.get(i), views.get(i).toString());
            assertTrue(views.get(i).contentEquals(texts.get(i)));
        }
    }
}
