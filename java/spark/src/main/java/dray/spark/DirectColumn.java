package dray.spark;

import java.util.Objects;
import org.apache.arrow.vector.BaseVariableWidthVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The values of an Arrow vector, read where they lie in memory. Spark's own {@code
 * ArrowColumnVector} checks bounds and references several times for each value, and makes a {@code
 * BigDecimal} of each decimal.
 *
 * <p>Rows are checked against the length of the batch, so that a batch that is gone is an error and
 * no read of memory that others use now.
 */
final class DirectColumn extends ColumnVector {
    private static final int DECIMAL_BYTES = 16;

    private final FieldVector vector;
    private final int precision;
    private final int scale;
    private int length;
    private int nulls;
    /** Address of a bit for each row, which is 0 if it is NULL. */
    private long validity;
    /** Address of the values, or of their offsets if they vary in width. */
    private long values;
    /** Address of the bytes that offsets refer to. */
    private long bytes;

    private DirectColumn(FieldVector vector, DataType type) {
        super(type);
        this.vector = vector;
        precision = type instanceof DecimalType decimal ? decimal.precision() : 0;
        scale = type instanceof DecimalType decimal ? decimal.scale() : 0;
    }

    /** The column of a vector that holds no rows yet; null if its values are not read so. */
    static DirectColumn of(FieldVector vector, DataType type) {
        return isDirect(vector.getField().getType()) ? new DirectColumn(vector, type) : null;
    }

    private static boolean isDirect(ArrowType type) {
        switch (type.getTypeID()) {
            case Bool, Int, FloatingPoint, Utf8, Binary, Date, Timestamp, Duration: return true;
            case Decimal:
                return ((ArrowType.Decimal) type).getPrecision() <= Decimal.MAX_LONG_DIGITS();
            default: return false;
        }
    }

    /** Takes the rows that the vector has now. They are read until it changes. */
    void refresh() {
        length = vector.getValueCount();
        nulls = vector.getNullCount();
        validity = vector.getValidityBuffer().memoryAddress();
        if (vector instanceof BaseVariableWidthVector) {
            values = vector.getOffsetBuffer().memoryAddress();
            bytes = vector.getDataBuffer().memoryAddress();
        } else {
            values = vector.getDataBuffer().memoryAddress();
        }
    }

    /** Forgets all rows. */
    @Override
    public void close() {
        length = 0;
        nulls = 0;
    }

    /** The address of a value of so many bytes. */
    private long at(int row, int width) {
        return values + (long) Objects.checkIndex(row, length) * width;
    }

    private static boolean bit(long address, int row) {
        return (Platform.getByte(null, address + (row >> 3)) & 1 << (row & 7)) != 0;
    }

    @Override
    public boolean hasNull() {
        return nulls > 0;
    }

    @Override
    public int numNulls() {
        return nulls;
    }

    @Override
    public boolean isNullAt(int row) {
        return nulls > 0 && !bit(validity, Objects.checkIndex(row, length));
    }

    @Override
    public boolean getBoolean(int row) {
        return bit(values, Objects.checkIndex(row, length));
    }

    @Override
    public byte getByte(int row) {
        return Platform.getByte(null, at(row, Byte.BYTES));
    }

    @Override
    public short getShort(int row) {
        return Platform.getShort(null, at(row, Short.BYTES));
    }

    @Override
    public int getInt(int row) {
        return Platform.getInt(null, at(row, Integer.BYTES));
    }

    @Override
    public long getLong(int row) {
        return Platform.getLong(null, at(row, Long.BYTES));
    }

    @Override
    public float getFloat(int row) {
        return Platform.getFloat(null, at(row, Float.BYTES));
    }

    @Override
    public double getDouble(int row) {
        return Platform.getDouble(null, at(row, Double.BYTES));
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        if (isNullAt(row)) {
            return null;
        }
        long at = at(row, DECIMAL_BYTES);
        long value = Platform.getLong(null, at);
        if (Platform.getLong(null, at + Long.BYTES) != value >> Long.SIZE - 1
                || precision != this.precision || scale != this.scale) {
            throw new ArithmeticException("a decimal of column " + vector.getName()
                    + " has more digits than " + type.simpleString() + " holds");
        }
        return Decimal.createUnsafe(value, precision, scale);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        if (isNullAt(row)) {
            return null;
        }
        long at = at(row, Integer.BYTES);
        int start = Platform.getInt(null, at);
        int end = Platform.getInt(null, at + Integer.BYTES);
        return UTF8String.fromAddress(null, bytes + start, end - start);
    }

    @Override
    public byte[] getBinary(int row) {
        return isNullAt(row) ? null : getUTF8String(row).getBytes();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        throw new UnsupportedOperationException();
    }
}
