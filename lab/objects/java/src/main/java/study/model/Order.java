package study.model;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import study.Checksum;

/** An order of TPC-H with its line items, which is inside a customer. */
public final class Order implements Serializable {
    private static final long serialVersionUID = 1;

    public int orderKey;
    public int custKey;
    public String orderStatus;
    public double totalPrice;
    public int orderDate;
    public String orderPriority;
    public String clerk;
    public int shipPriority;
    public String comment;
    public List<LineItem> lineItems = new ArrayList<>();

    long checksum(long h) {
        h = Checksum.add(h, orderKey);
        h = Checksum.add(h, custKey);
        h = Checksum.add(h, orderStatus);
        h = Checksum.add(h, totalPrice);
        h = Checksum.add(h, orderDate);
        h = Checksum.add(h, orderPriority);
        h = Checksum.add(h, clerk);
        h = Checksum.add(h, shipPriority);
        h = Checksum.add(h, comment);
        h = Checksum.add(h, lineItems.size());
        for (LineItem item : lineItems) {
            h = item.checksum(h);
        }
        return h;
    }

    boolean same(Order other) {
        return orderKey == other.orderKey
                && custKey == other.custKey
                && orderStatus.equals(other.orderStatus)
                && totalPrice == other.totalPrice
                && orderDate == other.orderDate
                && orderPriority.equals(other.orderPriority)
                && clerk.equals(other.clerk)
                && shipPriority == other.shipPriority
                && comment.equals(other.comment)
                && Lists.same(lineItems, other.lineItems, LineItem::same);
    }

    long heapBytes() {
        long bytes = 56;
        bytes += Heap.of(orderStatus);
        bytes += Heap.of(orderPriority);
        bytes += Heap.of(clerk);
        bytes += Heap.of(comment);
        bytes += Heap.of(lineItems);
        for (LineItem item : lineItems) {
            bytes += item.heapBytes();
        }
        return bytes;
    }
}
