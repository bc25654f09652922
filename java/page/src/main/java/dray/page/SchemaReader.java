package dray.page;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Reads the encoding of {@code spec/types.md} section 1. */
final class SchemaReader {
    private static final int FIELDS_MAX = 1 << 16;
    private static final int PAIRS_MAX = 1 << 18;
    private static final int LEVELS_MAX = 32;
    private static final int FIXED_BINARY_MAX = 1 << 24;
    private static final TypeId[] TYPES = TypeId.values();

    private final Cursor cursor;
    private int fieldsLeft = FIELDS_MAX;
    private int pairsLeft = PAIRS_MAX;

    private SchemaReader(byte[] bytes) {
        cursor = new Cursor(bytes, Refusal.SCHEMA);
    }

    static List<Field> read(byte[] bytes) {
        var reader = new SchemaReader(bytes);
        if (bytes.length > Schema.BYTES_MAX) {
            throw reader.cursor.refused(
                    bytes.length + " bytes, the most are " + Schema.BYTES_MAX);
        }
        List<Field> fields = reader.fields(1);
        if (reader.cursor.left() > 0) {
            throw reader.cursor.refused(reader.cursor.left() + " bytes follow the last field");
        }
        return fields;
    }

    private List<Field> fields(int level) {
        long count = cursor.u32("the number of fields");
        // A count that is too high runs out of bytes, or of fields.
        var fields = new ArrayList<Field>();
        for (long i = 0; i < count; i++) {
            fields.add(field(level));
        }
        return List.copyOf(fields);
    }

    private Field field(int level) {
        if (fieldsLeft-- == 0) {
            throw cursor.refused("more than " + FIELDS_MAX + " fields");
        }
        String name = cursor.cString("name");
        int flags = cursor.within("flags", cursor.u8("flags"), 0, 1);
        Type type = type(level);
        int pairs = cursor.u16("pairs of metadata");
        pairsLeft -= pairs;
        if (pairsLeft < 0) {
            throw cursor.refused("more than " + PAIRS_MAX + " pairs of metadata");
        }
        var metadata = new ArrayList<Map.Entry<String, String>>();
        for (int i = 0; i < pairs; i++) {
            metadata.add(Map.entry(cursor.string("key"), cursor.string("value")));
        }
        return new Field(name, flags == 1, type, List.copyOf(metadata));
    }

    private Type type(int level) {
        if (level > LEVELS_MAX) {
            throw cursor.refused("more than " + LEVELS_MAX + " levels");
        }
        int number = cursor.u8("type");
        if (number >= TYPES.length) {
            throw cursor.refused("type " + number + " is unknown");
        }
        TypeId id = TYPES[number];
        return switch (id) {
            case DECIMAL32 -> decimal(id, 9);
            case DECIMAL64 -> decimal(id, 18);
            case DECIMAL128 -> decimal(id, 38);
            case DECIMAL256 -> decimal(id, 76);
            case TIME32 -> time(id, 0, 1);
            case TIME64 -> time(id, 2, 3);
            case TIMESTAMP, DURATION -> time(id, 0, 3);
            case FIXED_BINARY -> Type.of(id,
                    cursor.within("width", cursor.u32("width"), 1, FIXED_BINARY_MAX));
            case LIST -> nested(id, 0, false, List.of(field(level + 1)), null);
            case FIXED_LIST -> {
                int size = cursor.within("size", cursor.u32("size"), 0, Integer.MAX_VALUE);
                yield nested(id, size, false, List.of(field(level + 1)), null);
            }
            case STRUCT -> nested(id, 0, false, fields(level + 1), null);
            case MAP -> {
                boolean sorted = cursor.within("sorted", cursor.u8("sorted"), 0, 1) == 1;
                Field key = field(level + 1);
                Field value = field(level + 1);
                if (key.nullable()) {
                    throw cursor.refused("a map's key is nullable");
                }
                yield nested(id, 0, sorted, List.of(key, value), null);
            }
            case DICTIONARY -> dictionary(level);
            default -> Type.of(id, id.width);
        };
    }

    private Type decimal(TypeId id, int most) {
        int precision = cursor.within("precision", cursor.u8("precision"), 1, most);
        int scale = (byte) cursor.u8("scale");
        return new Type(id, id.width, precision, scale, 0, "", 0, false, List.of(), null);
    }

    private Type time(TypeId id, int least, int most) {
        int unit = cursor.within("unit", cursor.u8("unit"), least, most);
        String zone = id == TypeId.TIMESTAMP ? cursor.cString("zone") : "";
        return new Type(id, id.width, 0, 0, unit, zone, 0, false, List.of(), null);
    }

    private Type dictionary(int level) {
        int index = cursor.within("index", cursor.u8("index"),
                TypeId.INT8.ordinal(), TypeId.UINT64.ordinal());
        boolean ordered = cursor.within("ordered", cursor.u8("ordered"), 0, 1) == 1;
        Type value = type(level + 1);
        if (value.id() == TypeId.DICTIONARY) {
            throw cursor.refused("a dictionary of dictionaries");
        }
        var entries = new Field("", true, value, List.of());
        return nested(TypeId.DICTIONARY, 0, ordered, List.of(entries), TYPES[index]);
    }

    private static Type nested(
            TypeId id, int size, boolean ordered, List<Field> children, TypeId index) {
        return new Type(id, 0, 0, 0, 0, "", size, ordered, children, index);
    }
}
