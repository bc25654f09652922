package dray.page;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * Writes the fields of an object, or of a struct within one: what generated writers extend. What
 * can't be done is an exception, and the page stays as it was.
 */
public abstract class ViewWriter {
    Target target;
    Record record;
    /** Where the record begins, from the start of the object, and for which version it does. */
    int at;
    int seen;
    /** The list whose item this is, or null for an object's own fields. */
    ListWriter<?> list;
    int index;
    /** While building: the level of the record, and which of those at this level it is. */
    int depth;
    int ticket;

    /** Is for the same record as another writer. */
    final void copy(ViewWriter other) {
        set(other.target, other.record, other.at, other.list, other.index);
        seen = other.seen;
        depth = other.depth;
        ticket = other.ticket;
    }

    final void set(Target target, Record record, int at, ListWriter<?> list, int index) {
        this.target = target;
        this.record = record;
        this.at = at;
        this.list = list;
        this.index = index;
        seen = target.version.value;
    }

    /** Lets a writer of a struct write fields of the same record. For generated writers. */
    protected final <T extends ViewWriter> T share(T struct) {
        check();
        struct.copy(this);
        return struct;
    }

    final void check() {
        if (target == null) {
            throw Target.misuse("this writer has no object yet");
        }
        if (seen != target.version.value) {
            target.refresh(this);
        }
    }

    /**
     * Where a place lies on the page. This may also change which page the target is on: look that up
     * afterwards.
     */
    final int place(int offset) {
        check();
        return target.object + at + offset;
    }

    /** Sets a validity bit. */
    protected final void present(int offset, int mask) {
        int at = place(offset);
        target.page.put(at, (byte) (target.page.get(at) | mask));
    }

    /** Fails unless the struct around is there. */
    protected final void within(int offset, int mask) {
        if (!isSet(offset, mask)) {
            throw Target.misuse("the struct around this field is missing; ask for it again");
        }
    }

    /** Makes a struct present. */
    protected final void presentStruct(int offset, int mask) {
        if (!isSet(offset, mask)) {
            target.presentStruct(this, bit(offset, mask));
        }
    }

    private boolean isSet(int offset, int mask) {
        int at = place(offset);
        return (target.page.get(at) & mask) != 0;
    }

    private int bit(int offset, int mask) {
        return (offset - record.bitsAt) * 8 + Integer.numberOfTrailingZeros(mask);
    }

    /** Makes a field missing. */
    protected final void missing(int offset, int mask) {
        if (isSet(offset, mask)) {
            target.clear(this, bit(offset, mask));
        }
    }

    protected final void putBoolean(int offset, boolean value) {
        putByte(offset, value ? 1 : 0);
    }

    protected final void putByte(int offset, int value) {
        int at = place(offset);
        target.page.put(at, (byte) value);
    }

    protected final void putShort(int offset, int value) {
        int at = place(offset);
        Memory.putShort(target.page, at, value);
    }

    protected final void putInt(int offset, int value) {
        int at = place(offset);
        Memory.putInt(target.page, at, value);
    }

    protected final void putLong(int offset, long value) {
        int at = place(offset);
        Memory.putLong(target.page, at, value);
    }

    protected final void putFloat(int offset, float value) {
        putInt(offset, Float.floatToRawIntBits(value));
    }

    protected final void putDouble(int offset, double value) {
        putLong(offset, Double.doubleToRawLongBits(value));
    }

    /** Writes an integer, which must fit. */
    protected final void putInteger(int offset, int width, BigInteger value) {
        int at = place(offset);
        Numbers.putInteger(target.page, at, width, value);
    }

    /** Writes an unsigned integer of fewer bytes, which must fit. */
    protected final void putUnsigned(int offset, int width, long value) {
        if (value < 0 || value >> 8 * width != 0) {
            throw new IllegalArgumentException(value + " does not fit " + width
                    + " bytes without a sign");
        }
        switch (width) {
            case 1 -> putByte(offset, (int) value);
            case 2 -> putShort(offset, (int) value);
            default -> putInt(offset, (int) value);
        }
    }

    /** Writes bytes of a fixed width. */
    protected final void putFixed(int offset, int width, byte[] value) {
        if (value.length != width) {
            throw new IllegalArgumentException(value.length + " bytes for a field of " + width);
        }
        int at = place(offset);
        target.page.put(at, value);
    }

    /** Writes a binary value; its place is the record's tail with a number. */
    protected final void putBytes(int tail, byte[] value) {
        check();
        target.putString(this, record.tails[tail], value);
    }

    /** Writes a string. */
    protected final void putString(int tail, String value) {
        putBytes(tail, utf8(value));
    }

    /** Writes a string that is UTF-8 already. */
    protected final void putString(int tail, Utf8 value) {
        byte[] bytes = value.toByteArray();
        if (!Utf8Check.isUtf8(ByteBuffer.wrap(bytes), 0, bytes.length)) {
            throw new IllegalArgumentException("the bytes are not UTF-8");
        }
        putBytes(tail, bytes);
    }

    static byte[] utf8(String value) {
        for (int i = 0; i < value.length(); i++) {
            if (Character.isSurrogate(value.charAt(i))) {
                return encoded(value);
            }
        }
        return value.getBytes(StandardCharsets.UTF_8);
    }

    /** The same, which refuses half of a surrogate pair. */
    private static byte[] encoded(String value) {
        try {
            ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(value));
            var copy = new byte[bytes.remaining()];
            bytes.get(copy);
            return copy;
        } catch (CharacterCodingException cause) {
            throw new IllegalArgumentException(
                    "the string has half of a surrogate pair, which UTF-8 does not have", cause);
        }
    }

    /** Makes a list of so many items, which are to be written next. */
    protected final <L extends ListWriter<?>> L putList(int tail, int count, L writer) {
        check();
        Place place = record.tails[tail];
        if (count < 0 || place.size() >= 0 && count != place.size()) {
            throw new IllegalArgumentException(count + " items"
                    + (place.size() < 0 ? "" : ", expected " + place.size()));
        }
        writer.set(this, place);
        target.putList(this, place, count, writer);
        return writer;
    }

    /** A list as it is. */
    protected final <L extends ListWriter<?>> L editList(int tail, L writer) {
        editor();
        writer.set(this, record.tails[tail]);
        writer.refresh();
        return writer;
    }

    /** Changes the number of a list's items: the last ones are dropped, or new ones appended. */
    protected final void resizeList(int tail, int count) {
        editor().resize(this, record.tails[tail], count);
    }

    /** Drops one item of a list. */
    protected final void removeItem(int tail, int i) {
        editor().remove(this, record.tails[tail], i);
    }

    private EditTarget editor() {
        check();
        if (target instanceof EditTarget editor) {
            return editor;
        }
        throw Target.misuse("an object that is being built has no list to change; "
                + "say how many items it has");
    }
}
