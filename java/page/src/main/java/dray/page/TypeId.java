package dray.page;

import java.util.Locale;

/** The types of {@code spec/types.md} section 2, in the order of their ids. */
public enum TypeId {
    NULL(0), BOOLEAN(0), INT8(1), INT16(2), INT32(4), INT64(8), UINT8(1), UINT16(2), UINT32(4),
    UINT64(8), FLOAT16(2), FLOAT32(4), FLOAT64(8), DECIMAL32(4), DECIMAL64(8), DECIMAL128(16),
    DECIMAL256(32), DATE32(4), DATE64(8), TIME32(4), TIME64(8), TIMESTAMP(8), DURATION(8),
    INTERVAL_MONTHS(4), INTERVAL_DAY_TIME(8), INTERVAL_MONTH_DAY_NANO(16), UTF8(0), BINARY(0),
    FIXED_BINARY(0), LIST(0), FIXED_LIST(0), STRUCT(0), MAP(0), DICTIONARY(0);

    /** The width in bytes; 0 of types without one that the id fixes. */
    final int width;
    private final String word = name().toLowerCase(Locale.ROOT);

    TypeId(int width) {
        this.width = width;
    }

    /** Its name, as in {@code spec/vectors/README.md}. */
    @Override
    public String toString() {
        return word;
    }
}
