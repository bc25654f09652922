package study;

import study.model.Plain;
import study.model.SparseVector;

/** A vector whose entries are read where they are. */
public abstract class VectorView implements Item, Entries {
    @Override
    public int key() {
        return 0;
    }

    @Override
    public long checksum() {
        return SparseVector.checksum(this);
    }

    @Override
    public boolean same(Item other) {
        throw new UnsupportedOperationException("vectors are not sorted");
    }

    @Override
    public boolean viewsBytes() {
        return true;
    }

    @Override
    public Plain plain() {
        return new SparseVector(this);
    }

    @Override
    public long heapBytes() {
        return 64;
    }
}
