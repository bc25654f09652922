package dray.page;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * What is left of a page file that was cut off ({@code spec/page-file.md} section 7): the whole
 * pages at its beginning, up to the first that is damaged or cut off. They may be all, or fewer
 * than the file once had: nothing in a file without its end tells.
 */
public final class Salvage {
    private final Layout layout;
    private final List<VerifiedPage> pages = new ArrayList<>();
    private final PageException reason;
    /** A part of the file, and where it begins. */
    private ByteBuffer window = ByteBuffer.allocate(0);
    private long windowAt;

    private Salvage(Source file) {
        FileHeader header = FileHeader.decode(file);
        layout = Layout.of(header.schema());
        PageException stopped = null;
        long at = header.pagesAt();
        while (stopped == null) {
            try {
                VerifiedPage page = next(file, at, header.pageBytes());
                pages.add(page);
                at += page.bytes().limit();
            } catch (PageException refused) {
                stopped = refused.about("page " + pages.size());
            }
        }
        reason = stopped;
    }

    private VerifiedPage next(Source file, long at, int pageBytes) {
        long left = file.size - at;
        if (left < PageHeader.BYTES) {
            throw new PageException(Refusal.CUT, "the file ends before it");
        }
        PageHeader header = PageHeader.decode(bytes(file, at, PageHeader.BYTES));
        int size = header.pageBytes();
        if (header.sequence() != pages.size() || !header.hasChecksum() || size % pageBytes != 0
                || !header.large() && size != pageBytes) {
            throw new PageException(Refusal.PAGE, "it is no page of this file: " + header);
        }
        if (left < size) {
            throw new PageException(Refusal.CUT, "the file ends within it");
        }
        return VerifiedPage.verify(layout, bytes(file, at, size));
    }

    /** Bytes of the file, of which a large part is mapped at once. */
    private ByteBuffer bytes(Source file, long at, int size) {
        if (at + size > windowAt + window.limit()) {
            windowAt = at;
            int part = Math.max(size, file.partBytes);
            window = file.slice(at, (int) Math.min(file.size - at, part));
        }
        return Memory.slice(window, (int) (at - windowAt), size);
    }

    /**
     * Reads the pages of a file, one after the other.
     *
     * @throws PageException when its header or schema is damaged: then nothing can be read
     */
    public static Salvage open(Path path) {
        return Source.read(path, Salvage::new);
    }

    /** Reads the pages of a file in memory. */
    public static Salvage of(ByteBuffer file) {
        return of(Source.of(file));
    }

    static Salvage of(Source file) {
        return new Salvage(file);
    }

    public Layout layout() {
        return layout;
    }

    /** The whole pages. */
    public List<VerifiedPage> pages() {
        return List.copyOf(pages);
    }

    /** The number of objects on them. */
    public long size() {
        return pages.stream().mapToLong(VerifiedPage::size).sum();
    }

    /** Why nothing after them was read. */
    public PageException reason() {
        return reason;
    }
}
