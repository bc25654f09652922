package dray.page;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Objects as the values of the vectors' JSON ({@code spec/vectors/README.md}). */
final class Values {
    private final ByteBuffer page;
    private final int object;

    private Values(ByteBuffer page, int object) {
        this.page = page;
        this.object = object;
    }

    static List<Object> rows(VerifiedPage page) {
        var rows = new ArrayList<Object>();
        for (int slot = 0; slot < page.size(); slot++) {
            var values = new Values(page.bytes(), page.objectAt(slot));
            rows.add(values.fields(page.layout().record, page.layout().record.fields,
                    values.object));
        }
        return rows;
    }

    /** Whether a list has more items than values can be made of: they may take no bytes. */
    static boolean hasHugeLists(VerifiedPage page) {
        for (int slot = 0; slot < page.size(); slot++) {
            var values = new Values(page.bytes(), page.objectAt(slot));
            if (values.isHuge(page.layout().record, values.object)) {
                return true;
            }
        }
        return false;
    }

    private boolean isHuge(Record record, int recordAt) {
        for (Place place : record.tails) {
            int count = place.items() == null ? 0 : Memory.getInt(page, recordAt + place.at() + 4);
            if (count > 1 << 16) {
                return true;
            }
            int start = object + Memory.getInt(page, recordAt + place.at());
            for (int i = 0; i < count; i++) {
                int recordsAt = start + (int) place.items().bitmapBytes(count);
                Record items = place.items().record();
                if (isHuge(items, recordsAt + i * items.stride)) {
                    return true;
                }
            }
        }
        return false;
    }

    private List<Object> fields(Record record, List<Place> places, int at) {
        var values = new ArrayList<>();
        places.forEach(place -> values.add(value(record, place, at)));
        return values;
    }

    private Object value(Record record, Place place, int recordAt) {
        Type type = place.type();
        boolean missing = place.around() >= 0
                && !Memory.getBit(page, recordAt + record.bitsAt, place.around());
        if (missing || type.id() == TypeId.NULL) {
            return null;
        }
        int at = recordAt + place.at();
        return switch (type.id()) {
            case STRUCT -> fields(record, place.fields(), recordAt);
            case BOOLEAN -> page.get(at) == 1;
            case UTF8 -> Utf8.of(page, object, at).toString();
            case BINARY -> Bytes.of(page, object, at).toString();
            case FIXED_BINARY -> HexFormat.of().formatHex(bytes(at, type.width()));
            case LIST, FIXED_LIST, MAP -> items(place, at);
            case FLOAT16, FLOAT32, FLOAT64 -> String.format("%0" + 2 * type.width() + "x",
                    integer(at, type.width(), false));
            case INTERVAL_DAY_TIME -> List.of(integer(at, 4, true).toString(),
                    integer(at + 4, 4, true).toString());
            case INTERVAL_MONTH_DAY_NANO -> List.of(integer(at, 4, true).toString(),
                    integer(at + 4, 4, true).toString(), integer(at + 8, 8, true).toString());
            case UINT8, UINT16, UINT32, UINT64 -> integer(at, type.width(), false).toString();
            default -> integer(at, type.width(), true).toString();
        };
    }

    private byte[] bytes(int at, int count) {
        var bytes = new byte[count];
        page.get(at, bytes);
        return bytes;
    }

    private BigInteger integer(int at, int width, boolean signed) {
        byte[] little = bytes(at, width);
        var big = new byte[width];
        for (int i = 0; i < width; i++) {
            big[width - 1 - i] = little[i];
        }
        return signed ? new BigInteger(big) : new BigInteger(1, big);
    }

    private List<Object> items(Place place, int at) {
        int count = Memory.getInt(page, at + 4);
        int start = object + Memory.getInt(page, at);
        Record record = place.items().record();
        int recordsAt = start + (int) place.items().bitmapBytes(count);
        var items = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            boolean missing = place.items().nullable() && !Memory.getBit(page, start, i);
            items.add(missing ? null
                    : value(record, record.fields.get(0), recordsAt + i * record.stride));
        }
        return items;
    }

    /** Fields in the words of the vectors' JSON. */
    static List<Object> words(List<Field> fields) {
        var words = new ArrayList<>();
        for (Field field : fields) {
            Map<String, Object> members = new LinkedHashMap<>();
            members.put("name", field.name());
            members.putAll(words(field.type()));
            members.put("nullable", field.nullable());
            if (!field.metadata().isEmpty()) {
                members.put("metadata", field.metadata().stream()
                        .map(pair -> List.of(pair.getKey(), pair.getValue())).toList());
            }
            words.add(members);
        }
        return words;
    }

    private static Map<String, Object> words(Type type) {
        Map<String, Object> words = new LinkedHashMap<>();
        words.put("type", type.id().toString());
        switch (type.id()) {
            case DECIMAL32, DECIMAL64, DECIMAL128, DECIMAL256 -> {
                words.put("precision", "" + type.precision());
                words.put("scale", "" + type.scale());
            }
            case TIME32, TIME64, TIMESTAMP, DURATION -> {
                words.put("unit", List.of("s", "ms", "us", "ns").get(type.unit()));
                if (type.id() == TypeId.TIMESTAMP) {
                    words.put("zone", type.zone());
                }
            }
            case FIXED_BINARY -> words.put("width", "" + type.width());
            case FIXED_LIST -> words.put("size", "" + type.size());
            case MAP -> words.put("sorted", type.ordered());
            case DICTIONARY -> {
                words.put("index", type.index().toString());
                words.put("ordered", type.ordered());
                words.put("values", words(type.children().get(0).type()));
            }
            default -> { }
        }
        if (type.id() != TypeId.DICTIONARY
                && (type.id() == TypeId.STRUCT || !type.children().isEmpty())) {
            words.put("children", words(type.children()));
        }
        return words;
    }
}
