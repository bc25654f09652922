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

    private Object field(Place place, int depth) {
        return place.bit() >= 0 && random.nextInt(4) == 0 ? null : value(place, depth);
    }

    private Object value(Place place, int depth) {
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

    /** A length around those that need a tail. */
    int length() {
        return random.nextInt(8) == 0 ? random.nextInt(300) : random.nextInt(18);
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
