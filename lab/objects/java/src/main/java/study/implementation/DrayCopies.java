package study.implementation;

import dray.page.Memory;
import dray.page.VerifiedPage;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import study.PageSink;
import study.Pages;

/**
 * Copies objects from pages to pages: one memcpy each, as the specification of pages allows
 * (spec/page.md). Dray's library for Java has no such writer. The pages have no checksums.
 */
final class DrayCopies {
    static final int HEADER = 64;
    private static final int MAGIC = 0x50595244;
    private static final int LARGE = 2;

    private final PageSink sink;
    private byte[] bytes = new byte[Pages.BYTES];
    private int[] offsets = new int[64];
    private int count;
    private int end = HEADER;
    private long sequence;

    DrayCopies(PageSink sink) {
        this.sink = sink;
    }

    void add(VerifiedPage page, int slot) throws IOException {
        ByteBuffer from = page.bytes();
        int at = page.objectAt(slot);
        int extent = Memory.getInt(from, at);
        if (end + extent + 4 * (count + 1) > Pages.BYTES) {
            finish();
            int needed = Pages.padded((long) HEADER + extent + 4);
            if (bytes.length != needed) {
                bytes = new byte[needed];
            }
        }
        from.get(at, bytes, end, extent);
        if (count == offsets.length) {
            offsets = Arrays.copyOf(offsets, 2 * count);
        }
        offsets[count++] = end;
        end += extent;
        if (bytes.length > Pages.BYTES) {
            finish();
        }
    }

    void finish() throws IOException {
        if (count == 0) {
            return;
        }
        ByteBuffer header = Pages.view(bytes);
        header.putInt(MAGIC).putShort((short) 0);
        header.putShort((short) (bytes.length > Pages.BYTES ? LARGE : 0)).putLong(sequence++);
        header.putInt(count).putInt(bytes.length).putInt(end);
        int[] slots = new int[count];
        for (int slot = 0; slot < count; slot++) {
            header.putInt(bytes.length - 4 * (slot + 1), offsets[slot]);
            slots[slot] = slot;
        }
        sink.page(bytes, bytes.length, slots, end - HEADER);
        bytes = new byte[Pages.BYTES];
        count = 0;
        end = HEADER;
    }
}
