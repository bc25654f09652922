/**
 * Translates what Spark wants pushed down to the SQL of a database: filters, aggregates, orders and
 * joins.
 *
 * <pre>
 *  Spark's expression ──Translator, Dialect──▶ Term: the database's SQL, and Spark's type
 *          │
 *          └─ Untranslatable: the database could mean something else, so Spark evaluates it
 * </pre>
 *
 * An expression is translated only if the database computes exactly Spark's value for every row:
 * the same value, NULL where Spark has NULL, and no error. {@link dray.spark.pushdown.Filters},
 * {@link dray.spark.pushdown.Aggregates}, {@link dray.spark.pushdown.Ordering} and
 * {@link dray.spark.pushdown.Joins} are the entries. All of them are functions without state.
 */
package dray.spark.pushdown;
