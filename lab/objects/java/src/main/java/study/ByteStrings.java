package study;

import java.io.IOException;
import java.util.Arrays;
import study.model.Plain;

/**
 * An implementation whose objects are separate byte strings. They share the form of pages:
 *
 * <pre>
 * u32 page_bytes, u32 objects; then for each object, at a multiple of 8: u32 length, u32 0, bytes
 * </pre>
 */
public abstract class ByteStrings extends Implementation {
    private static final int HEADER = 8;

    /** Writes one of Java's own objects behind what `out` has. */
    protected abstract void encode(Plain plain, Sink out) throws IOException;

    /** Makes the object readable that some bytes hold. */
    protected abstract Item open(byte[] bytes, int offset, int length) throws IOException;

    /** Writes an object of the implementation. */
    protected void write(Item item, Sink out) throws IOException {
        encode((Plain) item, out);
    }

    private void writeAny(Item item, Sink out) throws IOException {
        if (item instanceof Plain plain) {
            encode(plain, out);
        } else {
            write(item, out);
        }
    }

    @Override
    public Item open(byte[] page, int position) throws IOException {
        return open(page, position + HEADER, Pages.view(page).getInt(position));
    }

    @Override
    public int pageBytes(byte[] header) {
        return Pages.view(header).getInt(0);
    }

    @Override
    public int[] positions(byte[] page) {
        var view = Pages.view(page);
        int[] positions = new int[view.getInt(4)];
        int at = HEADER;
        for (int i = 0; i < positions.length; i++) {
            positions[i] = at;
            at = aligned(at + HEADER + view.getInt(at));
        }
        return positions;
    }

    @Override
    public void encodeMessage(Item vector, Sink out) throws IOException {
        writeAny(vector, out);
    }

    @Override
    public Item openMessage(byte[] bytes) throws IOException {
        return open(bytes, 0, bytes.length);
    }

    @Override
    public PageWriter writer(PageSink sink) {
        return new Writer(sink);
    }

    private static int aligned(int at) {
        return (at + 7) & ~7;
    }

    /** Encodes each object behind the one before, and moves it to a new page if it is too long. */
    private final class Writer implements PageWriter {
        private final PageSink sink;
        /** The page that is filled, if one was begun. */
        private Sink page;
        private int[] positions = new int[16];
        private int count;
        private long objectBytes;

        Writer(PageSink sink) {
            this.sink = sink;
        }

        @Override
        public void add(Item item) throws IOException {
            if (page == null) {
                page = new Sink(Pages.BYTES);
                page.at = HEADER;
            }
            int begin = page.at;
            page.reserve(HEADER);
            page.at += HEADER;
            writeAny(item, page);
            int length = page.at - begin - HEADER;
            if (aligned(page.at) > Pages.BYTES && count > 0) {
                begin = turn(begin);
            }
            page.at = aligned(page.at);
            page.reserve(0);
            Arrays.fill(page.bytes, begin + HEADER + length, page.at, (byte) 0);
            Pages.view(page.bytes).putInt(begin, length).putInt(begin + 4, 0);
            if (count == positions.length) {
                positions = Arrays.copyOf(positions, 2 * count);
            }
            positions[count++] = begin;
            objectBytes += length;
            if (page.at > Pages.BYTES) {
                turn(page.at);
            }
        }

        /** Hands over the page up to `end`, and moves what is behind it to the next one. */
        private int turn(int end) throws IOException {
            Sink next = new Sink(Math.max(Pages.BYTES, HEADER + page.at - end));
            next.at = HEADER;
            next.write(page.bytes, end, page.at - end);
            page.at = end;
            handOver();
            page = next;
            return HEADER;
        }

        private void handOver() throws IOException {
            int length = Pages.padded(page.at);
            int used = page.at;
            page.reserve(length - used);
            Arrays.fill(page.bytes, used, length, (byte) 0);
            Pages.view(page.bytes).putInt(0, length).putInt(4, count);
            sink.page(page.bytes, length, Arrays.copyOf(positions, count), objectBytes);
            count = 0;
            objectBytes = 0;
        }

        @Override
        public void finish() throws IOException {
            if (count > 0) {
                handOver();
            }
            page = null;
        }
    }
}
