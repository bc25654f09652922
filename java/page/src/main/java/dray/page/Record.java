package dray.page;

import java.util.ArrayList;
import java.util.List;

/** The fields of an object, or of an item of a list ({@code spec/page.md} section 3). */
final class Record {
    /** Records and extents are smaller than this. */
    static final long BYTES_END = 1L << 31;
    static final int EXTENT_HEADER_BYTES = 4;
    static final int ALIGNMENT = 8;
    static final int STRING_BYTES = 16;
    static final int INLINE_MAX = 12;
    static final int LIST_BYTES = 8;

    final List<Place> fields;
    final int bitsAt;
    final int bits;
    final int end;
    final int stride;
    /** All fields but structs and nulls, in the schema's order. */
    final Place[] leaves;
    /** Those that may have a tail, in the order of their tails. */
    final Place[] tails;
    /** Pairs of offsets between which all bytes are 0. */
    final int[] gaps;
    final int[] booleans;
    /** For each validity bit what is 0 if it is: the bit after those within, and the places. */
    final int[] withinEnd;
    final Place[][] absent;
    /** Whether a verifier has anything to check in it. */
    final boolean isChecked;

    private Record(Plan plan, List<Place> fields, int bitsAt, int fixedAt, int end, int stride) {
        this.fields = fields;
        this.bitsAt = bitsAt;
        this.bits = plan.bits;
        this.end = end;
        this.stride = stride;
        var all = new ArrayList<Place>();
        withinEnd = new int[bits];
        list(fields, all);
        leaves = all.toArray(Place[]::new);
        tails = all.stream().filter(place -> place.tail() >= 0).toArray(Place[]::new);
        booleans = all.stream().filter(place -> place.type().id() == TypeId.BOOLEAN)
                .mapToInt(Place::at).toArray();
        var ofBits = new ArrayList<List<Place>>();
        for (int bit = 0; bit < bits; bit++) {
            ofBits.add(new ArrayList<>());
        }
        all.stream().filter(place -> place.around() >= 0)
                .forEach(place -> ofBits.get(place.around()).add(place));
        absent = ofBits.stream().map(places -> places.toArray(Place[]::new))
                .toArray(Place[][]::new);
        int bitsEnd = bitsAt + (bits + 7) / 8;
        // The tails of an object follow its record without padding.
        int last = bitsAt == 0 ? stride : end;
        gaps = bitsEnd == fixedAt
                ? end == last ? new int[0] : new int[] {end, last}
                : end == last ? new int[] {bitsEnd, fixedAt}
                        : new int[] {bitsEnd, fixedAt, end, last};
        isChecked = bits > 0 || gaps.length > 0 || booleans.length > 0 || tails.length > 0;
    }

    private void list(List<Place> places, List<Place> leaves) {
        for (Place place : places) {
            if (place.bit() >= 0) {
                withinEnd[place.bit()] = place.bitsEnd();
            }
            if (place.type().id() == TypeId.STRUCT) {
                list(place.fields(), leaves);
            } else if (place.type().id() != TypeId.NULL) {
                leaves.add(place);
            }
        }
    }

    /** The record of an object. */
    static Record ofObject(List<Field> fields) {
        return new Plan().record(fields, EXTENT_HEADER_BYTES);
    }

    private static Place.Items items(Field item) {
        // The item's validity bit is in the bitmap before the items.
        var single = new Field(item.name(), false, item.type(), item.metadata());
        boolean nullable = item.nullable() && !item.type().isNull();
        return new Place.Items(nullable, new Plan().record(List.of(single), 0));
    }

    private static Place.Items pairs(Type map) {
        var pair = new Type(TypeId.STRUCT, 0, 0, 0, 0, "", 0, false, map.children(), null);
        return new Place.Items(false,
                new Plan().record(List.of(new Field("", false, pair, List.of())), 0));
    }

    /** A record whose fields are being listed. */
    private static final class Plan {
        int bits;
        int tails;
        final List<int[]> places = new ArrayList<>();
        private int[] offsets;
        private int next;

        Record record(List<Field> fields, int bitsAt) {
            fields.forEach(field -> measure(field.type()));
            int alignment = places.stream().mapToInt(place -> place[1]).max().orElse(1);
            fields.forEach(field -> countBits(field.type(), field.nullable()));
            int fixedAt = Memory.pad(bitsAt + (bits + 7) / 8, alignment);
            long end = fixedAt;
            offsets = new int[places.size()];
            for (int own = ALIGNMENT; own > 0; own /= 2) {
                for (int i = 0; i < offsets.length; i++) {
                    if (places.get(i)[1] == own) {
                        offsets[i] = (int) Math.min(end, Integer.MAX_VALUE);
                        end += places.get(i)[0];
                    }
                }
            }
            if (end >= BYTES_END) {
                throw new PageException(Refusal.LIMIT, "the record of this schema has " + end
                        + " bytes, the most are " + (BYTES_END - 1));
            }
            bits = 0;
            var placed = place(fields, -1);
            long stride = Memory.pad(end, (long) alignment);
            return new Record(this, placed, bitsAt, fixedAt, (int) end,
                    (int) Math.min(stride, Integer.MAX_VALUE));
        }

        private void measure(Type any) {
            Type type = any.value();
            if (type.id() == TypeId.STRUCT) {
                type.children().forEach(field -> measure(field.type()));
            } else if (type.id() != TypeId.NULL) {
                int bytes = bytes(type);
                boolean isBytes = type.id() == TypeId.FIXED_BINARY;
                places.add(new int[] {bytes, isBytes ? 1 : Math.min(bytes, ALIGNMENT)});
            }
        }

        private void countBits(Type any, boolean nullable) {
            bits += nullable && !any.isNull() ? 1 : 0;
            if (any.value().id() == TypeId.STRUCT) {
                any.value().children().forEach(field -> countBits(field.type(), field.nullable()));
            }
        }

        private static int bytes(Type type) {
            return switch (type.id()) {
                case BOOLEAN -> 1;
                case UTF8, BINARY -> STRING_BYTES;
                case LIST, FIXED_LIST, MAP -> LIST_BYTES;
                default -> type.width();
            };
        }

        private List<Place> place(List<Field> fields, int around) {
            var placed = new ArrayList<Place>();
            fields.forEach(field -> placed.add(place(field, around)));
            return List.copyOf(placed);
        }

        private Place place(Field field, int structsBit) {
            Type type = field.type().value();
            int bit = field.nullable() && type.id() != TypeId.NULL ? bits++ : -1;
            int around = bit >= 0 ? bit : structsBit;
            if (type.id() == TypeId.NULL) {
                return new Place(field, type, bit, bits, around, 0, 0, null, List.of(), -1);
            }
            if (type.id() == TypeId.STRUCT) {
                List<Place> within = place(type.children(), around);
                return new Place(field, type, bit, bits, around, 0, 0, null, within, -1);
            }
            Place.Items items = switch (type.id()) {
                case LIST, FIXED_LIST -> items(type.children().get(0));
                case MAP -> pairs(type);
                default -> null;
            };
            boolean isString = type.id() == TypeId.UTF8 || type.id() == TypeId.BINARY;
            int tail = isString || items != null ? tails++ : -1;
            return new Place(field, type, bit, bits, around, offsets[next++], bytes(type), items,
                    List.of(), tail);
        }
    }
}
