package study.model;

import java.io.Serializable;

/** One number of a sparse vector. */
public final class Entry implements Serializable {
    private static final long serialVersionUID = 1;

    public int position;
    public double value;

    public Entry() {}

    public Entry(int position, double value) {
        this.position = position;
        this.value = value;
    }
}
