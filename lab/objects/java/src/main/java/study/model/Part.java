package study.model;

import study.Checksum;
import study.Item;

/** A part of TPC-H. */
public final class Part implements Plain {
    private static final long serialVersionUID = 1;

    public int partKey;
    public String name;
    public String mfgr;
    public String brand;
    public String type;
    public int size;
    public String container;
    public double retailPrice;
    public String comment;

    @Override
    public int key() {
        return partKey;
    }

    @Override
    public long checksum() {
        return checksum(0);
    }

    long checksum(long h) {
        h = Checksum.add(h, partKey);
        h = Checksum.add(h, name);
        h = Checksum.add(h, mfgr);
        h = Checksum.add(h, brand);
        h = Checksum.add(h, type);
        h = Checksum.add(h, size);
        h = Checksum.add(h, container);
        h = Checksum.add(h, retailPrice);
        h = Checksum.add(h, comment);
        return h;
    }

    @Override
    public boolean same(Item other) {
        return same((Part) other);
    }

    boolean same(Part other) {
        return partKey == other.partKey
                && name.equals(other.name)
                && mfgr.equals(other.mfgr)
                && brand.equals(other.brand)
                && type.equals(other.type)
                && size == other.size
                && container.equals(other.container)
                && retailPrice == other.retailPrice
                && comment.equals(other.comment);
    }

    @Override
    public long heapBytes() {
        long bytes = 56;
        bytes += Heap.of(name);
        bytes += Heap.of(mfgr);
        bytes += Heap.of(brand);
        bytes += Heap.of(type);
        bytes += Heap.of(container);
        bytes += Heap.of(comment);
        return bytes;
    }

    @Override
    public void change() {
        retailPrice += 1.0;
    }
}
