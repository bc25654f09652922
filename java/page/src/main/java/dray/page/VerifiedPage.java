package dray.page;

import java.nio.ByteBuffer;

/**
 * A page whose every byte was checked, or that this package has made. Accessors read its objects
 * where they lie, and rely on that: the bytes must not change but by a {@link PageEditor}.
 */
public final class VerifiedPage {
    private final Layout layout;
    private final ByteBuffer bytes;
    private final ByteBuffer readOnly;

    VerifiedPage(Layout layout, ByteBuffer bytes) {
        this.layout = layout;
        this.bytes = bytes;
        this.readOnly = bytes.asReadOnlyBuffer().order(bytes.order());
    }

    /**
     * Checks a page: the bytes between position and limit of a buffer, which are not copied.
     *
     * @throws PageException when it breaks a rule of {@code spec/page.md}
     */
    public static VerifiedPage verify(Layout layout, ByteBuffer bytes) {
        ByteBuffer page = Memory.slice(bytes, bytes.position(), bytes.remaining());
        Verifier.check(layout, page);
        return new VerifiedPage(layout, page);
    }

    public Layout layout() {
        return layout;
    }

    public PageHeader header() {
        return PageHeader.decode(bytes);
    }

    /** The number of objects. */
    public int size() {
        return Memory.getInt(bytes, PageHeader.OBJECTS_AT);
    }

    /** Where the object of a slot begins. */
    public int objectAt(int slot) {
        if (slot < 0 || slot >= size()) {
            throw PageException.usage(
                    "there is no object " + slot + ", the page has " + size());
        }
        return Memory.getInt(bytes, bytes.limit() - PageHeader.SLOT_BYTES * (slot + 1));
    }

    /** The page's bytes, in which accessors read. They can't be written through this buffer. */
    public ByteBuffer bytes() {
        return readOnly;
    }

    /** The page's own buffer, for a {@link PageEditor}. */
    ByteBuffer buffer() {
        return bytes;
    }
}
