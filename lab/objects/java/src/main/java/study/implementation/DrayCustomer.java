package study.implementation;

import dray.page.PageBuilder;
import dray.page.PageException;
import dray.page.Utf8;
import dray.page.VerifiedPage;
import java.io.IOException;
import java.util.ArrayList;
import study.Checksum;
import study.Item;
import study.PageSink;
import study.dray.customer.Customer;
import study.dray.customer.CustomerBuilder;
import study.dray.customer.CustomerEditor;
import study.dray.customer.CustomerPage;
import study.dray.customer.LineItemsItem;
import study.dray.customer.OrdersItem;
import study.dray.customer.Part;
import study.dray.customer.Supplier;
import study.model.Plain;

/** Customers in Dray's pages. */
final class DrayCustomer extends DrayPages {
    DrayCustomer() {
        super(CustomerPage.LAYOUT);
    }

    @Override
    Builder builder(int pageBytes) {
        CustomerBuilder pages = new CustomerBuilder(pageBytes);
        return new Builder() {
            @Override
            public PageBuilder<?> pages() {
                return pages;
            }

            @Override
            public void add(Plain plain) {
                write(pages.begin(), (study.model.Customer) plain);
                pages.end();
            }
        };
    }

    @Override
    Item view(VerifiedPage page, int slot) {
        return new Found(page, slot, new CustomerPage(page).get(slot));
    }

    /** Edits a copy of the page, which is what Dray offers. */
    @Override
    public void mutatePage(byte[] bytes, int[] slots, PageSink sink) throws IOException {
        VerifiedPage page = trusted(bytes);
        CustomerEditor editor = new CustomerEditor(page);
        CustomerPage objects = new CustomerPage(page);
        Customer customer = new Customer();
        for (int slot : slots) {
            double before = objects.get(slot, customer).acctbal();
            editor.object(slot).acctbal(before + 1.0);
        }
        handOver(editor.page(), slots, sink);
    }

    /** Edits a copy of the page, or builds it anew if it has not enough room. */
    @Override
    public void growPage(byte[] bytes, int[] slots, PageSink sink) throws IOException {
        VerifiedPage page = trusted(bytes);
        CustomerEditor editor = new CustomerEditor(page);
        CustomerPage objects = new CustomerPage(page);
        Customer customer = new Customer();
        try {
            for (int slot : slots) {
                objects.get(slot, customer);
                int orders = customer.orders().size();
                Customer.Writer to = editor.object(slot);
                to.ordersResize(orders + 1);
                to.orders().get(orders).orderKey(-1).custKey(customer.custKey()).orderStatus("O")
                        .totalPrice(1.0).orderPriority("5-LOW").clerk("Clerk#000000001")
                        .comment("grown");
            }
        } catch (PageException full) {
            super.growPage(bytes, slots, sink);
            return;
        }
        editor.compact();
        handOver(editor.page(), slots, sink);
    }

    private record Found(VerifiedPage page, int slot, Customer customer) implements View {
        @Override
        public int key() {
            return customer.custKey();
        }

        @Override
        public long checksum() {
            return add(0, customer);
        }

        @Override
        public Plain plain() {
            return copy(customer);
        }
    }

    private static long add(long h, Customer customer) {
        h = Checksum.add(h, customer.custKey());
        h = add(h, customer.name());
        h = add(h, customer.address());
        h = Checksum.add(h, customer.nationKey());
        h = add(h, customer.phone());
        h = Checksum.add(h, customer.acctbal());
        h = add(h, customer.mktSegment());
        h = add(h, customer.comment());
        OrdersItem.List orders = customer.orders();
        h = Checksum.add(h, orders.size());
        OrdersItem order = new OrdersItem();
        for (int i = 0; i < orders.size(); i++) {
            h = add(h, orders.get(i, order));
        }
        return h;
    }

    private static long add(long h, OrdersItem order) {
        h = Checksum.add(h, order.orderKey());
        h = Checksum.add(h, order.custKey());
        h = add(h, order.orderStatus());
        h = Checksum.add(h, order.totalPrice());
        h = Checksum.add(h, order.orderDate());
        h = add(h, order.orderPriority());
        h = add(h, order.clerk());
        h = Checksum.add(h, order.shipPriority());
        h = add(h, order.comment());
        LineItemsItem.List lineItems = order.lineItems();
        h = Checksum.add(h, lineItems.size());
        LineItemsItem item = new LineItemsItem();
        for (int i = 0; i < lineItems.size(); i++) {
            h = add(h, lineItems.get(i, item));
        }
        return h;
    }

    private static long add(long h, LineItemsItem item) {
        h = Checksum.add(h, item.orderKey());
        h = Checksum.add(h, item.lineNumber());
        h = Checksum.add(h, item.quantity());
        h = Checksum.add(h, item.extendedPrice());
        h = Checksum.add(h, item.discount());
        h = Checksum.add(h, item.tax());
        h = add(h, item.returnFlag());
        h = add(h, item.lineStatus());
        h = Checksum.add(h, item.shipDate());
        h = Checksum.add(h, item.commitDate());
        h = Checksum.add(h, item.receiptDate());
        h = add(h, item.shipInstruct());
        h = add(h, item.shipMode());
        h = add(h, item.comment());
        h = add(h, item.supplier());
        h = add(h, item.part());
        return h;
    }

    private static long add(long h, Supplier supplier) {
        h = Checksum.add(h, supplier.supplierKey());
        h = add(h, supplier.name());
        h = add(h, supplier.address());
        h = Checksum.add(h, supplier.nationKey());
        h = add(h, supplier.phone());
        h = Checksum.add(h, supplier.acctbal());
        h = add(h, supplier.comment());
        return h;
    }

    private static long add(long h, Part part) {
        h = Checksum.add(h, part.partKey());
        h = add(h, part.name());
        h = add(h, part.mfgr());
        h = add(h, part.brand());
        h = add(h, part.type());
        h = Checksum.add(h, part.size());
        h = add(h, part.container());
        h = Checksum.add(h, part.retailPrice());
        h = add(h, part.comment());
        return h;
    }

    private static long add(long h, Utf8 text) {
        return Checksum.add(h, text.buffer(), 0, text.length());
    }

    private static study.model.Customer copy(Customer customer) {
        var plain = new study.model.Customer();
        plain.custKey = customer.custKey();
        plain.name = customer.name().toString();
        plain.address = customer.address().toString();
        plain.nationKey = customer.nationKey();
        plain.phone = customer.phone().toString();
        plain.acctbal = customer.acctbal();
        plain.mktSegment = customer.mktSegment().toString();
        plain.comment = customer.comment().toString();
        OrdersItem.List orders = customer.orders();
        plain.orders = new ArrayList<>(orders.size());
        OrdersItem order = new OrdersItem();
        for (int i = 0; i < orders.size(); i++) {
            plain.orders.add(copy(orders.get(i, order)));
        }
        return plain;
    }

    private static study.model.Order copy(OrdersItem order) {
        var plain = new study.model.Order();
        plain.orderKey = order.orderKey();
        plain.custKey = order.custKey();
        plain.orderStatus = order.orderStatus().toString();
        plain.totalPrice = order.totalPrice();
        plain.orderDate = order.orderDate();
        plain.orderPriority = order.orderPriority().toString();
        plain.clerk = order.clerk().toString();
        plain.shipPriority = order.shipPriority();
        plain.comment = order.comment().toString();
        LineItemsItem.List lineItems = order.lineItems();
        plain.lineItems = new ArrayList<>(lineItems.size());
        LineItemsItem item = new LineItemsItem();
        for (int i = 0; i < lineItems.size(); i++) {
            plain.lineItems.add(copy(lineItems.get(i, item)));
        }
        return plain;
    }

    private static study.model.LineItem copy(LineItemsItem item) {
        var plain = new study.model.LineItem();
        plain.orderKey = item.orderKey();
        plain.lineNumber = item.lineNumber();
        plain.quantity = item.quantity();
        plain.extendedPrice = item.extendedPrice();
        plain.discount = item.discount();
        plain.tax = item.tax();
        plain.returnFlag = item.returnFlag().toString();
        plain.lineStatus = item.lineStatus().toString();
        plain.shipDate = item.shipDate();
        plain.commitDate = item.commitDate();
        plain.receiptDate = item.receiptDate();
        plain.shipInstruct = item.shipInstruct().toString();
        plain.shipMode = item.shipMode().toString();
        plain.comment = item.comment().toString();
        plain.supplier = copy(item.supplier());
        plain.part = copy(item.part());
        return plain;
    }

    private static study.model.Supplier copy(Supplier supplier) {
        var plain = new study.model.Supplier();
        plain.supplierKey = supplier.supplierKey();
        plain.name = supplier.name().toString();
        plain.address = supplier.address().toString();
        plain.nationKey = supplier.nationKey();
        plain.phone = supplier.phone().toString();
        plain.acctbal = supplier.acctbal();
        plain.comment = supplier.comment().toString();
        return plain;
    }

    private static study.model.Part copy(Part part) {
        var plain = new study.model.Part();
        plain.partKey = part.partKey();
        plain.name = part.name().toString();
        plain.mfgr = part.mfgr().toString();
        plain.brand = part.brand().toString();
        plain.type = part.type().toString();
        plain.size = part.size();
        plain.container = part.container().toString();
        plain.retailPrice = part.retailPrice();
        plain.comment = part.comment().toString();
        return plain;
    }

    private static void write(Customer.Writer to, study.model.Customer customer) {
        to.custKey(customer.custKey);
        to.name(customer.name);
        to.address(customer.address);
        to.nationKey(customer.nationKey);
        to.phone(customer.phone);
        to.acctbal(customer.acctbal);
        to.mktSegment(customer.mktSegment);
        to.comment(customer.comment);
        OrdersItem.ListWriter orders = to.orders(customer.orders.size());
        for (study.model.Order order : customer.orders) {
            write(orders.next(), order);
        }
    }

    private static void write(OrdersItem.Writer to, study.model.Order order) {
        to.orderKey(order.orderKey);
        to.custKey(order.custKey);
        to.orderStatus(order.orderStatus);
        to.totalPrice(order.totalPrice);
        to.orderDate(order.orderDate);
        to.orderPriority(order.orderPriority);
        to.clerk(order.clerk);
        to.shipPriority(order.shipPriority);
        to.comment(order.comment);
        LineItemsItem.ListWriter lineItems = to.lineItems(order.lineItems.size());
        for (study.model.LineItem item : order.lineItems) {
            write(lineItems.next(), item);
        }
    }

    private static void write(LineItemsItem.Writer to, study.model.LineItem item) {
        to.orderKey(item.orderKey);
        to.lineNumber(item.lineNumber);
        to.quantity(item.quantity);
        to.extendedPrice(item.extendedPrice);
        to.discount(item.discount);
        to.tax(item.tax);
        to.returnFlag(item.returnFlag);
        to.lineStatus(item.lineStatus);
        to.shipDate(item.shipDate);
        to.commitDate(item.commitDate);
        to.receiptDate(item.receiptDate);
        to.shipInstruct(item.shipInstruct);
        to.shipMode(item.shipMode);
        to.comment(item.comment);
        write(to.supplier(), item.supplier);
        write(to.part(), item.part);
    }

    private static void write(Supplier.Writer to, study.model.Supplier supplier) {
        to.supplierKey(supplier.supplierKey);
        to.name(supplier.name);
        to.address(supplier.address);
        to.nationKey(supplier.nationKey);
        to.phone(supplier.phone);
        to.acctbal(supplier.acctbal);
        to.comment(supplier.comment);
    }

    private static void write(Part.Writer to, study.model.Part part) {
        to.partKey(part.partKey);
        to.name(part.name);
        to.mfgr(part.mfgr);
        to.brand(part.brand);
        to.type(part.type);
        to.size(part.size);
        to.container(part.container);
        to.retailPrice(part.retailPrice);
        to.comment(part.comment);
    }
}
