package dray.page;

import java.util.List;

/**
 * A type with its parameters ({@code spec/types.md} section 2). Those that a type does not have are
 * 0, empty or null.
 *
 * @param id which type it is
 * @param width bytes of a value of fixed width, 0 of others
 * @param precision of decimals
 * @param scale of decimals
 * @param unit of times, timestamps and durations: 0 s, 1 ms, 2 µs, 3 ns
 * @param zone of timestamps; empty if there is none
 * @param size of fixed lists
 * @param ordered of maps (sorted) and dictionaries
 * @param children the fields of a struct, the item of a list, key and value of a map, and the
 *     values of a dictionary
 * @param index the type of a dictionary's indices
 */
public record Type(
        TypeId id, int width, int precision, int scale, int unit, String zone, int size,
        boolean ordered, List<Field> children, TypeId index) {

    static Type of(TypeId id, int width) {
        return new Type(id, width, 0, 0, 0, "", 0, false, List.of(), null);
    }

    /** The type of the values: of a dictionary's entries, else itself. */
    public Type value() {
        Type type = this;
        while (type.id == TypeId.DICTIONARY) {
            type = type.children.get(0).type();
        }
        return type;
    }

    /** Whether all values are missing anyway, so that there is no validity bit. */
    boolean isNull() {
        return value().id == TypeId.NULL;
    }
}
