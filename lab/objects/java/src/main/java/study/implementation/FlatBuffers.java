package study.implementation;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import study.ByteStrings;
import study.Entries;
import study.Item;
import study.Kind;
import study.Merge;
import study.PageWriter;
import study.Pages;
import study.Sink;
import study.SortKey;
import study.VectorView;
import study.flat.Customer;
import study.flat.LineItem;
import study.flat.Part;
import study.flat.SparseVector;
import study.model.Plain;

/** FlatBuffers: objects are read where they are, by generated classes. Java has no verifier. */
public final class FlatBuffers extends ByteStrings {
    private final Kind kind;
    private final FlatWriter writer = new FlatWriter();
    private ByteBuffer page = Pages.view(new byte[0]);
    private ByteBuffer text = page;

    public FlatBuffers(Kind kind) {
        this.kind = kind;
    }

    @Override
    protected void encode(Plain plain, Sink out) {
        writer.build(plain);
        write(writer.builder.dataBuffer(), out);
    }

    private static void write(ByteBuffer built, Sink out) {
        out.write(built.array(), built.arrayOffset() + built.position(), built.remaining());
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) {
        if (page.array() != bytes) {
            page = Pages.view(bytes);
            text = Pages.view(bytes);
        }
        page.position(offset);
        return switch (kind) {
            case PART -> new PartView(this, offset, length);
            case LINEITEM -> new LineItemView(this, offset, length);
            case CUSTOMER -> new CustomerView(this, offset, length);
            case VECTOR -> new Vector(bytes, offset, length);
        };
    }

    /** Copies the bytes of a view. */
    @Override
    protected void write(Item item, Sink out) {
        if (item instanceof Vector vector) {
            out.write(vector.bytes, vector.offset, vector.length);
        } else {
            View view = (View) item;
            out.write(view.text.array(), view.offset, view.length);
        }
    }

    @Override
    public boolean mutatesInPlace() {
        return true;
    }

    @Override
    protected void mutate(byte[] bytes, int position, PageWriter none) throws IOException {
        if (!((View) open(bytes, position)).change()) {
            throw new IOException("an object lacks the number that is to be changed");
        }
    }

    @Override
    public Item sum(List<Entries> vectors) {
        int size = Merge.size(vectors);
        var builder = writer.builder;
        builder.clear();
        ByteBuffer to = builder.createUnintializedVector(Vector.ENTRY, size, 8);
        Merge.of(vectors, (position, value) -> to.putInt(position).putInt(0).putDouble(value));
        builder.finish(SparseVector.createSparseVector(builder, builder.endVector()));
        byte[] bytes = builder.sizedByteArray();
        return new Vector(bytes, 0, bytes.length);
    }

    /** A table and where its bytes are. */
    private abstract static class View implements Item {
        final ByteBuffer text;
        final int offset;
        final int length;

        View(FlatBuffers from, int offset, int length) {
            text = from.text;
            this.offset = offset;
            this.length = length;
        }

        abstract boolean change();

        @Override
        public boolean viewsBytes() {
            return true;
        }

        /** The buffer for strings, which is not that of another view: both are needed at once. */
        ByteBuffer otherText(View view) {
            return text == view.text ? Pages.view(text.array()) : text;
        }

        @Override
        public long heapBytes() {
            return 56;
        }
    }

    private static final class PartView extends View {
        final Part part;

        PartView(FlatBuffers from, int offset, int length) {
            super(from, offset, length);
            part = Part.getRootAsPart(from.page);
        }

        @Override
        public int key() {
            return part.partKey();
        }

        @Override
        public long checksum() {
            return FlatWalk.add(0, part, text);
        }

        @Override
        public boolean same(Item item) {
            PartView other = (PartView) item;
            return FlatWalk.equal(part, text, other.part, other.otherText(this));
        }

        @Override
        public Plain plain() {
            return FlatWalk.plain(part);
        }

        @Override
        boolean change() {
            return part.mutateRetailPrice(part.retailPrice() + 1.0);
        }
    }

    private static final class LineItemView extends View {
        final LineItem lineItem;

        LineItemView(FlatBuffers from, int offset, int length) {
            super(from, offset, length);
            lineItem = LineItem.getRootAsLineItem(from.page);
        }

        @Override
        public int key() {
            return lineItem.orderKey();
        }

        @Override
        public long checksum() {
            return FlatWalk.add(0, lineItem, text);
        }

        @Override
        public long sortKey() {
            return SortKey.of(lineItem.orderKey(), lineItem.lineNumber());
        }

        @Override
        public boolean same(Item item) {
            LineItemView other = (LineItemView) item;
            return FlatWalk.equal(lineItem, text, other.lineItem, other.otherText(this));
        }

        @Override
        public Plain plain() {
            return FlatWalk.plain(lineItem);
        }

        @Override
        boolean change() {
            return lineItem.mutateExtendedPrice(lineItem.extendedPrice() + 1.0);
        }
    }

    private static final class CustomerView extends View {
        final Customer customer;

        CustomerView(FlatBuffers from, int offset, int length) {
            super(from, offset, length);
            customer = Customer.getRootAsCustomer(from.page);
        }

        @Override
        public int key() {
            return customer.custKey();
        }

        @Override
        public long checksum() {
            return FlatWalk.add(0, customer, text);
        }

        @Override
        public boolean same(Item item) {
            CustomerView other = (CustomerView) item;
            return FlatWalk.equal(customer, text, other.customer, other.otherText(this));
        }

        @Override
        public Plain plain() {
            return FlatWalk.plain(customer);
        }

        @Override
        boolean change() {
            return customer.mutateAcctbal(customer.acctbal() + 1.0);
        }
    }

    /** Entries where they are. */
    private static final class Vector extends VectorView {
        static final int ENTRY = 16;

        final byte[] bytes;
        final int offset;
        final int length;
        final study.flat.Entry.Vector entries;
        final study.flat.Entry entry = new study.flat.Entry();

        Vector(byte[] bytes, int offset, int length) {
            this.bytes = bytes;
            this.offset = offset;
            this.length = length;
            ByteBuffer view = Pages.view(bytes).position(offset);
            entries = SparseVector.getRootAsSparseVector(view).entriesVector();
        }

        @Override
        public int size() {
            return entries.length();
        }

        @Override
        public int position(int index) {
            return entries.get(entry, index).position();
        }

        @Override
        public double value(int index) {
            return entries.get(entry, index).value();
        }
    }
}
