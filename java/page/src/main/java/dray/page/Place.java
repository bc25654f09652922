package dray.page;

import java.util.List;

/**
 * The place of a field in its record.
 *
 * @param field as the schema has it
 * @param type its type; of a dictionary that of the values
 * @param bit its validity bit, or -1
 * @param bitsEnd the bit after its own and those of the fields within it
 * @param around its validity bit, or that of the nearest struct around it that has one, or -1
 * @param at the offset from the start of the record; unused for structs and nulls
 * @param bytes that it takes
 * @param items of a list, else null
 * @param fields of a struct
 * @param tail its number among the tails of the record, or -1
 */
record Place(
        Field field, Type type, int bit, int bitsEnd, int around, int at, int bytes, Items items,
        List<Place> fields, int tail) {

    /** The items of a list: a record with a single field. */
    record Items(boolean nullable, Record record) {
        /** The bytes of the bitmap before items. */
        long bitmapBytes(long count) {
            return nullable ? Memory.pad((count + 7) >>> 3, Record.ALIGNMENT) : 0;
        }
    }

    /** A fixed list's number of items; -1 of others. */
    int size() {
        return type.id() == TypeId.FIXED_LIST ? type.size() : -1;
    }
}
