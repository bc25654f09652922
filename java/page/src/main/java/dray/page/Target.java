package dray.page;

import java.nio.ByteBuffer;

/**
 * The object that writers write: one that is being built at the end of a page, or one that is
 * edited where it lies ({@code spec/page.md} section 11). Offsets are counted from its start.
 */
abstract class Target {
    /** Changes when the positions that writers know may no longer hold. */
    static final class Version {
        int value;
    }

    final Layout layout;
    final Version version;
    ByteBuffer page;
    /** Where the object begins on the page. */
    int object;

    Target(Layout layout, Version version) {
        this.layout = layout;
        this.version = version;
    }

    /** Finds the position of a writer's record again, or fails: the object is finished. */
    abstract void refresh(ViewWriter writer);

    /** Whether objects are changed, so that what is there can be looked up. */
    abstract boolean isEditing();

    /** Sets a string: the value of a tail's place. */
    abstract void putString(ViewWriter writer, Place place, byte[] bytes);

    /** Makes a list of items that have default values. */
    abstract void putList(ViewWriter writer, Place place, int count, ListWriter<?> list);

    /** Goes on to the next item of a list. */
    abstract void nextItem(ListWriter<?> list);

    /** Leaves an item as it was whose value is refused. */
    abstract void takeBack(ListWriter<?> list, int item, boolean wasThere);

    /** Makes a value missing, with all that is within it, which may have tails. */
    abstract void clear(ViewWriter writer, int bit);

    /** Makes a struct present whose bit is not set. */
    abstract void presentStruct(ViewWriter writer, int bit);

    /** Makes the item present that a writer is for. */
    abstract void presentItem(ViewWriter writer);

    /** The bytes of a string's place for a value of up to 12 bytes. */
    final void putInline(int at, byte[] bytes) {
        Memory.putInt(page, at, bytes.length);
        Memory.zero(page, at + 4, at + Record.STRING_BYTES);
        page.put(at + 4, bytes);
    }

    /** The place and the tail of a longer string. */
    final void putLong(int at, int tail, byte[] bytes) {
        Memory.putInt(page, at, bytes.length);
        page.put(at + 4, bytes, 0, 4);
        Memory.putInt(page, at + 8, 0);
        Memory.putInt(page, at + 12, tail);
        page.put(object + tail, bytes);
    }

    /** Clears the bits and bytes of all that is within a validity bit. */
    static void clear(ByteBuffer page, int recordAt, Record record, int bit) {
        for (int within = bit; within < record.withinEnd[bit]; within++) {
            Memory.putBit(page, recordAt + record.bitsAt, within, false);
            for (Place place : record.absent[within]) {
                int at = recordAt + place.at();
                Memory.zero(page, at, at + place.bytes());
            }
        }
    }

    static IllegalStateException misuse(String what) {
        return new IllegalStateException(what);
    }
}
