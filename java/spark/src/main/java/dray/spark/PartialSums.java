package dray.spark;

import dray.spark.pushdown.Aggregates;
import java.io.Serializable;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The columns of partial aggregates that Spark adds up: counts and sums.
 *
 * <p>Spark casts a part's sum of decimals to the type of what was summed before it adds it to
 * others. A sum of more digits would be an error, or get lost. So a row with such a sum becomes
 * several, whose sums are small enough, with the same group and the same extremes, and
 * counts of 0 in all but the first. These are never more rows than were summed.
 *
 * @param types the types that Spark casts to, by the column's number
 */
record PartialSums(TreeMap<Integer, DataType> types) implements Serializable {
    /** The most rows of a batch that is made here. */
    private static final int ROWS_MAX = 8192;

    static PartialSums of(Aggregates aggregates) {
        return new PartialSums(new TreeMap<>(aggregates.summed()));
    }

    /** Splits the rows that {@code root} has whenever it is asked to. */
    Splitter splitter(VectorSchemaRoot root, BufferAllocator allocator) {
        return new Splitter(root, types, allocator);
    }

    /** The greatest value of a type, without its point. */
    private static BigInteger greatest(DataType type) {
        return type instanceof DecimalType decimal
                ? BigInteger.TEN.pow(decimal.precision()).subtract(BigInteger.ONE)
                : BigInteger.valueOf(Long.MAX_VALUE);
    }

    /** The rows of one reader. */
    static final class Splitter implements AutoCloseable {
        private final VectorSchemaRoot source;
        private final VectorSchemaRoot target;
        private final ArrowBatch batch;
        private final int[] columns;
        private final BigInteger[] greatest;
        /** What is left of the sums of the row that is being split. */
        private final BigInteger[] left;
        private int row;

        private Splitter(VectorSchemaRoot source, SortedMap<Integer, DataType> types,
                BufferAllocator allocator) {
            this.source = source;
            target = VectorSchemaRoot.create(source.getSchema(), allocator);
            batch = new ArrowBatch(target.getFieldVectors());
            columns = types.keySet().stream().mapToInt(Integer::intValue).toArray();
            greatest = types.values().stream().map(PartialSums::greatest)
                    .toArray(BigInteger[]::new);
            left = new BigInteger[columns.length];
        }

        /** Splits the rows that have come, if any of them has to be; or returns false. */
        boolean begin() {
            row = 0;
            for (int i = 0; i < columns.length; i++) {
                FieldVector vector = source.getVector(columns[i]);
                if (!(vector instanceof DecimalVector)) {
                    continue;
                }
                for (int at = 0; at < source.getRowCount(); at++) {
                    BigInteger sum = value(vector, at);
                    if (sum != null && sum.abs().compareTo(greatest[i]) > 0) {
                        load();
                        return next();
                    }
                }
            }
            return false;
        }

        /** The next rows; false if there are no more. */
        boolean next() {
            if (row >= source.getRowCount()) {
                return false;
            }
            batch.clear();
            target.clear();
            int count = 0;
            while (count < ROWS_MAX && row < source.getRowCount()) {
                add(count);
                count++;
            }
            target.setRowCount(count);
            batch.refresh(count);
            return true;
        }

        /** Adds a row, and goes on to the next one if nothing of it is left. */
        private void add(int at) {
            List<FieldVector> vectors = target.getFieldVectors();
            boolean more = false;
            int sum = 0;
            for (int i = 0; i < vectors.size(); i++) {
                if (sum == columns.length || columns[sum] != i) {
                    vectors.get(i).copyFromSafe(row, at, source.getVector(i));
                    continue;
                }
                BigInteger piece = left[sum];
                if (piece != null) {
                    piece = piece.min(greatest[sum]).max(greatest[sum].negate());
                    left[sum] = left[sum].subtract(piece);
                    more |= left[sum].signum() != 0;
                }
                set(vectors.get(i), at, piece);
                sum++;
            }
            if (!more) {
                row++;
                load();
            }
        }

        private void load() {
            for (int i = 0; i < columns.length && row < source.getRowCount(); i++) {
                left[i] = value(source.getVector(columns[i]), row);
            }
        }

        ColumnarBatch batch() {
            return batch.get();
        }

        @Override
        public void close() {
            batch.clear();
            target.close();
        }
    }

    /** The value without its point; null if it is NULL. */
    private static BigInteger value(FieldVector vector, int at) {
        if (vector.isNull(at)) {
            return null;
        }
        return vector instanceof DecimalVector decimals ? decimals.getObject(at).unscaledValue()
                : BigInteger.valueOf(((BigIntVector) vector).get(at));
    }

    private static void set(FieldVector vector, int at, BigInteger value) {
        if (vector instanceof DecimalVector decimals) {
            if (value == null) {
                decimals.setNull(at);
            } else {
                decimals.setSafe(at, new BigDecimal(value, decimals.getScale()));
            }
        } else if (value == null) {
            ((BigIntVector) vector).setNull(at);
        } else {
            ((BigIntVector) vector).setSafe(at, value.longValueExact());
        }
    }
}
