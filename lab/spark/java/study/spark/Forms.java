package study.spark;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import study.Entries;
import study.Implementation;
import study.Item;
import study.Kind;
import study.Merge;
import study.Sink;
import study.implementation.DrayPages;
import study.model.Entry;
import study.model.SparseVector;

/** The forms of vectors. */
final class Forms {
    private Forms() {}

    /** A list of objects, which Spark's serializer writes. */
    static final class Objects implements TreeSum.Form<SparseVector> {
        @Override
        public SparseVector of(SparseVector plain) {
            return plain;
        }

        @Override
        public SparseVector sum(SparseVector one, SparseVector other) {
            SparseVector sum = new SparseVector();
            Merge.of(List.of(one, other),
                    (position, value) -> sum.entries.add(new Entry(position, value)));
            return sum;
        }

        @Override
        public long checksum(SparseVector vector) {
            return vector.checksum();
        }
    }

    /** Positions and values as arrays of a class, which Spark's serializer writes. */
    static final class Columns implements Serializable, Entries {
        private static final long serialVersionUID = 1;

        final int[] positions;
        final double[] values;
        private int size;

        /** For Kryo, which sets the fields. */
        Columns() {
            this(0);
        }

        Columns(int size) {
            positions = new int[size];
            values = new double[size];
        }

        static Columns of(List<Entries> vectors) {
            Columns sum = new Columns(Merge.size(vectors));
            Merge.of(vectors, (position, value) -> {
                sum.positions[sum.size] = position;
                sum.values[sum.size++] = value;
            });
            return sum;
        }

        @Override
        public int size() {
            return size;
        }

        @Override
        public int position(int index) {
            return positions[index];
        }

        @Override
        public double value(int index) {
            return values[index];
        }
    }

    static final class Arrays implements TreeSum.Form<Columns> {
        @Override
        public Columns of(SparseVector plain) {
            return Columns.of(List.of(plain));
        }

        @Override
        public Columns sum(Columns one, Columns other) {
            return Columns.of(List.of(one, other));
        }

        @Override
        public long checksum(Columns vector) {
            return SparseVector.checksum(vector);
        }
    }

    /** A page of Dray, which is read and built in place. Each page that arrives is checked. */
    static final class Dray implements TreeSum.Form<byte[]> {
        private static final ThreadLocal<Implementation> PAGES =
                ThreadLocal.withInitial(() -> DrayPages.of(Kind.VECTOR));

        @Override
        public byte[] of(SparseVector plain) {
            return written(plain);
        }

        @Override
        public byte[] sum(byte[] one, byte[] other) {
            try {
                return written(PAGES.get().sum(List.of(opened(one), opened(other))));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public long checksum(byte[] vector) {
            return SparseVector.checksum(opened(vector));
        }

        private static byte[] written(Item vector) {
            try {
                Sink out = new Sink(1 << 16);
                PAGES.get().encodeMessage(vector, out);
                return java.util.Arrays.copyOf(out.bytes, out.at);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private static Entries opened(byte[] vector) {
            try {
                return (Entries) PAGES.get().openMessage(vector);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    /** A stream of Arrow's format with one batch. */
    static final class Arrow implements TreeSum.Form<byte[]> {
        @Override
        public byte[] of(SparseVector plain) {
            return written(List.of(plain));
        }

        @Override
        public byte[] sum(byte[] one, byte[] other) {
            try (Batch first = new Batch(one); Batch second = new Batch(other)) {
                return written(List.of(first, second));
            }
        }

        @Override
        public long checksum(byte[] vector) {
            try (Batch batch = new Batch(vector)) {
                return SparseVector.checksum(batch);
            }
        }

        private static byte[] written(List<Entries> vectors) {
            int size = Merge.size(vectors);
            ByteArrayOutputStream out = new ByteArrayOutputStream(12 * size + 4096);
            try (BufferAllocator allocator = new RootAllocator();
                    IntVector positions = new IntVector("position", allocator);
                    Float8Vector values = new Float8Vector("value", allocator)) {
                positions.allocateNew(size);
                values.allocateNew(size);
                int[] at = new int[1];
                Merge.of(vectors, (position, value) -> {
                    positions.set(at[0], position);
                    values.set(at[0]++, value);
                });
                VectorSchemaRoot root = VectorSchemaRoot.of(positions, values);
                root.setRowCount(size);
                try (ArrowStreamWriter writer = new ArrowStreamWriter(root, null, out)) {
                    writer.writeBatch();
                }
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            return out.toByteArray();
        }
    }

    /** The batch of a stream. */
    private static final class Batch implements Entries, AutoCloseable {
        private final BufferAllocator allocator = new RootAllocator();
        private final ArrowStreamReader reader;
        private final IntVector positions;
        private final Float8Vector values;

        Batch(byte[] stream) {
            reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator);
            try {
                reader.loadNextBatch();
                positions = (IntVector) reader.getVectorSchemaRoot().getVector(0);
                values = (Float8Vector) reader.getVectorSchemaRoot().getVector(1);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        @Override
        public int size() {
            return positions.getValueCount();
        }

        @Override
        public int position(int index) {
            return positions.get(index);
        }

        @Override
        public double value(int index) {
            return values.get(index);
        }

        @Override
        public void close() {
            try {
                reader.close();
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            allocator.close();
        }
    }
}
