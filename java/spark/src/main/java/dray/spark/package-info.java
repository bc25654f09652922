/**
 * The connector for Apache Spark: tables and queries of databases as columnar batches, and rows
 * into tables of PostgreSQL.
 *
 * <pre>
 *   driver:    DraySource, DrayCatalog → DrayTable → DrayScanBuilder → DrayScan ─ plan, snapshot
 *                                                                         │ parts (bytes)
 *   executors: DrayReaderFactory → DrayReader ─ Native ─ libdray_jni.so ◀─┘
 *
 *   driver:    DrayTable, NewTable → DrayWriteBuilder → DrayWrite → WriteJob ─ begin, commit
 *                                                                     │ StagingTable
 *   executors: DrayWriterFactory → DrayWriter → TableWriter ─ Native ◀┘
 * </pre>
 */
package dray.spark;
