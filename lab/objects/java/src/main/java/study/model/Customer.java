package study.model;

import java.util.ArrayList;
import java.util.List;
import study.Checksum;
import study.Item;

/** A customer of TPC-H with all orders. */
public final class Customer implements Plain {
    private static final long serialVersionUID = 1;

    public int custKey;
    public String name;
    public String address;
    public int nationKey;
    public String phone;
    public double acctbal;
    public String mktSegment;
    public String comment;
    public List<Order> orders = new ArrayList<>();

    @Override
    public int key() {
        return custKey;
    }

    @Override
    public long checksum() {
        return checksum(0);
    }

    long checksum(long h) {
        h = Checksum.add(h, custKey);
        h = Checksum.add(h, name);
        h = Checksum.add(h, address);
        h = Checksum.add(h, nationKey);
        h = Checksum.add(h, phone);
        h = Checksum.add(h, acctbal);
        h = Checksum.add(h, mktSegment);
        h = Checksum.add(h, comment);
        h = Checksum.add(h, orders.size());
        for (Order order : orders) {
            h = order.checksum(h);
        }
        return h;
    }

    @Override
    public boolean same(Item other) {
        return same((Customer) other);
    }

    boolean same(Customer other) {
        return custKey == other.custKey
                && name.equals(other.name)
                && address.equals(other.address)
                && nationKey == other.nationKey
                && phone.equals(other.phone)
                && acctbal == other.acctbal
                && mktSegment.equals(other.mktSegment)
                && comment.equals(other.comment)
                && Lists.same(orders, other.orders, Order::same);
    }

    @Override
    public long heapBytes() {
        long bytes = 56;
        bytes += Heap.of(name);
        bytes += Heap.of(address);
        bytes += Heap.of(phone);
        bytes += Heap.of(mktSegment);
        bytes += Heap.of(comment);
        bytes += Heap.of(orders);
        for (Order order : orders) {
            bytes += order.heapBytes();
        }
        return bytes;
    }

    @Override
    public void change() {
        acctbal += 1.0;
    }

    /** Appends the order of the phase `grow`. */
    public void grow() {
        Order order = new Order();
        order.orderKey = -1;
        order.custKey = custKey;
        order.orderStatus = "O";
        order.totalPrice = 1.0;
        order.orderPriority = "5-LOW";
        order.clerk = "Clerk#000000001";
        order.comment = "grown";
        orders.add(order);
    }
}
