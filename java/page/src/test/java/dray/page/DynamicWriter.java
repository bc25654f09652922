package dray.page;

import java.util.HexFormat;
import java.util.List;
import java.util.function.Supplier;

/** Writes values of any schema, as {@link Values} has them, by what generated writers extend. */
final class DynamicWriter extends ViewWriter {
    static final class Items extends StructListWriter<DynamicWriter> {
        Items() {
            super(DynamicWriter::new);
        }
    }

    static final class Builder extends PageBuilder<DynamicWriter> {
        Builder(Layout layout, int pageBytes) {
            super(layout, pageBytes, new DynamicWriter());
        }
    }

    static final class Editor extends PageEditor<DynamicWriter> {
        Editor(VerifiedPage page, int standardBytes) {
            super(page, page.layout(), (Supplier<DynamicWriter>) DynamicWriter::new, standardBytes);
        }
    }

    private int offset(Place place) {
        return record.bitsAt + place.bit() / 8;
    }

    private static int mask(Place place) {
        return 1 << place.bit() % 8;
    }

    void writeAll(List<?> values) {
        write(record.fields, values);
    }

    private void write(List<Place> places, List<?> values) {
        for (int i = 0; i < places.size(); i++) {
            write(places.get(i), values.get(i));
        }
    }

    /** Writes a field, or makes it missing. */
    void write(Place place, Object value) {
        if (place.type().id() == TypeId.NULL) {
            return;
        }
        if (value == null) {
            missing(offset(place), mask(place));
            return;
        }
        if (place.type().id() == TypeId.STRUCT) {
            if (place.bit() >= 0) {
                presentStruct(offset(place), mask(place));
            }
            write(place.fields(), (List<?>) value);
            return;
        }
        switch (place.type().id()) {
            case UTF8 -> putString(place.tail(), (String) value);
            case BINARY -> putBytes(place.tail(), HexFormat.of().parseHex((String) value));
            case LIST, FIXED_LIST, MAP -> items(place, (List<?>) value);
            default -> {
                byte[] bytes = ValuePages.fixed(place.type(), value);
                putFixed(place.at(), bytes.length, bytes);
            }
        }
        if (place.bit() >= 0) {
            present(offset(place), mask(place));
        }
    }

    /** Begins a list, as generated writers do. */
    Items begin(Place place, int count) {
        Items list = putList(place.tail(), count, new Items());
        if (place.bit() >= 0) {
            present(offset(place), mask(place));
        }
        return list;
    }

    private void items(Place place, List<?> values) {
        Items list = begin(place, values.size());
        Place item = place.items().record().fields.get(0);
        if (item.type().id() == TypeId.NULL) {
            return;
        }
        for (Object value : values) {
            if (value == null) {
                list.addMissing();
            } else {
                list.next().write(item, value);
            }
        }
    }

    Items existing(Place place) {
        return editList(place.tail(), new Items());
    }

    void resize(Place place, int count) {
        resizeList(place.tail(), count);
        if (place.bit() >= 0) {
            present(offset(place), mask(place));
        }
    }

    void remove(Place place, int i) {
        removeItem(place.tail(), i);
    }
}
