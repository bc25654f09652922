package dray.spark;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A write as Spark runs it. */
final class DrayWrite implements Write, BatchWrite {
    private final DrayOptions options;
    private final WriteJob job;

    DrayWrite(DrayOptions options, WriteJob job) {
        this.options = options;
        this.job = job;
    }

    @Override
    public String description() {
        return "dray";
    }

    @Override
    public BatchWrite toBatch() {
        return this;
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
        StagingTable staging = job.begin(SparkContext.getOrCreate().applicationId());
        return new DrayWriterFactory(options, staging.table(), staging.rows());
    }

    /** Attempts don't get into each other's way, so none has to ask whether it may commit. */
    @Override
    public boolean useCommitCoordinator() {
        return false;
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {
        List<WrittenRows> attempts =
                Stream.of(messages).map(message -> (WrittenRows) message).toList();
        Snapshots.checkReceipts(SparkContext.getOrCreate());
        job.commit(attempts);
    }

    @Override
    public void abort(WriterCommitMessage[] messages) {
        job.abort();
    }
}
