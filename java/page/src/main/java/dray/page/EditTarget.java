package dray.page;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/** An object of a page that is edited. What does not fit its place is written anew. */
final class EditTarget extends Target {
    private final PageEditor<?> editor;
    final int slot;
    /** The version for which the object's place is known. */
    private int seen;

    EditTarget(Layout layout, Version version, PageEditor<?> editor, int slot) {
        super(layout, version);
        this.editor = editor;
        this.slot = slot;
        locate();
    }

    private void locate() {
        page = editor.buffer();
        object = editor.objectAt(slot);
        seen = version.value;
    }

    @Override
    void refresh(ViewWriter writer) {
        if (seen != version.value) {
            locate();
        }
        if (writer.list != null) {
            needUnmoved(writer.list, writer.index, writer.index, writer.seen);
            writer.at = writer.list.recordAt(writer.index);
        }
        writer.seen = version.value;
    }

    /** The items of a list that were moved or dropped so far. */
    private MovedItems moved(ViewWriter holder, Place place) {
        return editor.movedItems.computeIfAbsent(slot, any -> new HashMap<>())
                .computeIfAbsent(MovedItems.path(holder, place), any -> new MovedItems());
    }

    /** Refuses items that a writer knows from a version, if they have moved since. */
    private void needUnmoved(ListWriter<?> list, int first, int last, int version) {
        Map<List<Integer>, MovedItems> lists = editor.movedItems.get(slot);
        if (lists == null) {
            return;
        }
        MovedItems moved = lists.get(MovedItems.path(list.holder, list.place));
        if (moved != null && moved.isLater(version, first, last)) {
            throw misuse("items of this list have moved or were dropped; take them again");
        }
    }

    @Override
    boolean isEditing() {
        return true;
    }

    @Override
    void putString(ViewWriter writer, Place place, byte[] bytes) {
        int at = object + writer.at + place.at();
        int length = Memory.getInt(page, at);
        boolean isShort = bytes.length <= Record.INLINE_MAX;
        if (isShort && length <= Record.INLINE_MAX) {
            putInline(at, bytes);
        } else if (length == bytes.length) {
            putLong(at, Memory.getInt(page, at + 12), bytes);
        } else {
            editor.rewrite(slot, Rewriter.Change.ofString(writer.at, place.tail(), bytes));
        }
    }

    @Override
    void putList(ViewWriter writer, Place place, int count, ListWriter<?> list) {
        int old = Memory.getInt(page, object + writer.at + place.at() + 4);
        // A fixed list keeps its items: each is written over.
        if (old + count > 0 && (place.size() < 0 || old == 0)) {
            change(writer, place, count, i -> -1);
            moved(writer, place).moveFrom(0, version.value);
        }
        list.refresh();
        if (place.items().record().fields.get(0).type().id() == TypeId.NULL) {
            list.next = count;
        }
    }

    private void change(ViewWriter writer, Place place, int count, IntUnaryOperator source) {
        editor.rewrite(slot,
                Rewriter.Change.ofList(writer.at, place.tail(), count, source));
    }

    private int itemsOf(ViewWriter writer, Place place) {
        if (place.size() >= 0) {
            throw misuse("a fixed list keeps its " + place.size() + " items");
        }
        writer.check();
        return Memory.getInt(page, object + writer.at + place.at() + 4);
    }

    void resize(ViewWriter writer, Place place, int count) {
        int old = itemsOf(writer, place);
        if (count < 0) {
            throw new IllegalArgumentException(count + " items");
        }
        if (count != old) {
            change(writer, place, count, i -> i < old ? i : -1);
            if (count < old) {
                moved(writer, place).moveFrom(count, version.value);
            }
        }
    }

    void remove(ViewWriter writer, Place place, int item) {
        int old = itemsOf(writer, place);
        if (item < 0 || item >= old) {
            throw new IndexOutOfBoundsException("item " + item + " of " + old);
        }
        change(writer, place, old - 1, i -> i < item ? i : i + 1);
        moved(writer, place).moveFrom(item, version.value);
    }

    @Override
    void nextItem(ListWriter<?> list) {
        if (list.next > 0) {
            needUnmoved(list, list.next - 1, list.next, list.nextSeen);
        }
    }

    @Override
    void takeBack(ListWriter<?> list, int item, boolean wasThere) {
        if (!wasThere) {
            clearItem(list, item);
        }
    }

    private static boolean hasTail(java.nio.ByteBuffer page, int recordAt, Place place) {
        int at = recordAt + place.at();
        return place.tail() >= 0 && (place.items() == null
                ? Memory.getInt(page, at) > Record.INLINE_MAX : Memory.getInt(page, at + 4) > 0);
    }

    @Override
    void clear(ViewWriter writer, int bit) {
        Record record = writer.record;
        int recordAt = object + writer.at;
        boolean hasTails = false;
        for (int within = bit; within < record.withinEnd[bit]; within++) {
            for (Place place : record.absent[within]) {
                hasTails |= hasTail(page, recordAt, place);
            }
        }
        if (!hasTails) {
            clear(page, recordAt, record, bit);
            return;
        }
        editor.rewrite(slot, Rewriter.Change.ofClear(writer.at, bit));
        for (int within = bit; within < record.withinEnd[bit]; within++) {
            for (Place place : record.absent[within]) {
                if (place.items() != null) {
                    moved(writer, place).moveFrom(0, version.value);
                }
            }
        }
    }

    void clearItem(ListWriter<?> list, int item) {
        int recordAt = object + list.recordAt(item);
        Record record = list.place.items().record();
        boolean hasTails = false;
        for (Place place : record.tails) {
            hasTails |= hasTail(page, recordAt, place);
        }
        if (hasTails) {
            // The list is written anew with a new item, which is missing, in its place.
            change(list.holder, list.place, list.count, i -> i == item ? -1 : i);
        } else {
            Memory.zero(page, recordAt, recordAt + record.stride);
            Memory.putBit(page, object + list.bitmap, item, false);
            // Writers of the item must find that it was dropped.
            version.value++;
            locate();
        }
        moved(list.holder, list.place).drop(item, version.value);
    }

    @Override
    void presentStruct(ViewWriter writer, int bit) {
        setBit(writer.at + writer.record.bitsAt, bit, writer.record, bit);
    }

    @Override
    void presentItem(ViewWriter writer) {
        setBit(writer.list.bitmap, writer.index, writer.record, -1);
    }

    /** Sets a bit. Fixed lists that it makes present need their items. */
    private void setBit(int at, int bit, Record record, int around) {
        Memory.putBit(page, object + at, bit, true);
        for (Place place : record.tails) {
            if (place.around() == around && place.size() > 0) {
                try {
                    editor.rewrite(slot, null);
                } catch (PageException refused) {
                    Memory.putBit(page, object + at, bit, false);
                    throw refused;
                }
                return;
            }
        }
    }
}
