package study.implementation;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import study.ByteStrings;
import study.Entries;
import study.Item;
import study.Kind;
import study.Merge;
import study.Pages;
import study.Sink;
import study.VectorView;
import study.model.Customer;
import study.model.LineItem;
import study.model.Order;
import study.model.Part;
import study.model.Plain;
import study.model.SparseVector;
import study.model.Supplier;

/**
 * Fields by hand into a ByteBuffer, one behind the other; a string behind the number of its bytes.
 * These are also the bytes of the study's input files. Vectors are read where they are.
 */
public final class HandWritten extends ByteStrings {
    private final Kind kind;
    private Sink out;
    private ByteBuffer to;
    private ByteBuffer in = Pages.view(new byte[0]);

    public HandWritten(Kind kind) {
        this.kind = kind;
    }

    @Override
    protected void encode(Plain plain, Sink sink) {
        out = sink;
        to = Pages.view(sink.bytes).position(sink.at);
        if (plain instanceof Part part) {
            put(part);
        } else if (plain instanceof LineItem item) {
            put(item);
        } else if (plain instanceof Customer customer) {
            put(customer);
        } else if (plain instanceof SparseVector vector) {
            put(vector);
        }
        sink.at = to.position();
    }

    @Override
    protected Item open(byte[] bytes, int offset, int length) throws IOException {
        if (in.array() != bytes) {
            in = Pages.view(bytes);
        }
        in.limit(offset + length).position(offset);
        try {
            Item item = switch (kind) {
                case PART -> part();
                case LINEITEM -> lineItem();
                case CUSTOMER -> customer();
                case VECTOR -> new Vector(in.slice(offset, length));
            };
            if (kind != Kind.VECTOR && in.hasRemaining()) {
                throw new IOException("there are bytes behind an object");
            }
            return item;
        } catch (BufferUnderflowException error) {
            throw new IOException("an object ends early", error);
        }
    }

    @Override
    protected void write(Item item, Sink sink) {
        ByteBuffer bytes = ((Vector) item).bytes;
        sink.write(bytes.array(), bytes.arrayOffset(), bytes.limit());
    }

    @Override
    public Item sum(List<Entries> vectors) {
        Sink sum = new Sink(1 << 16);
        out = sum;
        to = Pages.view(sum.bytes);
        putInt(0);
        Merge.of(vectors, (position, value) -> {
            putInt(position);
            putDouble(value);
        });
        to.putInt(0, (to.position() - 4) / Vector.ENTRY);
        return new Vector(to.flip().slice());
    }

    private void put(Part part) {
        putInt(part.partKey);
        putString(part.name);
        putString(part.mfgr);
        putString(part.brand);
        putString(part.type);
        putInt(part.size);
        putString(part.container);
        putDouble(part.retailPrice);
        putString(part.comment);
    }

    private Part part() throws IOException {
        Part part = new Part();
        part.partKey = in.getInt();
        part.name = string();
        part.mfgr = string();
        part.brand = string();
        part.type = string();
        part.size = in.getInt();
        part.container = string();
        part.retailPrice = in.getDouble();
        part.comment = string();
        return part;
    }

    private void put(Supplier supplier) {
        putInt(supplier.supplierKey);
        putString(supplier.name);
        putString(supplier.address);
        putInt(supplier.nationKey);
        putString(supplier.phone);
        putDouble(supplier.acctbal);
        putString(supplier.comment);
    }

    private Supplier supplier() throws IOException {
        Supplier supplier = new Supplier();
        supplier.supplierKey = in.getInt();
        supplier.name = string();
        supplier.address = string();
        supplier.nationKey = in.getInt();
        supplier.phone = string();
        supplier.acctbal = in.getDouble();
        supplier.comment = string();
        return supplier;
    }

    private void put(LineItem item) {
        putInt(item.orderKey);
        putInt(item.lineNumber);
        putDouble(item.quantity);
        putDouble(item.extendedPrice);
        putDouble(item.discount);
        putDouble(item.tax);
        putString(item.returnFlag);
        putString(item.lineStatus);
        putInt(item.shipDate);
        putInt(item.commitDate);
        putInt(item.receiptDate);
        putString(item.shipInstruct);
        putString(item.shipMode);
        putString(item.comment);
        put(item.supplier);
        put(item.part);
    }

    private LineItem lineItem() throws IOException {
        LineItem item = new LineItem();
        item.orderKey = in.getInt();
        item.lineNumber = in.getInt();
        item.quantity = in.getDouble();
        item.extendedPrice = in.getDouble();
        item.discount = in.getDouble();
        item.tax = in.getDouble();
        item.returnFlag = string();
        item.lineStatus = string();
        item.shipDate = in.getInt();
        item.commitDate = in.getInt();
        item.receiptDate = in.getInt();
        item.shipInstruct = string();
        item.shipMode = string();
        item.comment = string();
        item.supplier = supplier();
        item.part = part();
        return item;
    }

    private void put(Order order) {
        putInt(order.orderKey);
        putInt(order.custKey);
        putString(order.orderStatus);
        putDouble(order.totalPrice);
        putInt(order.orderDate);
        putString(order.orderPriority);
        putString(order.clerk);
        putInt(order.shipPriority);
        putString(order.comment);
        putInt(order.lineItems.size());
        order.lineItems.forEach(this::put);
    }

    private Order order() throws IOException {
        Order order = new Order();
        order.orderKey = in.getInt();
        order.custKey = in.getInt();
        order.orderStatus = string();
        order.totalPrice = in.getDouble();
        order.orderDate = in.getInt();
        order.orderPriority = string();
        order.clerk = string();
        order.shipPriority = in.getInt();
        order.comment = string();
        int count = count();
        order.lineItems = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            order.lineItems.add(lineItem());
        }
        return order;
    }

    private void put(Customer customer) {
        putInt(customer.custKey);
        putString(customer.name);
        putString(customer.address);
        putInt(customer.nationKey);
        putString(customer.phone);
        putDouble(customer.acctbal);
        putString(customer.mktSegment);
        putString(customer.comment);
        putInt(customer.orders.size());
        customer.orders.forEach(this::put);
    }

    private Customer customer() throws IOException {
        Customer customer = new Customer();
        customer.custKey = in.getInt();
        customer.name = string();
        customer.address = string();
        customer.nationKey = in.getInt();
        customer.phone = string();
        customer.acctbal = in.getDouble();
        customer.mktSegment = string();
        customer.comment = string();
        int count = count();
        customer.orders = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            customer.orders.add(order());
        }
        return customer;
    }

    private void put(SparseVector vector) {
        putInt(vector.size());
        vector.entries.forEach(entry -> {
            putInt(entry.position);
            putDouble(entry.value);
        });
    }

    private void putInt(int value) {
        reserve(4);
        to.putInt(value);
    }

    private void putDouble(double value) {
        reserve(8);
        to.putDouble(value);
    }

    private void putString(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        reserve(4 + bytes.length);
        to.putInt(bytes.length).put(bytes);
    }

    private void reserve(int more) {
        if (to.remaining() < more) {
            out.at = to.position();
            out.reserve(more);
            to = Pages.view(out.bytes).position(out.at);
        }
    }

    private String string() throws IOException {
        int length = count();
        String text = new String(in.array(), in.position(), length, StandardCharsets.UTF_8);
        in.position(in.position() + length);
        return text;
    }

    /** A number of bytes or of items, each of which takes a byte at least. */
    private int count() throws IOException {
        int count = in.getInt();
        if (count < 0 || count > in.remaining()) {
            throw new IOException("a length of " + count + " with " + in.remaining() + " bytes");
        }
        return count;
    }

    /** Entries where they are. */
    private static final class Vector extends VectorView {
        static final int ENTRY = 12;

        final ByteBuffer bytes;
        final int size;

        Vector(ByteBuffer slice) {
            bytes = slice.order(ByteOrder.LITTLE_ENDIAN);
            size = bytes.getInt(0);
            if (size < 0 || size * (long) ENTRY + 4 != bytes.limit()) {
                throw new BufferUnderflowException();
            }
        }

        @Override
        public int size() {
            return size;
        }

        @Override
        public int position(int index) {
            return bytes.getInt(4 + index * ENTRY);
        }

        @Override
        public double value(int index) {
            return bytes.getDouble(8 + index * ENTRY);
        }
    }
}
