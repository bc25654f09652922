package dray.page;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Changes objects of a page in place ({@code spec/page.md} section 11). Generated code has one for
 * its schema.
 *
 * <p>Values of a fixed width, and strings that keep their place, are written where they lie. An
 * object that needs another size is written anew behind the last one, and the page is compacted,
 * into other memory, when too much of it is dead. So a view that was taken before shows the old
 * value, or the new one, and never another object's. Nobody may read while a change is made.
 */
public abstract class PageEditor<W extends ViewWriter> {
    private final Layout layout;
    private final int standardBytes;
    private final Supplier<W> writer;
    private final Target.Version version = new Target.Version();
    private VerifiedPage page;
    private ByteBuffer buffer;
    /** For each object and list in it, the items that were moved or dropped. */
    final Map<Integer, Map<List<Integer>, MovedItems>> movedItems = new HashMap<>();
    /** The bytes of dead extents. */
    private int dead;
    private boolean large;
    private boolean moved;
    private boolean sealed;

    /**
     * Edits a copy of a page.
     *
     * @param standardBytes the standard size of the file's pages, which a large page does not say
     */
    protected PageEditor(VerifiedPage page, Layout layout, Supplier<W> writer, int standardBytes) {
        ObjectPage.check(page.layout(), layout);
        if (!PageHeader.isStandardSize(standardBytes)) {
            throw new IllegalArgumentException("no page has " + standardBytes + " bytes");
        }
        PageHeader header = page.header();
        this.layout = layout;
        this.writer = writer;
        large = header.large();
        this.standardBytes = large ? standardBytes : header.pageBytes();
        ByteBuffer copy = newPage(header.pageBytes());
        copy.put(0, page.bytes(), 0, header.pageBytes());
        use(copy);
        Memory.putInt(buffer, PageHeader.EDITION_AT, header.edition() + 1);
        moved = header.moved();
        dead = moved ? deadBytes() : 0;
        putFlags(0);
        Memory.putInt(buffer, PageHeader.CHECKSUM_AT, 0);
    }

    private static ByteBuffer newPage(int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private void use(ByteBuffer buffer) {
        this.buffer = buffer;
        page = new VerifiedPage(layout, buffer);
    }

    private void putFlags(int more) {
        Memory.putShort(buffer, PageHeader.FLAGS_AT, more
                | (large ? PageHeader.FLAG_LARGE : 0) | (moved ? PageHeader.FLAG_MOVED : 0));
    }

    /** The bytes of dead extents. */
    private int deadBytes() {
        int dead = 0;
        int end = objectsEnd();
        for (int at = PageHeader.BYTES; at < end;) {
            int word = Memory.getInt(buffer, at);
            int size = word & ~Verifier.DEAD;
            if (word < 0) {
                dead += size;
            }
            at += size;
        }
        return dead;
    }

    private int objectsEnd() {
        return Memory.getInt(buffer, PageHeader.OBJECTS_END_AT);
    }

    private int slotsAt() {
        return buffer.limit() - PageHeader.SLOT_BYTES * page.size();
    }

    final ByteBuffer buffer() {
        if (sealed) {
            throw Target.misuse("the page was sealed");
        }
        return buffer;
    }

    final int objectAt(int slot) {
        return page.objectAt(slot);
    }

    /** The number of objects. */
    public final int size() {
        return page.size();
    }

    /** A writer of an object's fields. It finds the object again after each change. */
    public final W object(int slot) {
        buffer();
        W root = writer.get();
        root.set(new EditTarget(layout, version, this, slot), layout.record, 0, null, 0);
        return root;
    }

    /** The page as it is. After an object was written anew, take the page again. */
    public final VerifiedPage page() {
        return page;
    }

    /** Writes an object anew with a change. If that does not fit, the page is as it was. */
    final void rewrite(int slot, Rewriter.Change change) {
        int old = objectAt(slot);
        ByteBuffer extent = Rewriter.rewrite(layout, buffer(), old, change);
        int size = extent.limit();
        int end = objectsEnd();
        if (large || size() == 1 && PageHeader.BYTES + size > slotsAt()) {
            replacePage(extent);
        } else if (end + size > slotsAt()) {
            compact(slot, extent);
        } else {
            int oldBytes = Memory.getInt(buffer, old);
            buffer.put(end, extent, 0, size);
            Memory.putInt(buffer, buffer.limit() - PageHeader.SLOT_BYTES * (slot + 1), end);
            Memory.putInt(buffer, PageHeader.OBJECTS_END_AT, end + size);
            Memory.putInt(buffer, old, oldBytes | Verifier.DEAD);
            moved = true;
            putFlags(0);
            dead += oldBytes;
            version.value++;
            if (4L * dead >= objectsEnd() - PageHeader.BYTES) {
                compact();
            }
        }
    }

    /** Makes a page for an object that is alone, of the size that fits. */
    private void replacePage(ByteBuffer extent) {
        long bytes = Memory.pad((long) PageHeader.BYTES + extent.limit() + PageHeader.SLOT_BYTES,
                (long) standardBytes);
        if (bytes >= Record.BYTES_END) {
            throw new PageException(Refusal.LIMIT, "an object of " + extent.limit()
                    + " bytes fits no page");
        }
        ByteBuffer fitting = newPage((int) bytes);
        fitting.put(0, buffer, 0, PageHeader.BYTES);
        fitting.put(PageHeader.BYTES, extent, 0, extent.limit());
        Memory.putInt(fitting, PageHeader.PAGE_BYTES_AT, (int) bytes);
        Memory.putInt(fitting, PageHeader.OBJECTS_END_AT, PageHeader.BYTES + extent.limit());
        Memory.putInt(fitting, (int) bytes - PageHeader.SLOT_BYTES, PageHeader.BYTES);
        use(fitting);
        large = bytes > standardBytes;
        moved = false;
        putFlags(0);
        dead = 0;
        version.value++;
    }

    /** Moves the objects together, in the order of their slots, into other memory. */
    public final void compact() {
        buffer();
        compact(-1, null);
    }

    private void compact(int changed, ByteBuffer extent) {
        ByteBuffer compacted = newPage(buffer.limit());
        int at = PageHeader.BYTES;
        int slotsAt = slotsAt();
        for (int slot = 0; slot < size(); slot++) {
            boolean isChanged = slot == changed;
            int from = isChanged ? 0 : objectAt(slot);
            ByteBuffer source = isChanged ? extent : buffer;
            int size = Memory.getInt(source, from);
            if (size > slotsAt - at) {
                throw new PageException(Refusal.LIMIT, "the changed object has " + extent.limit()
                        + " bytes and does not fit its page of " + buffer.limit()
                        + "; write it to another page");
            }
            compacted.put(at, source, from, size);
            Memory.putInt(compacted, buffer.limit() - PageHeader.SLOT_BYTES * (slot + 1), at);
            at += size;
        }
        compacted.put(0, buffer, 0, PageHeader.BYTES);
        Memory.putInt(compacted, PageHeader.OBJECTS_END_AT, at);
        use(compacted);
        moved = false;
        putFlags(0);
        dead = 0;
        version.value++;
    }

    /**
     * Ends the changes: the page is compacted if objects were written anew, so that nothing of their
     * old values is left, and gets its checksum.
     */
    public final VerifiedPage seal() {
        buffer();
        if (moved) {
            compact();
        }
        putFlags(PageHeader.FLAG_CHECKSUM);
        Memory.putInt(buffer, PageHeader.CHECKSUM_AT, PageHeader.checksumOf(buffer));
        sealed = true;
        version.value++;
        return page;
    }
}
