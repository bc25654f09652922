package dray.page;

import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;

/**
 * Writes objects from their values, as {@link Values} has them: a second way beside the builders,
 * directly by {@code spec/page.md} sections 3 to 6.
 */
final class ValuePages {
    private final ByteArrayOutputStream tails = new ByteArrayOutputStream();
    private int cursor;

    private ValuePages() {}

    /** The extent of an object. */
    static byte[] object(Layout layout, List<?> row) {
        return new ValuePages().write(layout.record, row);
    }

    /** A page of these objects, or null if they do not fit. */
    static ByteBuffer page(Layout layout, List<?> rows, int pageBytes, boolean large, int edition) {
        ByteBuffer page = ByteBuffer.allocate(pageBytes).order(java.nio.ByteOrder.LITTLE_ENDIAN);
        int at = 64;
        for (int i = 0; i < rows.size(); i++) {
            byte[] object = object(layout, (List<?>) rows.get(i));
            if (at + object.length > pageBytes - 4 * rows.size()) {
                return null;
            }
            page.put(at, object).putInt(pageBytes - 4 * (i + 1), at);
            at += object.length;
        }
        page.putInt(0, PageHeader.MAGIC).putShort(6, (short) (large ? 3 : 1));
        page.putInt(16, rows.size()).putInt(20, pageBytes).putInt(24, at).putInt(32, edition);
        return page.putInt(28, PageHeader.checksumOf(page));
    }

    private byte[] write(Record record, List<?> row) {
        cursor = record.end;
        var bytes = new byte[record.end];
        fields(bytes, 0, record, record.fields, row);
        tailsOf(bytes, 0, record, record.fields, row);
        int size = (cursor + 7) / 8 * 8;
        var all = new byte[size];
        System.arraycopy(bytes, 0, all, 0, bytes.length);
        byte[] tail = tails.toByteArray();
        System.arraycopy(tail, 0, all, bytes.length, tail.length);
        ByteBuffer.wrap(all).order(java.nio.ByteOrder.LITTLE_ENDIAN).putInt(0, size);
        return all;
    }

    /** Writes bits and values of fixed width. */
    private void fields(byte[] to, int at, Record record, List<Place> places, List<?> values) {
        for (int i = 0; i < places.size(); i++) {
            Place place = places.get(i);
            Object value = values.get(i);
            if (value == null) {
                continue;
            }
            if (place.bit() >= 0) {
                to[at + record.bitsAt + place.bit() / 8] |= (byte) (1 << place.bit() % 8);
            }
            if (place.type().id() == TypeId.STRUCT) {
                fields(to, at, record, place.fields(), (List<?>) value);
            } else if (place.tail() < 0) {
                byte[] fixed = fixed(place.type(), value);
                System.arraycopy(fixed, 0, to, at + place.at(), fixed.length);
            }
        }
    }

    static byte[] fixed(Type type, Object value) {
        ByteBuffer bytes = ByteBuffer.allocate(Math.max(type.width(), 1))
                .order(java.nio.ByteOrder.LITTLE_ENDIAN);
        switch (type.id()) {
            case BOOLEAN -> bytes.put((byte) ((boolean) value ? 1 : 0));
            case FIXED_BINARY -> bytes.put(HexFormat.of().parseHex((String) value));
            case FLOAT16, FLOAT32, FLOAT64 -> put(bytes, new BigInteger((String) value, 16));
            case INTERVAL_DAY_TIME, INTERVAL_MONTH_DAY_NANO -> {
                List<?> parts = (List<?>) value;
                bytes.putInt(Integer.parseInt((String) parts.get(0)));
                bytes.putInt(Integer.parseInt((String) parts.get(1)));
                if (parts.size() > 2) {
                    bytes.putLong(Long.parseLong((String) parts.get(2)));
                }
            }
            default -> put(bytes, new BigInteger((String) value));
        }
        return bytes.array();
    }

    private static void put(ByteBuffer bytes, BigInteger number) {
        for (int i = 0; i < bytes.capacity(); i++) {
            bytes.put(number.shiftRight(8 * i).byteValue());
        }
    }

    /** Writes the tails of a record, and the places that refer to them. */
    private void tailsOf(byte[] to, int at, Record record, List<Place> places, List<?> values) {
        for (int i = 0; i < places.size(); i++) {
            Place place = places.get(i);
            Object value = values.get(i);
            if (value == null) {
                continue;
            }
            if (place.type().id() == TypeId.STRUCT) {
                tailsOf(to, at, record, place.fields(), (List<?>) value);
            } else if (place.items() != null) {
                items(to, at + place.at(), place, (List<?>) value);
            } else if (place.tail() >= 0) {
                string(to, at + place.at(), place.type().id() == TypeId.UTF8
                        ? ((String) value).getBytes(StandardCharsets.UTF_8)
                        : HexFormat.of().parseHex((String) value));
            }
        }
    }

    private static ByteBuffer words(byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(java.nio.ByteOrder.LITTLE_ENDIAN);
    }

    private void string(byte[] to, int at, byte[] string) {
        words(to).putInt(at, string.length).put(at + 4, string, 0, Math.min(string.length, 4));
        if (string.length <= 12) {
            System.arraycopy(string, 0, to, at + 4, string.length);
        } else {
            words(to).putInt(at + 12, cursor);
            append(string);
        }
    }

    private void append(byte[] bytes) {
        tails.writeBytes(bytes);
        cursor += bytes.length;
    }

    private void items(byte[] to, int at, Place place, List<?> items) {
        if (items.isEmpty()) {
            return;
        }
        append(new byte[(8 - cursor % 8) % 8]);
        words(to).putInt(at, cursor).putInt(at + 4, items.size());
        Record record = place.items().record();
        int bitmapBytes = (int) place.items().bitmapBytes(items.size());
        var bytes = new byte[bitmapBytes + items.size() * record.stride];
        for (int i = 0; i < items.size(); i++) {
            if (items.get(i) != null || !place.items().nullable()) {
                if (bitmapBytes > 0) {
                    bytes[i / 8] |= (byte) (1 << i % 8);
                }
                fields(bytes, bitmapBytes + i * record.stride, record, record.fields,
                        java.util.Collections.singletonList(items.get(i)));
            }
        }
        // The items' tails follow all records, and their places are in the records. So the records
        // are appended once the offsets are known.
        var behind = new ValuePages();
        behind.cursor = cursor + bytes.length;
        for (int i = 0; i < items.size(); i++) {
            if (items.get(i) != null) {
                behind.tailsOf(bytes, bitmapBytes + i * record.stride, record, record.fields,
                        java.util.Collections.singletonList(items.get(i)));
            }
        }
        append(bytes);
        append(behind.tails.toByteArray());
    }
}
