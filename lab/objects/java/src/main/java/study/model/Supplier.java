package study.model;

import java.io.Serializable;
import study.Checksum;

/** A supplier of TPC-H, which is inside a line item. */
public final class Supplier implements Serializable {
    private static final long serialVersionUID = 1;

    public int supplierKey;
    public String name;
    public String address;
    public int nationKey;
    public String phone;
    public double acctbal;
    public String comment;

    long checksum(long h) {
        h = Checksum.add(h, supplierKey);
        h = Checksum.add(h, name);
        h = Checksum.add(h, address);
        h = Checksum.add(h, nationKey);
        h = Checksum.add(h, phone);
        h = Checksum.add(h, acctbal);
        h = Checksum.add(h, comment);
        return h;
    }

    boolean same(Supplier other) {
        return supplierKey == other.supplierKey
                && name.equals(other.name)
                && address.equals(other.address)
                && nationKey == other.nationKey
                && phone.equals(other.phone)
                && acctbal == other.acctbal
                && comment.equals(other.comment);
    }

    long heapBytes() {
        long bytes = 48;
        bytes += Heap.of(name);
        bytes += Heap.of(address);
        bytes += Heap.of(phone);
        bytes += Heap.of(comment);
        return bytes;
    }
}
