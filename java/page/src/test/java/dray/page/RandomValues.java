package dray.page;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;

/** Random values of a layout, as {@link Values} has them. */
final class RandomValues {
    private static final String[] LETTERS = {"a", "b", "0", " ", "é", "ß", "€", "𝄞", "z"};

    private final Random random;
    /** Whether some strings are longer than a page. */
    boolean longer;

    RandomValues(Random random) {
        this.random = random;
    }

    List<Object> row(Layout layout) {
        return fields(layout.record.fields, 3);
    }

    private List<Object> fields(List<Place> places, int depth) {
        var values = new ArrayList<>();
        places.forEach(place -> values.add(field(place, depth)));
        return values;
    }

    Object field(Place place, int depth) {
        return place.bit() >= 0 && random.nextInt(4) == 0 ? null : value(place, depth);
    }

    Object value(Place place, int depth) {
        Type type = place.type();
        return switch (type.id()) {
            case NULL -> null;
            case STRUCT -> fields(place.fields(), depth);
            case BOOLEAN -> random.nextBoolean();
            case UTF8 -> text();
            case BINARY -> hex(length());
            case FIXED_BINARY -> hex(type.width());
            case LIST, MAP -> items(place, depth == 0 ? 0 : random.nextInt(4), depth);
            case FIXED_LIST -> items(place, type.size(), depth);
            case FLOAT16, FLOAT32, FLOAT64 -> hex(type.width());
            case INTERVAL_DAY_TIME -> List.of(integer(4), integer(4));
            case INTERVAL_MONTH_DAY_NANO -> List.of(integer(4), integer(4), integer(8));
            case UINT8, UINT16, UINT32, UINT64 ->
                new BigInteger(type.width() * 8, random).toString();
            default -> integer(type.width());
        };
    }

    private List<Object> items(Place place, int count, int depth) {
        var items = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            boolean missing = place.items().nullable() && random.nextInt(3) == 0;
            items.add(missing ? null : value(place.items().record().fields.get(0), depth - 1));
        }
        return items;
    }

    /** What a field has that was not written. */
    static Object unset(Place place) {
        if (place.bit() >= 0 || place.type().id() == TypeId.NULL) {
            return null;
        }
        Type type = place.type();
        return switch (type.id()) {
            case STRUCT -> {
                var fields = new ArrayList<>();
                place.fields().forEach(field -> fields.add(unset(field)));
                yield fields;
            }
            case BOOLEAN -> false;
            case UTF8, BINARY -> "";
            case LIST, MAP -> new ArrayList<>();
            case FIXED_LIST -> {
                var items = new ArrayList<>();
                for (int i = 0; i < type.size(); i++) {
                    items.add(unsetItem(place));
                }
                yield items;
            }
            case FIXED_BINARY, FLOAT16, FLOAT32, FLOAT64 -> "00".repeat(type.width());
            case INTERVAL_DAY_TIME -> List.of("0", "0");
            case INTERVAL_MONTH_DAY_NANO -> List.of("0", "0", "0");
            default -> "0";
        };
    }

    static Object unsetItem(Place list) {
        return list.items().nullable() ? null : unset(list.items().record().fields.get(0));
    }

    /** A length around those that need a tail. */
    int length() {
        int most = longer && random.nextInt(8) == 0 ? 6000 : 300;
        return random.nextInt(8) == 0 ? random.nextInt(most) : random.nextInt(18);
    }

    String text() {
        var text = new StringBuilder();
        for (int left = length(); left > 0; left--) {
            text.append(LETTERS[random.nextInt(random.nextInt(4) == 0 ? LETTERS.length : 3)]);
        }
        return text.toString();
    }

    private String hex(int count) {
        var bytes = new byte[count];
        random.nextBytes(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private String integer(int width) {
        int bits = random.nextInt(3) == 0 ? 5 : width * 8 - 1;
        var number = new BigInteger(bits, random);
        return (random.nextBoolean() ? number : number.not()).toString();
    }
}
