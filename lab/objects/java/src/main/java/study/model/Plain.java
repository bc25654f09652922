package study.model;

import java.io.Serializable;
import study.Item;

/** One of Java's own objects: a class with fields, strings and lists. */
public interface Plain extends Item, Serializable {
    /** Adds 1.0 to retailPrice, extendedPrice or acctbal, as the phase `mutate` wants. */
    void change();

    @Override
    default Plain plain() {
        return this;
    }
}
