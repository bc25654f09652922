package dray.page;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;

/** The pages of a file, in buffers of whole pages: a buffer shows less than 2 GiB. */
final class Windows {
    private final PageIndex index;
    private final int[] firstPages;
    private final ByteBuffer[] buffers;

    private Windows(PageIndex index, int[] firstPages, ByteBuffer[] buffers) {
        this.index = index;
        this.firstPages = firstPages;
        this.buffers = buffers;
    }

    static Windows of(Source file, long pagesAt, PageIndex index, int pages) {
        var firstPages = new ArrayList<Integer>();
        var buffers = new ArrayList<ByteBuffer>();
        int first = 0;
        for (int page = 0; page < pages; page++) {
            long from = index.end(first - 1);
            boolean isLast = page + 1 == pages || index.end(page + 1) - from > file.partBytes;
            if (isLast) {
                firstPages.add(first);
                // A single page is below 2^31 bytes.
                buffers.add(file.slice(pagesAt + from, (int) (index.end(page) - from)));
                first = page + 1;
            }
        }
        return new Windows(index, firstPages.stream().mapToInt(i -> i).toArray(),
                buffers.toArray(ByteBuffer[]::new));
    }

    /** The bytes of a page. */
    ByteBuffer page(int page) {
        int found = Arrays.binarySearch(firstPages, page);
        int window = found >= 0 ? found : -found - 2;
        long from = index.end(page - 1) - index.end(firstPages[window] - 1);
        return Memory.slice(buffers[window], (int) from,
                (int) (index.end(page) - index.end(page - 1)));
    }
}
