package study;

import java.io.IOException;

/** Puts objects into pages. */
public interface PageWriter {
    /** Adds an object of the implementation, or one of Java's own. */
    void add(Item item) throws IOException;

    /** Hands over the last page, unless it is empty. */
    void finish() throws IOException;
}
