package study;

import study.model.Plain;

/** An object that a program can read, whatever its form: Java's own, or a view of bytes. */
public interface Item {
    /** partKey, orderKey or custKey; 0 for a vector. */
    int key();

    /** The checksum over all fields. */
    long checksum();

    /** What objects are sorted by. */
    default long sortKey() {
        return key();
    }

    /** Whether all fields equal those of an object of the same form. */
    boolean same(Item other);

    /** The object as Java's own; itself, if it is one. */
    Plain plain();

    /** Whether this needs the bytes that it was opened from. */
    default boolean viewsBytes() {
        return false;
    }

    /** About how much of the heap this takes. Bytes that it is a view of don't count. */
    long heapBytes();
}
