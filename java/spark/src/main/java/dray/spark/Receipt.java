package dray.spark;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.TaskContext;

/**
 * The receipt of a part that was read to its end (spec/partitions.md section 4), and what has read
 * it.
 *
 * @param stage     Spark's number of the stage, -1 if a program reads by itself
 * @param execution Spark's number of the execution of SQL, or null
 */
record Receipt(byte[] bytes, int stage, String execution) implements Serializable {
    private static final long serialVersionUID = 1;
    private static final int BYTES = 80;
    private static final int INDEX = 24;
    private static final int ROWS = 32;
    private static final int DIGEST = 40;
    private static final int NO_STAGE = -1;

    Receipt {
        if (bytes.length != BYTES) {
            throw new DrayException("a receipt has " + bytes.length + " bytes, expected " + BYTES);
        }
    }

    /** Of a task, which is null if a program reads by itself. */
    static Receipt of(byte[] bytes, TaskContext task) {
        return task == null ? new Receipt(bytes, NO_STAGE, null) : new Receipt(
                bytes, task.stageId(), task.getLocalProperty(Snapshots.EXECUTION_ID));
    }

    int part() {
        return values().getInt(INDEX);
    }

    long rows() {
        return values().getLong(ROWS);
    }

    private long digest() {
        return values().getLong(DIGEST);
    }

    private ByteBuffer values() {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** What belongs together: an execution of SQL, or without one a stage. */
    String run() {
        return execution == null ? "stage " + stage : "execution " + execution;
    }

    /** What it disagrees about with another one of the part, empty if nothing. */
    String difference(Receipt other) {
        return rows() == other.rows() && digest() == other.digest() ? ""
                : "part " + part() + " was read twice, with different rows: " + other.rows()
                        + " and " + rows() + " of them";
    }
}
