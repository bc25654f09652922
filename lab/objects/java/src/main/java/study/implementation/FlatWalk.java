package study.implementation;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import study.Checksum;
import study.flat.Customer;
import study.flat.LineItem;
import study.flat.Order;
import study.flat.Part;
import study.flat.Supplier;

/** What is done with every field of tables: checksums, equality, copies to Java's own objects. */
final class FlatWalk {
    private FlatWalk() {}

    /** The checksum of a string, which the library shows as a part of `text`. */
    private static long add(long h, ByteBuffer text) {
        return Checksum.add(h, text, text.position(), text.remaining());
    }

    static long add(long h, Part part, ByteBuffer text) {
        h = Checksum.add(h, part.partKey());
        h = add(h, part.nameInByteBuffer(text));
        h = add(h, part.mfgrInByteBuffer(text));
        h = add(h, part.brandInByteBuffer(text));
        h = add(h, part.typeInByteBuffer(text));
        h = Checksum.add(h, part.size());
        h = add(h, part.containerInByteBuffer(text));
        h = Checksum.add(h, part.retailPrice());
        h = add(h, part.commentInByteBuffer(text));
        return h;
    }

    static boolean equal(Part a, ByteBuffer textA, Part b, ByteBuffer textB) {
        return a.partKey() == b.partKey()
                && a.nameInByteBuffer(textA).equals(b.nameInByteBuffer(textB))
                && a.mfgrInByteBuffer(textA).equals(b.mfgrInByteBuffer(textB))
                && a.brandInByteBuffer(textA).equals(b.brandInByteBuffer(textB))
                && a.typeInByteBuffer(textA).equals(b.typeInByteBuffer(textB))
                && a.size() == b.size()
                && a.containerInByteBuffer(textA).equals(b.containerInByteBuffer(textB))
                && a.retailPrice() == b.retailPrice()
                && a.commentInByteBuffer(textA).equals(b.commentInByteBuffer(textB));
    }

    static study.model.Part plain(Part part) {
        var plain = new study.model.Part();
        plain.partKey = part.partKey();
        plain.name = part.name();
        plain.mfgr = part.mfgr();
        plain.brand = part.brand();
        plain.type = part.type();
        plain.size = part.size();
        plain.container = part.container();
        plain.retailPrice = part.retailPrice();
        plain.comment = part.comment();
        return plain;
    }

    static long add(long h, Supplier supplier, ByteBuffer text) {
        h = Checksum.add(h, supplier.supplierKey());
        h = add(h, supplier.nameInByteBuffer(text));
        h = add(h, supplier.addressInByteBuffer(text));
        h = Checksum.add(h, supplier.nationKey());
        h = add(h, supplier.phoneInByteBuffer(text));
        h = Checksum.add(h, supplier.acctbal());
        h = add(h, supplier.commentInByteBuffer(text));
        return h;
    }

    static boolean equal(Supplier a, ByteBuffer textA, Supplier b, ByteBuffer textB) {
        return a.supplierKey() == b.supplierKey()
                && a.nameInByteBuffer(textA).equals(b.nameInByteBuffer(textB))
                && a.addressInByteBuffer(textA).equals(b.addressInByteBuffer(textB))
                && a.nationKey() == b.nationKey()
                && a.phoneInByteBuffer(textA).equals(b.phoneInByteBuffer(textB))
                && a.acctbal() == b.acctbal()
                && a.commentInByteBuffer(textA).equals(b.commentInByteBuffer(textB));
    }

    static study.model.Supplier plain(Supplier supplier) {
        var plain = new study.model.Supplier();
        plain.supplierKey = supplier.supplierKey();
        plain.name = supplier.name();
        plain.address = supplier.address();
        plain.nationKey = supplier.nationKey();
        plain.phone = supplier.phone();
        plain.acctbal = supplier.acctbal();
        plain.comment = supplier.comment();
        return plain;
    }

    static long add(long h, LineItem item, ByteBuffer text) {
        h = Checksum.add(h, item.orderKey());
        h = Checksum.add(h, item.lineNumber());
        h = Checksum.add(h, item.quantity());
        h = Checksum.add(h, item.extendedPrice());
        h = Checksum.add(h, item.discount());
        h = Checksum.add(h, item.tax());
        h = add(h, item.returnFlagInByteBuffer(text));
        h = add(h, item.lineStatusInByteBuffer(text));
        h = Checksum.add(h, item.shipDate());
        h = Checksum.add(h, item.commitDate());
        h = Checksum.add(h, item.receiptDate());
        h = add(h, item.shipInstructInByteBuffer(text));
        h = add(h, item.shipModeInByteBuffer(text));
        h = add(h, item.commentInByteBuffer(text));
        h = add(h, item.supplier(), text);
        h = add(h, item.part(), text);
        return h;
    }

    static boolean equal(LineItem a, ByteBuffer textA, LineItem b, ByteBuffer textB) {
        return a.orderKey() == b.orderKey()
                && a.lineNumber() == b.lineNumber()
                && a.quantity() == b.quantity()
                && a.extendedPrice() == b.extendedPrice()
                && a.discount() == b.discount()
                && a.tax() == b.tax()
                && a.returnFlagInByteBuffer(textA).equals(b.returnFlagInByteBuffer(textB))
                && a.lineStatusInByteBuffer(textA).equals(b.lineStatusInByteBuffer(textB))
                && a.shipDate() == b.shipDate()
                && a.commitDate() == b.commitDate()
                && a.receiptDate() == b.receiptDate()
                && a.shipInstructInByteBuffer(textA).equals(b.shipInstructInByteBuffer(textB))
                && a.shipModeInByteBuffer(textA).equals(b.shipModeInByteBuffer(textB))
                && a.commentInByteBuffer(textA).equals(b.commentInByteBuffer(textB))
                && equal(a.supplier(), textA, b.supplier(), textB)
                && equal(a.part(), textA, b.part(), textB);
    }

    static study.model.LineItem plain(LineItem item) {
        var plain = new study.model.LineItem();
        plain.orderKey = item.orderKey();
        plain.lineNumber = item.lineNumber();
        plain.quantity = item.quantity();
        plain.extendedPrice = item.extendedPrice();
        plain.discount = item.discount();
        plain.tax = item.tax();
        plain.returnFlag = item.returnFlag();
        plain.lineStatus = item.lineStatus();
        plain.shipDate = item.shipDate();
        plain.commitDate = item.commitDate();
        plain.receiptDate = item.receiptDate();
        plain.shipInstruct = item.shipInstruct();
        plain.shipMode = item.shipMode();
        plain.comment = item.comment();
        plain.supplier = plain(item.supplier());
        plain.part = plain(item.part());
        return plain;
    }

    static long add(long h, Order order, ByteBuffer text) {
        h = Checksum.add(h, order.orderKey());
        h = Checksum.add(h, order.custKey());
        h = add(h, order.orderStatusInByteBuffer(text));
        h = Checksum.add(h, order.totalPrice());
        h = Checksum.add(h, order.orderDate());
        h = add(h, order.orderPriorityInByteBuffer(text));
        h = add(h, order.clerkInByteBuffer(text));
        h = Checksum.add(h, order.shipPriority());
        h = add(h, order.commentInByteBuffer(text));
        int count = order.lineItemsLength();
        h = Checksum.add(h, count);
        LineItem item = new LineItem();
        for (int i = 0; i < count; i++) {
            h = add(h, order.lineItems(item, i), text);
        }
        return h;
    }

    static boolean equal(Order a, ByteBuffer textA, Order b, ByteBuffer textB) {
        boolean equal = a.orderKey() == b.orderKey()
                && a.custKey() == b.custKey()
                && a.orderStatusInByteBuffer(textA).equals(b.orderStatusInByteBuffer(textB))
                && a.totalPrice() == b.totalPrice()
                && a.orderDate() == b.orderDate()
                && a.orderPriorityInByteBuffer(textA).equals(b.orderPriorityInByteBuffer(textB))
                && a.clerkInByteBuffer(textA).equals(b.clerkInByteBuffer(textB))
                && a.shipPriority() == b.shipPriority()
                && a.commentInByteBuffer(textA).equals(b.commentInByteBuffer(textB))
                && a.lineItemsLength() == b.lineItemsLength();
        for (int i = 0; equal && i < a.lineItemsLength(); i++) {
            equal = equal(a.lineItems(i), textA, b.lineItems(i), textB);
        }
        return equal;
    }

    static study.model.Order plain(Order order) {
        var plain = new study.model.Order();
        plain.orderKey = order.orderKey();
        plain.custKey = order.custKey();
        plain.orderStatus = order.orderStatus();
        plain.totalPrice = order.totalPrice();
        plain.orderDate = order.orderDate();
        plain.orderPriority = order.orderPriority();
        plain.clerk = order.clerk();
        plain.shipPriority = order.shipPriority();
        plain.comment = order.comment();
        int count = order.lineItemsLength();
        plain.lineItems = new ArrayList<>(count);
        LineItem item = new LineItem();
        for (int i = 0; i < count; i++) {
            plain.lineItems.add(plain(order.lineItems(item, i)));
        }
        return plain;
    }

    static long add(long h, Customer customer, ByteBuffer text) {
        h = Checksum.add(h, customer.custKey());
        h = add(h, customer.nameInByteBuffer(text));
        h = add(h, customer.addressInByteBuffer(text));
        h = Checksum.add(h, customer.nationKey());
        h = add(h, customer.phoneInByteBuffer(text));
        h = Checksum.add(h, customer.acctbal());
        h = add(h, customer.mktSegmentInByteBuffer(text));
        h = add(h, customer.commentInByteBuffer(text));
        int count = customer.ordersLength();
        h = Checksum.add(h, count);
        Order order = new Order();
        for (int i = 0; i < count; i++) {
            h = add(h, customer.orders(order, i), text);
        }
        return h;
    }

    static boolean equal(Customer a, ByteBuffer textA, Customer b, ByteBuffer textB) {
        boolean equal = a.custKey() == b.custKey()
                && a.nameInByteBuffer(textA).equals(b.nameInByteBuffer(textB))
                && a.addressInByteBuffer(textA).equals(b.addressInByteBuffer(textB))
                && a.nationKey() == b.nationKey()
                && a.phoneInByteBuffer(textA).equals(b.phoneInByteBuffer(textB))
                && a.acctbal() == b.acctbal()
                && a.mktSegmentInByteBuffer(textA).equals(b.mktSegmentInByteBuffer(textB))
                && a.commentInByteBuffer(textA).equals(b.commentInByteBuffer(textB))
                && a.ordersLength() == b.ordersLength();
        for (int i = 0; equal && i < a.ordersLength(); i++) {
            equal = equal(a.orders(i), textA, b.orders(i), textB);
        }
        return equal;
    }

    static study.model.Customer plain(Customer customer) {
        var plain = new study.model.Customer();
        plain.custKey = customer.custKey();
        plain.name = customer.name();
        plain.address = customer.address();
        plain.nationKey = customer.nationKey();
        plain.phone = customer.phone();
        plain.acctbal = customer.acctbal();
        plain.mktSegment = customer.mktSegment();
        plain.comment = customer.comment();
        int count = customer.ordersLength();
        plain.orders = new ArrayList<>(count);
        Order order = new Order();
        for (int i = 0; i < count; i++) {
            plain.orders.add(plain(customer.orders(order, i)));
        }
        return plain;
    }
}
