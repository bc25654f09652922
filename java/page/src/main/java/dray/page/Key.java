package dray.page;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** The fields of a key, found in a schema ({@code spec/page-file.md} section 5). */
final class Key {
    private static final int PATHS_MAX = 16;
    private static final int NAMES_MAX = 32;

    /** The fields' paths: names of the structs around a field, then its own. */
    final List<List<String>> paths;
    /** Key fields are within structs alone, so they are places of the object's record. */
    private final List<Place> places = new ArrayList<>();
    private final Record record;

    private Key(Layout layout, List<List<String>> paths) {
        this.paths = paths;
        record = layout.record;
        paths.forEach(path -> places.add(find(record.fields, path)));
    }

    /** Reads the key paths, with the zeros behind them. */
    static Key decode(byte[] bytes, Layout layout) {
        var cursor = new Cursor(bytes, Refusal.KEYS);
        int count = cursor.within("the number of key paths", cursor.u32("paths"), 1, PATHS_MAX);
        var paths = new ArrayList<List<String>>();
        for (int i = 0; i < count; i++) {
            int names = cursor.within("the number of names", cursor.u32("names"), 1, NAMES_MAX);
            var path = new ArrayList<String>();
            for (int name = 0; name < names; name++) {
                path.add(cursor.string("name"));
            }
            paths.add(List.copyOf(path));
        }
        if (cursor.left() >= 8) {
            throw cursor.refused(cursor.left() + " bytes follow the key paths");
        }
        while (cursor.left() > 0) {
            if (cursor.u8("padding") != 0) {
                throw new PageException(Refusal.PADDING, "a byte behind the key paths is not 0");
            }
        }
        return new Key(layout, List.copyOf(paths));
    }

    private static Place find(List<Place> fields, List<String> path) {
        Place found = null;
        for (String name : path) {
            if (found != null && found.type().id() != TypeId.STRUCT) {
                throw refused(path, "is not within structs alone");
            }
            List<Place> within = found == null ? fields : found.fields();
            List<Place> named =
                    within.stream().filter(place -> place.field().name().equals(name)).toList();
            if (named.size() != 1) {
                throw refused(path, "is not one field; there are "
                        + within.stream().map(place -> place.field().name()).toList());
            }
            found = named.get(0);
        }
        boolean nested = switch (found.type().id()) {
            case NULL, LIST, FIXED_LIST, STRUCT, MAP -> true;
            default -> false;
        };
        if (nested) {
            throw refused(path, "can't be a key: it is nested, or always missing");
        }
        return found;
    }

    private static PageException refused(List<String> path, String what) {
        return new PageException(
                Refusal.KEYS, "the key \"" + String.join(".", path) + "\" " + what);
    }

    /** Whether no field of an object's key is missing. */
    boolean isPresent(ByteBuffer page, int object) {
        for (Place place : places) {
            // Within a struct that is missing all validity bits are 0, but not all fields have one.
            if (place.around() >= 0
                    && !Memory.getBit(page, object + record.bitsAt, place.around())) {
                return false;
            }
        }
        return true;
    }

    /** The hash of an object's key. */
    long hash(ByteBuffer page, int object) {
        var chain = new Chain();
        for (Place place : places) {
            int at = object + place.at();
            if (isString(place)) {
                int length = Memory.getInt(page, at);
                int from = Bytes.start(page, object, at);
                chain.word(length).padded(page, from, from + length);
            } else {
                chain.padded(page, at, at + place.bytes());
            }
        }
        return chain.row();
    }

    /** The hash of the stored bytes of a key. */
    long hash(List<byte[]> stored) {
        var chain = new Chain();
        for (int i = 0; i < stored.size(); i++) {
            ByteBuffer bytes = ByteBuffer.wrap(stored.get(i));
            if (isString(places.get(i))) {
                chain.word(bytes.limit());
            }
            chain.padded(bytes, 0, bytes.limit());
        }
        return chain.row();
    }

    /** Whether an object has this key. */
    boolean isOf(List<byte[]> stored, ByteBuffer page, int object) {
        if (!isPresent(page, object)) {
            return false;
        }
        for (int i = 0; i < stored.size(); i++) {
            Place place = places.get(i);
            ByteBuffer bytes = ByteBuffer.wrap(stored.get(i));
            int at = object + place.at();
            int length = isString(place) ? Memory.getInt(page, at) : place.bytes();
            int from = isString(place) ? Bytes.start(page, object, at) : at;
            if (length != bytes.limit() || page.slice(from, length).mismatch(bytes) >= 0) {
                return false;
            }
        }
        return true;
    }

    private static boolean isString(Place place) {
        return place.type().id() == TypeId.UTF8 || place.type().id() == TypeId.BINARY;
    }

    /** The stored bytes of a key's values; null if a number is out of the range of its type. */
    List<byte[]> stored(Object... values) {
        if (values.length != places.size()) {
            throw PageException.usage(values.length + " values for a key of " + places.size()
                    + " fields");
        }
        var stored = new ArrayList<byte[]>();
        for (int i = 0; i < values.length; i++) {
            byte[] bytes = stored(i, values[i]);
            if (bytes == null) {
                return null;
            }
            stored.add(bytes);
        }
        return stored;
    }

    private byte[] stored(int i, Object value) {
        Place place = places.get(i);
        TypeId id = place.type().id();
        if (id == TypeId.BOOLEAN && value instanceof Boolean bool) {
            return new byte[] {(byte) (bool ? 1 : 0)};
        }
        if (id == TypeId.UTF8 && (value instanceof CharSequence || value instanceof Utf8)) {
            return value.toString().getBytes(StandardCharsets.UTF_8);
        }
        if (value instanceof byte[] bytes
                && (isString(place) || id != TypeId.BOOLEAN && bytes.length == place.bytes())) {
            return bytes.clone();
        }
        if (id == TypeId.FLOAT32 && value instanceof Float number) {
            return littleEndian(BigInteger.valueOf(Float.floatToRawIntBits(number)), 4);
        }
        if (id == TypeId.FLOAT64 && value instanceof Double number) {
            return littleEndian(BigInteger.valueOf(Double.doubleToRawLongBits(number)), 8);
        }
        if (isInteger(id) && isInteger(value)) {
            var number = new BigInteger(value.toString());
            int bits = place.bytes() * 8;
            boolean fits = switch (id) {
                case UINT8, UINT16, UINT32, UINT64 ->
                    number.signum() >= 0 && number.bitLength() <= bits;
                default -> number.bitLength() < bits;
            };
            return fits ? littleEndian(number, place.bytes()) : null;
        }
        String found = value == null ? "null" : value.getClass().getSimpleName();
        throw PageException.usage("the key field \"" + String.join(".", paths.get(i)) + "\" is "
                + id + " and takes no " + found + "; a byte[] of its " + place.bytes() + " stored bytes always fits");
    }

    private static boolean isInteger(TypeId id) {
        return switch (id) {
            case INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, DATE32, DATE64, TIME32,
                    TIME64, TIMESTAMP, DURATION, INTERVAL_MONTHS, DECIMAL32, DECIMAL64,
                    DECIMAL128, DECIMAL256 -> true;
            default -> false;
        };
    }

    private static boolean isInteger(Object value) {
        return value instanceof Byte || value instanceof Short || value instanceof Integer
                || value instanceof Long || value instanceof BigInteger;
    }

    private static byte[] littleEndian(BigInteger number, int width) {
        var bytes = new byte[width];
        for (int i = 0; i < width; i++) {
            bytes[i] = number.shiftRight(8 * i).byteValue();
        }
        return bytes;
    }
}
