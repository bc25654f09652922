package study;

import java.io.IOException;

/** Receives full pages. */
public interface PageSink {
    /**
     * One page.
     *
     * @param bytes the page is their first `length`; the sink may keep them
     * @param positions of the page's objects, in the order in which they were added
     * @param objectBytes what the objects take, without free space
     */
    void page(byte[] bytes, int length, int[] positions, long objectBytes) throws IOException;
}
