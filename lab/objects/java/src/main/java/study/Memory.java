package study;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Pages that are kept in memory, with the positions of their objects. */
public final class Memory implements PageSink {
    /** A page and which objects of it are meant. */
    public record Page(byte[] bytes, int[] positions) {}

    /** All of them, in order. */
    public final List<Page> pages = new ArrayList<>();

    @Override
    public void page(byte[] bytes, int length, int[] positions, long objectBytes) {
        byte[] page = bytes.length == length ? bytes : Arrays.copyOf(bytes, length);
        pages.add(new Page(page, positions));
    }

    /** The first objects of a stored file. */
    public static Memory of(StoredFile file, Index index, int count) throws IOException {
        Memory memory = new Memory();
        for (int i = 0; i < count; ) {
            byte[] page = new byte[index.pageBytes(i)];
            file.read(page, page.length, index.offset(i));
            int end = index.endOfPage(i, count);
            int[] positions = new int[end - i];
            for (int at = 0; at < positions.length; at++) {
                positions[at] = index.position(i + at);
            }
            memory.pages.add(new Page(page, positions));
            i = end;
        }
        return memory;
    }

    /** The same pages in arrays of their own. */
    public Memory copy() {
        Memory copy = new Memory();
        pages.forEach(page -> copy.pages.add(new Page(page.bytes.clone(), page.positions)));
        return copy;
    }

    /** The checksum of all objects as a set. */
    public long checksum(Implementation implementation) throws IOException {
        long sum = 0;
        for (Page page : pages) {
            for (int position : page.positions) {
                sum += implementation.open(page.bytes, position).checksum();
            }
        }
        return sum;
    }
}
