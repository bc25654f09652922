package dray.page;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dray.page.generated.every.Every;
import dray.page.generated.every.EveryBuilder;
import dray.page.generated.every.EveryEditor;
import dray.page.generated.every.EveryPage;
import dray.page.generated.nested.Customer;
import dray.page.generated.nested.CustomerBuilder;
import dray.page.generated.nested.CustomerEditor;
import dray.page.generated.nested.CustomerPage;
import dray.page.generated.nested.ItemsItem;
import dray.page.generated.nested.OrdersItem;
import java.time.LocalDate;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Generated builders and editors of the nested object of {@code spec/page.md} section 8. */
class WritersTest {
    /** Writes the object of the specification. */
    private static void writeMiller(Customer.Writer customer) {
        customer.key(5).name("Miller");
        OrdersItem.ListWriter orders = customer.orders(2);
        OrdersItem.Writer order = orders.next().dateDate(LocalDate.ofEpochDay(100));
        ItemsItem.ListWriter items = order.items(2);
        items.next().part(1).quantity((short) 10);
        items.next().part(2);
        orders.next();
    }

    private static VerifiedPage millers(int count, int pageBytes) {
        var builder = new CustomerBuilder(pageBytes);
        for (int i = 0; i < count; i++) {
            writeMiller(builder.begin());
            builder.end();
        }
        return builder.finish().get(0);
    }

    @Test
    void theNestedObjectIsBuilt() {
        VerifiedPage vector = Vectors.verify(Vectors.bytes(
                Vectors.ROOT.resolve("spec/vectors/accept/nested-example.page")));
        VerifiedPage built = millers(1, 4096);
        int bytes = Memory.getInt(vector.bytes(), vector.objectAt(0));
        var expected = new byte[bytes];
        var found = new byte[bytes];
        vector.bytes().get(vector.objectAt(0), expected);
        built.bytes().get(built.objectAt(0), found);
        assertArrayEquals(expected, found);
    }

    @Test
    void valuesAreOverwrittenWhereTheyLie() {
        var editor = new CustomerEditor(millers(3, 4096));
        Customer view = new CustomerPage(editor.page()).get(1);
        Customer.Writer customer = editor.object(1);
        Utf8 name = view.name();
        customer.key(77).name("Meier");
        assertEquals("Meier", name.toString(), "not with the length that it had");
        customer.orders().get(0).dateMissing().items().get(1).quantity((short) 3);
        assertEquals(77, view.key());
        assertEquals("Meier", view.name().toString());
        assertFalse(view.orders().get(0).hasDate());
        assertEquals(3, view.orders().get(0).items().get(1).quantity());
        VerifiedPage sealed = editor.seal();
        assertFalse(sealed.header().moved());
        VerifiedPage.verify(CustomerPage.LAYOUT, sealed.bytes());
    }

    @Test
    void whatGrowsIsWrittenAnewAndOldViewsKeepTheOldValue() {
        var editor = new CustomerEditor(millers(20, 4096));
        Customer old = new CustomerPage(editor.page()).get(3);
        Customer.Writer customer = editor.object(3);
        customer.name("a name that needs a tail");
        assertEquals("Miller", old.name().toString());
        assertTrue(editor.page().header().moved());
        Customer renamed = new CustomerPage(editor.page()).get(3);
        // The writer finds its object again, and so do writers of its items.
        OrdersItem.Writer order = customer.orders().get(0);
        customer.name("a name that needs a longer tail");
        order.date(7);
        order.itemsResize(3).items().get(2).part(9);
        customer.ordersRemove(1);
        assertEquals("a name that needs a tail", renamed.name().toString());
        editor.compact();
        Customer now = new CustomerPage(editor.page()).get(3);
        assertEquals("a name that needs a longer tail", now.name().toString());
        assertEquals(1, now.orders().size());
        assertEquals(7, now.orders().get(0).date());
        assertEquals(9, now.orders().get(0).items().get(2).part());
        assertEquals("a name that needs a tail", renamed.name().toString());
        assertEquals("Miller", old.name().toString());
        VerifiedPage.verify(CustomerPage.LAYOUT, editor.seal().bytes());
    }

    /** A writer that was used before a compaction writes to the page after it. */
    @Test
    void writersFollowTheirObjectToACompactedPage() {
        var builder = new EveryBuilder();
        builder.begin();
        builder.end();
        builder.begin();
        builder.end();
        var editor = new EveryEditor(builder.finish().get(0));
        Every.Writer writer = editor.object(1);
        VerifiedPage first = editor.page();
        for (int i = 0; i < 20; i++) {
            boolean even = i % 2 == 0;
            writer.text("x".repeat(20 + i)).bool(even).i8((byte) i).boolOrNull(even);
            Every every = new EveryPage(editor.page()).get(1);
            assertEquals(20 + i, every.text().length());
            assertEquals(even, every.bool());
            assertEquals(i, every.i8());
            writer.textOrNull("y".repeat(20 + i)).boolOrNullMissing();
            every = new EveryPage(editor.page()).get(1);
            assertFalse(every.hasBoolOrNull());
        }
        assertNotSame(first, editor.page());
        VerifiedPage.verify(EveryPage.LAYOUT, editor.seal().bytes());
    }

    @Test
    void structsThatAreMissingAreNotWritten() {
        var builder = new EveryBuilder();
        Every.Writer writer = builder.begin();
        var inner = writer.inner();
        inner.x(1);
        writer.innerMissing();
        var gone = assertThrows(IllegalStateException.class, () -> inner.x(2));
        assertTrue(gone.getMessage().contains("missing"), gone.getMessage());
        assertThrows(IllegalStateException.class, () -> inner.deep());
        // The struct has a list of three items, whose turn is over.
        writer.lists(0);
        var late = assertThrows(IllegalStateException.class, writer::inner);
        assertTrue(late.getMessage().contains("too late"), late.getMessage());
        builder.end();

        var editor = new EveryEditor(builder.finish().get(0));
        Every.Writer edited = editor.object(0);
        assertFalse(new EveryPage(editor.page()).get(0).hasInner());
        edited.inner().deep().b("a text that needs a tail");
        Every every = new EveryPage(editor.page()).get(0);
        assertEquals(3, every.inner().three().size());
        assertEquals("a text that needs a tail", every.inner().deep().b().toString());
        var deep = edited.inner().deep();
        edited.inner().deepMissing();
        assertThrows(IllegalStateException.class, () -> deep.b("x"));
        edited.innerMissing();
        assertFalse(new EveryPage(editor.page()).get(0).hasInner());
        VerifiedPage.verify(EveryPage.LAYOUT, editor.seal().bytes());
    }

    @Test
    void anObjectThatDoesNotFitLeavesThePageAsItWas() {
        var editor = new CustomerEditor(millers(20, 4096));
        byte[] before = BuildTest.bytes(editor.page());
        var refused = assertThrows(PageException.class,
                () -> editor.object(0).name("x".repeat(4000)));
        assertEquals(Refusal.LIMIT, refused.refusal());
        assertArrayEquals(before, BuildTest.bytes(editor.page()));
    }

    @Test
    void aLargePageIsReplacedByOneThatFits() {
        var builder = new CustomerBuilder(4096);
        builder.begin().key(1).name("x".repeat(5000));
        builder.end();
        var editor = new CustomerEditor(builder.finish().get(0), 4096);
        assertEquals(8192, editor.page().bytes().limit());
        editor.object(0).name("y".repeat(50_000));
        VerifiedPage page = VerifiedPage.verify(CustomerPage.LAYOUT, editor.seal().bytes());
        assertEquals(13 * 4096, page.bytes().limit());
        assertEquals(50_000, new CustomerPage(page).get(0).name().length());
    }

    /** C++ has a test that makes the same pages. */
    @Test
    void anObjectThatIsAloneHasThePageThatFits() {
        var builder = new CustomerBuilder(4096);
        builder.begin().key(1).name("x".repeat(5000));
        builder.end();
        var editor = new CustomerEditor(builder.finish().get(0), 4096);
        editor.object(0).name("Miller");
        VerifiedPage small = VerifiedPage.verify(CustomerPage.LAYOUT, editor.seal().bytes());
        assertFalse(small.header().large());
        assertEquals(4096, small.bytes().limit());
        assertEquals(0x61731ebd, small.header().checksum());
        // The page says its standard size now.
        editor = new CustomerEditor(small);
        Customer.Writer customer = editor.object(0);
        customer.name("y".repeat(3000));
        customer.name("y".repeat(5000));
        assertEquals(5000, new CustomerPage(editor.page()).get(0).name().length());
        customer.name("y".repeat(100));
        customer.name("y".repeat(9000));
        VerifiedPage large = VerifiedPage.verify(CustomerPage.LAYOUT, editor.seal().bytes());
        assertTrue(large.header().large());
        assertEquals(3 * 4096, large.bytes().limit());
        assertEquals(0xd47d3b9e, large.header().checksum());
    }

    @Test
    void misuseIsExplained() {
        var builder = new CustomerBuilder();
        Customer.Writer customer = builder.begin();
        OrdersItem.ListWriter orders = customer.orders(2);
        OrdersItem.Writer order = orders.next();
        var late = assertThrows(IllegalStateException.class,
                () -> customer.name("longer than twelve bytes"));
        assertTrue(late.getMessage().contains("2 items got 1"), late.getMessage());
        orders.next();
        var tooLate = assertThrows(IllegalStateException.class,
                () -> customer.name("longer than twelve bytes"));
        assertTrue(tooLate.getMessage().contains("order of the schema"), tooLate.getMessage());
        assertThrows(IllegalStateException.class, orders::next);
        assertThrows(IllegalStateException.class, builder::begin);
        assertThrows(IllegalStateException.class, builder::finish);
        assertThrows(IllegalStateException.class, () -> customer.orders());
        builder.end();
        var stale = assertThrows(IllegalStateException.class, () -> order.date(1));
        assertTrue(stale.getMessage().contains("finished"), stale.getMessage());
        assertThrows(IllegalArgumentException.class, () -> builder.begin().name("\ud800"));
        builder.cancel();
        List<VerifiedPage> pages = builder.finish();
        VerifiedPage.verify(CustomerPage.LAYOUT, pages.get(0).bytes());
        var editor = new CustomerEditor(pages.get(0));
        Customer.Writer writer = editor.object(0);
        assertThrows(IndexOutOfBoundsException.class, () -> writer.orders().get(2));
        editor.seal();
        assertThrows(IllegalStateException.class, () -> writer.key(1));
    }
}
