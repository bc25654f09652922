package study.implementation;

import java.util.ArrayList;
import study.model.Customer;
import study.model.Entry;
import study.model.LineItem;
import study.model.Order;
import study.model.Part;
import study.model.SparseVector;
import study.model.Supplier;
import study.proto.Proto;

/** Copies of Java's own objects to generated messages, and back. */
final class ProtobufCopy {
    private ProtobufCopy() {}

    static Proto.Part message(Part part) {
        Proto.Part.Builder message = Proto.Part.newBuilder();
        message.setPartKey(part.partKey);
        message.setName(part.name);
        message.setMfgr(part.mfgr);
        message.setBrand(part.brand);
        message.setType(part.type);
        message.setSize(part.size);
        message.setContainer(part.container);
        message.setRetailPrice(part.retailPrice);
        message.setComment(part.comment);
        return message.build();
    }

    static Part plain(Proto.Part message) {
        Part part = new Part();
        part.partKey = message.getPartKey();
        part.name = message.getName();
        part.mfgr = message.getMfgr();
        part.brand = message.getBrand();
        part.type = message.getType();
        part.size = message.getSize();
        part.container = message.getContainer();
        part.retailPrice = message.getRetailPrice();
        part.comment = message.getComment();
        return part;
    }

    static Proto.Supplier message(Supplier supplier) {
        Proto.Supplier.Builder message = Proto.Supplier.newBuilder();
        message.setSupplierKey(supplier.supplierKey);
        message.setName(supplier.name);
        message.setAddress(supplier.address);
        message.setNationKey(supplier.nationKey);
        message.setPhone(supplier.phone);
        message.setAcctbal(supplier.acctbal);
        message.setComment(supplier.comment);
        return message.build();
    }

    static Supplier plain(Proto.Supplier message) {
        Supplier supplier = new Supplier();
        supplier.supplierKey = message.getSupplierKey();
        supplier.name = message.getName();
        supplier.address = message.getAddress();
        supplier.nationKey = message.getNationKey();
        supplier.phone = message.getPhone();
        supplier.acctbal = message.getAcctbal();
        supplier.comment = message.getComment();
        return supplier;
    }

    static Proto.LineItem message(LineItem item) {
        Proto.LineItem.Builder message = Proto.LineItem.newBuilder();
        message.setOrderKey(item.orderKey);
        message.setLineNumber(item.lineNumber);
        message.setQuantity(item.quantity);
        message.setExtendedPrice(item.extendedPrice);
        message.setDiscount(item.discount);
        message.setTax(item.tax);
        message.setReturnFlag(item.returnFlag);
        message.setLineStatus(item.lineStatus);
        message.setShipDate(item.shipDate);
        message.setCommitDate(item.commitDate);
        message.setReceiptDate(item.receiptDate);
        message.setShipInstruct(item.shipInstruct);
        message.setShipMode(item.shipMode);
        message.setComment(item.comment);
        message.setSupplier(message(item.supplier));
        message.setPart(message(item.part));
        return message.build();
    }

    static LineItem plain(Proto.LineItem message) {
        LineItem item = new LineItem();
        item.orderKey = message.getOrderKey();
        item.lineNumber = message.getLineNumber();
        item.quantity = message.getQuantity();
        item.extendedPrice = message.getExtendedPrice();
        item.discount = message.getDiscount();
        item.tax = message.getTax();
        item.returnFlag = message.getReturnFlag();
        item.lineStatus = message.getLineStatus();
        item.shipDate = message.getShipDate();
        item.commitDate = message.getCommitDate();
        item.receiptDate = message.getReceiptDate();
        item.shipInstruct = message.getShipInstruct();
        item.shipMode = message.getShipMode();
        item.comment = message.getComment();
        item.supplier = plain(message.getSupplier());
        item.part = plain(message.getPart());
        return item;
    }

    static Proto.Order message(Order order) {
        Proto.Order.Builder message = Proto.Order.newBuilder();
        message.setOrderKey(order.orderKey);
        message.setCustKey(order.custKey);
        message.setOrderStatus(order.orderStatus);
        message.setTotalPrice(order.totalPrice);
        message.setOrderDate(order.orderDate);
        message.setOrderPriority(order.orderPriority);
        message.setClerk(order.clerk);
        message.setShipPriority(order.shipPriority);
        message.setComment(order.comment);
        for (LineItem item : order.lineItems) {
            message.addLineItems(message(item));
        }
        return message.build();
    }

    static Order plain(Proto.Order message) {
        Order order = new Order();
        order.orderKey = message.getOrderKey();
        order.custKey = message.getCustKey();
        order.orderStatus = message.getOrderStatus();
        order.totalPrice = message.getTotalPrice();
        order.orderDate = message.getOrderDate();
        order.orderPriority = message.getOrderPriority();
        order.clerk = message.getClerk();
        order.shipPriority = message.getShipPriority();
        order.comment = message.getComment();
        order.lineItems = new ArrayList<>(message.getLineItemsCount());
        for (Proto.LineItem item : message.getLineItemsList()) {
            order.lineItems.add(plain(item));
        }
        return order;
    }

    static Proto.Customer message(Customer customer) {
        Proto.Customer.Builder message = Proto.Customer.newBuilder();
        message.setCustKey(customer.custKey);
        message.setName(customer.name);
        message.setAddress(customer.address);
        message.setNationKey(customer.nationKey);
        message.setPhone(customer.phone);
        message.setAcctbal(customer.acctbal);
        message.setMktSegment(customer.mktSegment);
        message.setComment(customer.comment);
        for (Order order : customer.orders) {
            message.addOrders(message(order));
        }
        return message.build();
    }

    static Customer plain(Proto.Customer message) {
        Customer customer = new Customer();
        customer.custKey = message.getCustKey();
        customer.name = message.getName();
        customer.address = message.getAddress();
        customer.nationKey = message.getNationKey();
        customer.phone = message.getPhone();
        customer.acctbal = message.getAcctbal();
        customer.mktSegment = message.getMktSegment();
        customer.comment = message.getComment();
        customer.orders = new ArrayList<>(message.getOrdersCount());
        for (Proto.Order order : message.getOrdersList()) {
            customer.orders.add(plain(order));
        }
        return customer;
    }

    static Proto.SparseVector message(SparseVector vector) {
        Proto.SparseVector.Builder message = Proto.SparseVector.newBuilder();
        for (Entry entry : vector.entries) {
            message.addEntries(message(entry.position, entry.value));
        }
        return message.build();
    }

    static Proto.Entry message(int position, double value) {
        return Proto.Entry.newBuilder().setPosition(position).setValue(value).build();
    }

    static SparseVector plain(Proto.SparseVector message) {
        SparseVector vector = new SparseVector(message.getEntriesCount());
        for (Proto.Entry entry : message.getEntriesList()) {
            vector.entries.add(new Entry(entry.getPosition(), entry.getValue()));
        }
        return vector;
    }
}
