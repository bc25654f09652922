package study.model;

import study.Checksum;
import study.Item;
import study.SortKey;

/** A line item of TPC-H with its supplier and its part. */
public final class LineItem implements Plain {
    private static final long serialVersionUID = 1;

    public int orderKey;
    public int lineNumber;
    public double quantity;
    public double extendedPrice;
    public double discount;
    public double tax;
    public String returnFlag;
    public String lineStatus;
    public int shipDate;
    public int commitDate;
    public int receiptDate;
    public String shipInstruct;
    public String shipMode;
    public String comment;
    public Supplier supplier;
    public Part part;

    @Override
    public int key() {
        return orderKey;
    }

    @Override
    public long checksum() {
        return checksum(0);
    }

    long checksum(long h) {
        h = Checksum.add(h, orderKey);
        h = Checksum.add(h, lineNumber);
        h = Checksum.add(h, quantity);
        h = Checksum.add(h, extendedPrice);
        h = Checksum.add(h, discount);
        h = Checksum.add(h, tax);
        h = Checksum.add(h, returnFlag);
        h = Checksum.add(h, lineStatus);
        h = Checksum.add(h, shipDate);
        h = Checksum.add(h, commitDate);
        h = Checksum.add(h, receiptDate);
        h = Checksum.add(h, shipInstruct);
        h = Checksum.add(h, shipMode);
        h = Checksum.add(h, comment);
        h = supplier.checksum(h);
        h = part.checksum(h);
        return h;
    }

    @Override
    public long sortKey() {
        return SortKey.of(orderKey, lineNumber);
    }

    @Override
    public boolean same(Item other) {
        return same((LineItem) other);
    }

    boolean same(LineItem other) {
        return orderKey == other.orderKey
                && lineNumber == other.lineNumber
                && quantity == other.quantity
                && extendedPrice == other.extendedPrice
                && discount == other.discount
                && tax == other.tax
                && returnFlag.equals(other.returnFlag)
                && lineStatus.equals(other.lineStatus)
                && shipDate == other.shipDate
                && commitDate == other.commitDate
                && receiptDate == other.receiptDate
                && shipInstruct.equals(other.shipInstruct)
                && shipMode.equals(other.shipMode)
                && comment.equals(other.comment)
                && supplier.same(other.supplier)
                && part.same(other.part);
    }

    @Override
    public long heapBytes() {
        long bytes = 96;
        bytes += Heap.of(returnFlag);
        bytes += Heap.of(lineStatus);
        bytes += Heap.of(shipInstruct);
        bytes += Heap.of(shipMode);
        bytes += Heap.of(comment);
        bytes += supplier.heapBytes();
        bytes += part.heapBytes();
        return bytes;
    }

    @Override
    public void change() {
        extendedPrice += 1.0;
    }
}
