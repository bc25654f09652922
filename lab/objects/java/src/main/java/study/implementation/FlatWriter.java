package study.implementation;

import com.google.flatbuffers.FlatBufferBuilder;
import java.util.List;
import study.model.Customer;
import study.model.Entry;
import study.model.LineItem;
import study.model.Order;
import study.model.Part;
import study.model.Plain;
import study.model.SparseVector;
import study.model.Supplier;

/** Builds a buffer from one of Java's own objects. What is nested is built first. */
final class FlatWriter {
    final FlatBufferBuilder builder = new FlatBufferBuilder(1 << 16);

    /** Builds an object into the builder, which has had nothing else. */
    void build(Plain plain) {
        builder.clear();
        if (plain instanceof Part part) {
            builder.finish(add(part, true));
        } else if (plain instanceof LineItem item) {
            builder.finish(add(item, true));
        } else if (plain instanceof Customer customer) {
            builder.finish(add(customer));
        } else {
            builder.finish(add((SparseVector) plain));
        }
    }

    /**
     * A number that equals its default is left out, and could not be changed in place then. So all
     * numbers are written of an object whose number to be changed is 0.
     */
    private void keepZero(boolean root, double changed) {
        builder.forceDefaults(root && changed == 0);
    }

    private int add(Part part, boolean root) {
        int name = builder.createString(part.name);
        int mfgr = builder.createString(part.mfgr);
        int brand = builder.createString(part.brand);
        int type = builder.createString(part.type);
        int container = builder.createString(part.container);
        int comment = builder.createString(part.comment);
        keepZero(root, part.retailPrice);
        int table = study.flat.Part.createPart(builder,
                part.partKey, name, mfgr, brand, type, part.size, container,
                part.retailPrice, comment);
        builder.forceDefaults(false);
        return table;
    }

    private int add(Supplier supplier) {
        int name = builder.createString(supplier.name);
        int address = builder.createString(supplier.address);
        int phone = builder.createString(supplier.phone);
        int comment = builder.createString(supplier.comment);
        return study.flat.Supplier.createSupplier(builder,
                supplier.supplierKey, name, address, supplier.nationKey, phone,
                supplier.acctbal, comment);
    }

    private int add(LineItem item, boolean root) {
        int returnFlag = builder.createString(item.returnFlag);
        int lineStatus = builder.createString(item.lineStatus);
        int shipInstruct = builder.createString(item.shipInstruct);
        int shipMode = builder.createString(item.shipMode);
        int comment = builder.createString(item.comment);
        int supplier = add(item.supplier);
        int part = add(item.part, false);
        keepZero(root, item.extendedPrice);
        int table = study.flat.LineItem.createLineItem(builder,
                item.orderKey, item.lineNumber, item.quantity,
                item.extendedPrice, item.discount, item.tax, returnFlag,
                lineStatus, item.shipDate, item.commitDate, item.receiptDate,
                shipInstruct, shipMode, comment, supplier, part);
        builder.forceDefaults(false);
        return table;
    }

    private int add(Order order) {
        int orderStatus = builder.createString(order.orderStatus);
        int orderPriority = builder.createString(order.orderPriority);
        int clerk = builder.createString(order.clerk);
        int comment = builder.createString(order.comment);
        int[] all = new int[order.lineItems.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = add(order.lineItems.get(i), false);
        }
        int lineItems = study.flat.Order.createLineItemsVector(builder, all);
        return study.flat.Order.createOrder(builder,
                order.orderKey, order.custKey, orderStatus, order.totalPrice,
                order.orderDate, orderPriority, clerk, order.shipPriority,
                comment, lineItems);
    }

    private int add(Customer customer) {
        int name = builder.createString(customer.name);
        int address = builder.createString(customer.address);
        int phone = builder.createString(customer.phone);
        int mktSegment = builder.createString(customer.mktSegment);
        int comment = builder.createString(customer.comment);
        int[] all = new int[customer.orders.size()];
        for (int i = 0; i < all.length; i++) {
            all[i] = add(customer.orders.get(i));
        }
        int orders = study.flat.Customer.createOrdersVector(builder, all);
        keepZero(true, customer.acctbal);
        int table = study.flat.Customer.createCustomer(builder,
                customer.custKey, name, address, customer.nationKey, phone,
                customer.acctbal, mktSegment, comment, orders);
        builder.forceDefaults(false);
        return table;
    }

    private int add(SparseVector vector) {
        List<Entry> entries = vector.entries;
        study.flat.SparseVector.startEntriesVector(builder, entries.size());
        for (int i = entries.size() - 1; i >= 0; i--) {
            Entry entry = entries.get(i);
            study.flat.Entry.createEntry(builder, entry.position, entry.value);
        }
        return study.flat.SparseVector.createSparseVector(builder, builder.endVector());
    }
}
