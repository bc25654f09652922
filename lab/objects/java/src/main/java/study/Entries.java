package study;

/** What a program reads of a sparse vector: positions in ascending order, and their values. */
public interface Entries {
    int size();

    int position(int index);

    double value(int index);
}
