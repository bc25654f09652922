package dray.page;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Builds pages: each object is written straight into its page ({@code spec/page.md} section 11).
 * Generated code has one for its schema.
 *
 * <p>Strings and lists are written in the order of the schema, all that is within one before the
 * next; values of a fixed width in any order. A list's number of items is given before its items.
 * What was not written is missing if it may be, and otherwise 0 or empty.
 */
public abstract class PageBuilder<W extends ViewWriter> {
    /** The usual size of pages. */
    public static final int PAGE_BYTES = 256 << 10;

    private final Layout layout;
    private final int pageBytes;
    private final W writer;
    private final BuildTarget target;
    private final List<VerifiedPage> pages = new ArrayList<>();
    private long sequence;
    private int objects;
    private int objectsEnd;
    private boolean isOpen;

    protected PageBuilder(Layout layout, int pageBytes, W writer) {
        if (!PageHeader.isStandardSize(pageBytes)) {
            throw new IllegalArgumentException("no page has " + pageBytes + " bytes");
        }
        this.layout = layout;
        this.pageBytes = pageBytes;
        this.writer = writer;
        target = new BuildTarget(layout, this);
    }

    /** Begins an object. The same writer is moved to each. */
    public final W begin() {
        if (isOpen) {
            throw Target.misuse("the last object was neither ended nor cancelled");
        }
        if (target.page == null) {
            newPage(pageBytes);
        }
        isOpen = true;
        target.object = objectsEnd;
        target.cursor = 0;
        ensure(layout.record.end);
        target.begin(writer);
        return writer;
    }

    /** Ends the object. */
    public final void end() {
        needOpen();
        int size = target.end();
        ensure(size);
        Memory.putInt(target.page, target.object, size);
        int limit = target.page.limit();
        isOpen = false;
        target.close();
        objectsEnd = target.object + size;
        objects++;
        if (limit > pageBytes) {
            long needed = Memory.pad(
                    (long) objectsEnd + PageHeader.SLOT_BYTES, (long) pageBytes);
            target.page = Memory.slice(target.page, 0, (int) needed);
        }
        Memory.putInt(target.page, target.page.limit() - PageHeader.SLOT_BYTES * objects,
                target.object);
        if (limit > pageBytes) {
            finishPage();
        }
    }

    /** Drops the object that was begun. */
    public final void cancel() {
        needOpen();
        isOpen = false;
        target.close();
        if (target.page.limit() > pageBytes) {
            target.page = null;
            return;
        }
        Memory.zero(target.page, objectsEnd, target.object + target.cursor);
    }

    private void needOpen() {
        if (!isOpen) {
            throw Target.misuse("no object was begun");
        }
    }

    /** The pages that are full, and the last one. They are handed out once. */
    public final List<VerifiedPage> finish() {
        if (isOpen) {
            throw Target.misuse("the last object was neither ended nor cancelled");
        }
        if (objects > 0) {
            finishPage();
        }
        List<VerifiedPage> finished = List.copyOf(pages);
        pages.clear();
        return finished;
    }

    /** The pages that are full so far. They are handed out once. */
    public final List<VerifiedPage> fullPages() {
        List<VerifiedPage> full = List.copyOf(pages);
        pages.clear();
        return full;
    }

    private void newPage(int bytes) {
        target.page = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
        objects = 0;
        objectsEnd = PageHeader.BYTES;
    }

    private void finishPage() {
        ByteBuffer page = target.page;
        int flags = PageHeader.FLAG_CHECKSUM
                | (page.limit() > pageBytes ? PageHeader.FLAG_LARGE : 0);
        Memory.putInt(page, 0, PageHeader.MAGIC);
        Memory.putShort(page, PageHeader.FLAGS_AT, flags);
        Memory.putLong(page, PageHeader.SEQUENCE_AT, sequence++);
        Memory.putInt(page, PageHeader.OBJECTS_AT, objects);
        Memory.putInt(page, PageHeader.PAGE_BYTES_AT, page.limit());
        Memory.putInt(page, PageHeader.OBJECTS_END_AT, objectsEnd);
        Memory.putInt(page, PageHeader.CHECKSUM_AT, PageHeader.checksumOf(page));
        pages.add(new VerifiedPage(layout, page));
        target.page = null;
        objects = 0;
    }

    /** Makes room for the object up to an offset. It moves to another page if it must. */
    final void ensure(long end) {
        long slots = (long) PageHeader.SLOT_BYTES * (objects + 1);
        long needed = target.object + Memory.pad(end, Record.ALIGNMENT) + slots;
        if (needed <= target.page.limit()) {
            return;
        }
        long alone = PageHeader.BYTES + Memory.pad(end, Record.ALIGNMENT) + PageHeader.SLOT_BYTES;
        long most = Record.BYTES_END - 1 & -(long) pageBytes;
        if (alone > most) {
            throw new PageException(Refusal.LIMIT, "an object of " + end
                    + " bytes or more does not fit a page of " + most);
        }
        ByteBuffer old = target.page;
        int from = target.object;
        // A large page grows by doubling, and is cut when the object ends.
        long bytes = Memory.pad(alone, (long) pageBytes);
        if (objects == 0) {
            bytes = Math.min(Math.max(bytes, 2L * old.limit()), most);
        }
        int written = target.cursor;
        ByteBuffer object = Memory.slice(old, from, written);
        if (objects > 0) {
            var copy = ByteBuffer.allocate(written);
            copy.put(object).flip();
            object = copy;
            Memory.zero(old, from, from + written);
            finishPage();
        }
        newPage((int) bytes);
        target.page.put(PageHeader.BYTES, object, 0, written);
        target.object = PageHeader.BYTES;
    }
}
