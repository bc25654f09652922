/**
 * The connector for Apache Spark: tables and queries of databases as columnar batches.
 *
 * <pre>
 *   driver:    DraySource, DrayCatalog → DrayTable → DrayScanBuilder → DrayScan ─ plan, snapshot
 *                                                                         │ parts (bytes)
 *   executors: DrayReaderFactory → DrayReader ─ Native ─ libdray_jni.so ◀─┘
 * </pre>
 */
package dray.spark;
