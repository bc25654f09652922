package study.model;

import java.util.ArrayList;
import java.util.List;
import study.Checksum;
import study.Entries;
import study.Item;

/** A vector of which most numbers are 0: the others with their positions, which ascend. */
public final class SparseVector implements Plain, Entries {
    private static final long serialVersionUID = 1;

    public List<Entry> entries;

    public SparseVector() {
        this(0);
    }

    public SparseVector(int capacity) {
        entries = new ArrayList<>(capacity);
    }

    /** A copy of other entries. */
    public SparseVector(Entries other) {
        this(other.size());
        for (int i = 0; i < other.size(); i++) {
            entries.add(new Entry(other.position(i), other.value(i)));
        }
    }

    /** The checksum of a vector in any form. */
    public static long checksum(Entries entries) {
        int size = entries.size();
        long h = Checksum.add(0, size);
        for (int i = 0; i < size; i++) {
            h = Checksum.add(h, entries.position(i));
            h = Checksum.add(h, entries.value(i));
        }
        return h;
    }

    @Override
    public int size() {
        return entries.size();
    }

    @Override
    public int position(int index) {
        return entries.get(index).position;
    }

    @Override
    public double value(int index) {
        return entries.get(index).value;
    }

    @Override
    public int key() {
        return 0;
    }

    @Override
    public long checksum() {
        return checksum(this);
    }

    @Override
    public boolean same(Item other) {
        throw new UnsupportedOperationException("vectors are not sorted");
    }

    @Override
    public long heapBytes() {
        return 16 + Heap.of(entries) + 24L * entries.size();
    }

    @Override
    public void change() {
        throw new UnsupportedOperationException("vectors are not changed");
    }
}
