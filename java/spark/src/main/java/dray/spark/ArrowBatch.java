package dray.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.vector.FieldVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Spark's view of the rows that Arrow vectors hold. */
final class ArrowBatch {
    private final ColumnarBatch batch;
    private final List<DirectColumn> direct = new ArrayList<>();

    ArrowBatch(List<FieldVector> vectors) {
        StructType types = SparkTypes.struct(vectors.stream().map(FieldVector::getField).toList());
        ColumnVector[] columns = new ColumnVector[vectors.size()];
        for (int i = 0; i < columns.length; i++) {
            DirectColumn column = DirectColumn.of(vectors.get(i), types.apply(i).dataType());
            if (column == null) {
                columns[i] = borrowed(vectors.get(i));
            } else {
                columns[i] = column;
                direct.add(column);
            }
        }
        batch = new ColumnarBatch(columns);
    }

    /**
     * Spark closes a batch that it has read before it asks for the next one. A closed struct has
     * no children any more, into which that would come.
     */
    private static ColumnVector borrowed(FieldVector vector) {
        return new ArrowColumnVector(vector) {
            @Override
            public void close() {}
        };
    }

    /** Shows the rows that the vectors hold now. */
    void refresh(int rows) {
        direct.forEach(DirectColumn::refresh);
        batch.setNumRows(rows);
    }

    ColumnarBatch get() {
        return batch;
    }

    /** Shows no rows any more. The vectors are their owner's to close. */
    void clear() {
        direct.forEach(DirectColumn::close);
        batch.setNumRows(0);
    }
}
