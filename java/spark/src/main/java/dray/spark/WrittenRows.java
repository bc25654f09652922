package dray.spark;

import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * What an attempt at a task has put into the staging table.
 *
 * @param attempt its number, which no other attempt of the application has
 * @param rows    as the server has counted them
 */
record WrittenRows(long attempt, long rows) implements WriterCommitMessage {}
