package dray.page;

import java.util.function.Consumer;

/**
 * Writes the items of a list. While an object is built, they come one after the other. When it is
 * edited, they can also be taken by their number.
 */
public abstract class ListWriter<T extends ViewWriter> {
    /** The writer of items that come one after the other. */
    final T item;
    /** A copy of the writer whose field this list is, and that field. */
    final ViewWriter holder = new ItemWriter.Holder();
    Place place;
    /** Where the bitmap and the records begin, from the start of the object. */
    int bitmap;
    int records;
    int count;
    /** The number of items that were written. */
    int next;
    /** The version when the last of them was begun. */
    int nextSeen;
    private int seen;

    ListWriter(T item) {
        this.item = item;
    }

    final void set(ViewWriter holder, Place place) {
        // The writer may be moved on, and this list stays.
        this.holder.copy(holder);
        this.place = place;
        next = 0;
    }

    /** Looks up where the list is. */
    final void refresh() {
        int at = holder.place(place.at());
        count = Memory.getInt(holder.target.page, at + 4);
        bitmap = Memory.getInt(holder.target.page, at);
        records = bitmap + (int) place.items().bitmapBytes(count);
        seen = holder.target.version.value;
    }

    private void check() {
        if (place == null) {
            throw Target.misuse("this list belongs to no object yet");
        }
        if (seen != holder.target.version.value) {
            refresh();
        }
    }

    /** The number of items. */
    public final int size() {
        check();
        return count;
    }

    final int recordAt(int i) {
        check();
        if (i < 0 || i >= count) {
            throw new IndexOutOfBoundsException("item " + i + " of " + count);
        }
        return records + i * place.items().record().stride;
    }

    final boolean has(int i) {
        return !place.items().nullable()
                || Memory.getBit(holder.target.page, holder.target.object + bitmap, i);
    }

    /** Moves the writer of items to the next one, which becomes present. */
    final T nextItem() {
        advance();
        T shown = shown(next, item);
        next++;
        return shown;
    }

    /** Writes the next item. If its value is refused, it is the next one still. */
    final void addItem(Consumer<T> put) {
        advance();
        write(next, put);
        next++;
    }

    /** Writes an item by its number. If its value is refused, the item is as it was. */
    final void setItem(int i, Consumer<T> put) {
        needEditing();
        recordAt(i);
        write(i, put);
    }

    private void write(int i, Consumer<T> put) {
        boolean wasThere = has(i);
        T writer = shown(i, item);
        try {
            put.accept(writer);
        } catch (RuntimeException refused) {
            holder.target.takeBack(this, i, wasThere);
            throw refused;
        }
    }

    /** Leaves the next item missing. */
    final void nextMissing() {
        needNullable();
        advance();
        if (has(next)) {
            ((EditTarget) holder.target).clearItem(this, next);
        }
        next++;
    }

    private void advance() {
        check();
        Target target = holder.target;
        if (next >= count) {
            throw Target.misuse("the list has " + count + " items, this is one more");
        }
        target.nextItem(this);
        nextSeen = target.version.value;
    }

    /** An item by its number, which becomes present. */
    final T itemAt(int i, T writer) {
        needEditing();
        recordAt(i);
        return shown(i, writer);
    }

    private T shown(int i, T writer) {
        Target target = holder.target;
        Record record = place.items().record();
        writer.set(target, record, recordAt(i), this, i);
        writer.depth = holder.depth + 1;
        writer.ticket = holder.target instanceof BuildTarget build
                ? build.ticketAt(writer.depth) : 0;
        if (!has(i)) {
            target.presentItem(writer);
        }
        return writer;
    }

    /** Makes an item missing. */
    final void clearItem(int i) {
        needEditing();
        needNullable();
        recordAt(i);
        if (has(i)) {
            ((EditTarget) holder.target).clearItem(this, i);
        }
    }

    private void needNullable() {
        if (!place.items().nullable()) {
            throw Target.misuse("no item of this list may be missing");
        }
    }

    final boolean isEditing() {
        check();
        return holder.target.isEditing();
    }

    private void needEditing() {
        if (!isEditing()) {
            throw Target.misuse("items of an object that is being built come one after the other");
        }
    }
}
