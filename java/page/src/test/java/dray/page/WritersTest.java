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
import dray.page.generated.every.StructsItem;
import dray.page.generated.nested.Customer;
import dray.page.generated.nested.CustomerBuilder;
import dray.page.generated.nested.CustomerEditor;
import dray.page.generated.nested.CustomerPage;
import dray.page.generated.nested.ItemsItem;
import dray.page.generated.nested.OrdersItem;
import java.time.LocalDate;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

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

    private static void refusedAsMoved(Executable write) {
        var moved = assertThrows(IllegalStateException.class, write);
        assertTrue(moved.getMessage().contains("moved"), moved.getMessage());
    }

    /** An editor of two customers with four orders, each of two items. */
    private static CustomerEditor fourOrders() {
        var builder = new CustomerBuilder(4096);
        for (int customer = 0; customer < 2; customer++) {
            OrdersItem.ListWriter orders = builder.begin().orders(4);
            for (int i = 0; i < 4; i++) {
                ItemsItem.ListWriter items = orders.next().date(i).items(2);
                items.next().part(10 * i);
                items.next().part(10 * i + 1);
            }
            builder.end();
        }
        return new CustomerEditor(builder.finish().get(0));
    }

    @Test
    void writersOfItemsThatMovedAreRefused() {
        CustomerEditor editor = fourOrders();
        Customer.Writer miller = editor.object(0);
        OrdersItem.ListWriter orders = miller.orders();
        OrdersItem.Writer first = orders.get(0);
        OrdersItem.Writer third = orders.get(2);
        ItemsItem.Writer within = orders.get(3).items().get(0);
        OrdersItem.Writer other = editor.object(1).orders().get(2);
        miller.ordersRemove(1);
        refusedAsMoved(() -> third.date(5));
        refusedAsMoved(() -> third.items());
        refusedAsMoved(() -> within.part(5));
        first.date(6);
        other.date(7);
        // The order whose item is removed stays where it is, and the items of others do.
        ItemsItem.Writer second = first.items().get(1);
        ItemsItem.Writer ofAnother = orders.get(1).items().get(1);
        first.itemsRemove(0).date(8);
        refusedAsMoved(() -> second.part(5));
        ofAnother.part(9);
        refusedAsMoved(() -> third.date(5));
        Customer now = new CustomerPage(editor.page()).get(0);
        assertEquals(3, now.orders().size());
        assertEquals(8, now.orders().get(0).date());
        assertEquals(1, now.orders().get(0).items().get(0).part());
        assertEquals(2, now.orders().get(1).date());
        assertEquals(9, now.orders().get(1).items().get(1).part());
        assertEquals(3, now.orders().get(2).date());
        assertEquals(7, new CustomerPage(editor.page()).get(1).orders().get(2).date());
    }

    @Test
    void writersOfItemsThatWereDroppedAreRefused() {
        CustomerEditor editor = fourOrders();
        Customer.Writer miller = editor.object(0);
        OrdersItem.Writer first = miller.orders().get(0);
        OrdersItem.Writer last = miller.orders().get(3);
        miller.ordersResize(2).ordersResize(4);
        refusedAsMoved(() -> last.date(5));
        first.date(6);
        OrdersItem.ListWriter anew = miller.orders(3);
        refusedAsMoved(() -> first.date(7));
        anew.next();
        miller.ordersRemove(0);
        refusedAsMoved(anew::next);

        var builder = new EveryBuilder();
        StructsItem.ListWriter built = builder.begin().structs(3);
        built.next().b("a text that needs a tail");
        built.addMissing();
        built.next();
        builder.end();
        var every = new EveryEditor(builder.finish().get(0)).object(0);
        StructsItem.Writer tailed = every.structs().get(0);
        StructsItem.Writer plain = every.structs().get(1);
        StructsItem.Writer kept = every.structs().get(2);
        every.structs().setMissing(0);
        StructsItem.Writer again = every.structs().get(0);
        every.structs().setMissing(1);
        refusedAsMoved(() -> plain.a((byte) 1));
        // What follows does not concern it.
        again.a((byte) 5);
        every.structs().get(0).a((byte) 1);
        every.structs().get(1).a((byte) 1);
        refusedAsMoved(() -> tailed.a((byte) 2));
        refusedAsMoved(() -> plain.a((byte) 2));
        kept.a((byte) 3);
        every.structsMissing().structsResize(3);
        refusedAsMoved(() -> kept.a((byte) 4));
    }

    /** A list of lists that is made anew has a writer for each of them. */
    @Test
    void listsOfListsHaveAWriterEach() {
        var builder = new EveryBuilder();
        builder.begin();
        builder.end();
        var editor = new EveryEditor(builder.finish().get(0));
        ListListWriter<Int64ListWriter> lists = editor.object(0).lists(2);
        Int64ListWriter first = lists.next(2);
        Int64ListWriter second = lists.next(1);
        first.addAll(1, 2);
        second.add(3);
        Every every = new EveryPage(editor.page()).get(0);
        assertEquals(2, every.lists().get(0).get(1));
        assertEquals(3, every.lists().get(1).get(0));
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

    /** Rust and C++ have tests that make the same pages. */
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
