package study.implementation;

import dray.page.Layout;
import dray.page.Memory;
import dray.page.PageBuilder;
import dray.page.Unchecked;
import dray.page.VerifiedPage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import study.Implementation;
import study.Item;
import study.Kind;
import study.PageSink;
import study.PageWriter;
import study.Pages;
import study.Sink;
import study.model.Plain;

/**
 * Dray's pages: generated classes build objects in pages, and read and change them there. Each kind
 * of objects has a class, since it has a schema. The position of an object is its slot.
 *
 * <p>The packages in `study.dray` are what `dray accessors` generates for page files with the
 * objects of README.md: no field may be missing, nested objects are structs, and the items of lists
 * are called lineItem, order and entry.
 */
public abstract class DrayPages extends Implementation {
    /** Offsets in a page's header. */
    private static final int PAGE_BYTES = 20;
    private static final int OBJECTS_END = 24;

    /** Pages of messages are small, so that a message has little free space. */
    static final int MESSAGE_PAGE_BYTES = 4096;

    private final Layout layout;
    /** The page that was used last, as the array of its bytes and as Dray has it. */
    private byte[] bytes;
    private VerifiedPage page;

    DrayPages(Layout layout) {
        this.layout = layout;
    }

    public static DrayPages of(Kind kind) {
        return switch (kind) {
            case PART -> new DrayPart();
            case LINEITEM -> new DrayLineItem();
            case CUSTOMER -> new DrayCustomer();
            case VECTOR -> new DrayVector();
        };
    }

    /** Builds pages from Java's own objects. */
    interface Builder {
        /** The builder, whose pages are handed out by it. */
        PageBuilder<?> pages();

        void add(Plain plain);
    }

    abstract Builder builder(int pageBytes);

    /** Shows the object of a slot. */
    abstract Item view(VerifiedPage page, int slot);

    /** A view, and where its object is. */
    interface View extends Item {
        VerifiedPage page();

        int slot();

        /** Equal objects of one schema have equal bytes. */
        @Override
        default boolean same(Item other) {
            View view = (View) other;
            return extent(page(), slot()).equals(extent(view.page(), view.slot()));
        }

        @Override
        default boolean viewsBytes() {
            return true;
        }

        @Override
        default long heapBytes() {
            return 56;
        }
    }

    @Override
    public int pageBytes(byte[] header) {
        return Pages.view(header).getInt(PAGE_BYTES);
    }

    @Override
    public int[] positions(byte[] page) {
        return slots(trusted(page));
    }

    private static int[] slots(VerifiedPage page) {
        int[] slots = new int[page.size()];
        Arrays.setAll(slots, slot -> slot);
        return slots;
    }

    /** Shows a page's bytes without a check. An array may get another page's bytes. */
    VerifiedPage trusted(byte[] array) {
        if (bytes != array) {
            page = Unchecked.page(layout, Pages.view(array));
            bytes = array;
        }
        return page;
    }

    @Override
    public Item open(byte[] page, int position) {
        return view(trusted(page), position);
    }

    @Override
    public void validate(byte[] array) {
        page = VerifiedPage.verify(layout, Pages.view(array));
        bytes = array;
    }

    /** Dray checks whole pages only. */
    @Override
    public void validate(byte[] array, int position) {
        validate(array);
    }

    @Override
    public PageWriter writer(PageSink sink) {
        return new Writer(sink);
    }

    @Override
    public void encodeMessage(Item vector, Sink out) {
        if (vector instanceof View view) {
            out.write(Unchecked.array(view.page()), 0, view.page().bytes().limit());
            return;
        }
        Builder builder = builder(MESSAGE_PAGE_BYTES);
        builder.add((Plain) vector);
        VerifiedPage page = builder.pages().finish().get(0);
        out.write(Unchecked.array(page), 0, page.bytes().limit());
    }

    /** A message comes from another process, so it is checked. */
    @Override
    public Item openMessage(byte[] array) throws IOException {
        return view(VerifiedPage.verify(layout, Pages.view(array)), 0);
    }

    private static ByteBuffer extent(VerifiedPage page, int slot) {
        int at = page.objectAt(slot);
        return page.bytes().slice(at, Memory.getInt(page.bytes(), at));
    }

    static void handOver(VerifiedPage page, PageSink sink) throws IOException {
        handOver(page, slots(page), sink);
    }

    static void handOver(VerifiedPage page, int[] slots, PageSink sink) throws IOException {
        int end = Memory.getInt(page.bytes(), OBJECTS_END);
        sink.page(Unchecked.array(page), page.bytes().limit(), slots, end - DrayCopies.HEADER);
    }

    /** Builds plain objects, and copies the bytes of views. */
    private final class Writer implements PageWriter {
        private final PageSink sink;
        private final Builder builder = builder(Pages.BYTES);
        private final DrayCopies copies;

        Writer(PageSink sink) {
            this.sink = sink;
            copies = new DrayCopies(sink);
        }

        @Override
        public void add(Item item) throws IOException {
            if (item instanceof View view) {
                copies.add(view.page(), view.slot());
                return;
            }
            builder.add((Plain) item);
            for (VerifiedPage full : builder.pages().fullPages()) {
                handOver(full, sink);
            }
        }

        @Override
        public void finish() throws IOException {
            for (VerifiedPage last : builder.pages().finish()) {
                handOver(last, sink);
            }
            copies.finish();
        }
    }
}
