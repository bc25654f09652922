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
 * the same value, NULL where Spark has NULL, and no error. The entries are functions without state.
 * A scan
 *
 * <ol>
 * <li>takes a {@link dray.spark.pushdown.Dialect}, runs its {@code describe} once for a table, and
 *     makes columns of the answer by {@link dray.spark.pushdown.SourceColumn#list}; when it runs,
 *     the answer must be the same;
 * <li>adds the conditions of {@link dray.spark.pushdown.Filters}, and gives Spark what is kept;
 * <li>takes select list, groups and schema of {@link dray.spark.pushdown.Aggregates} if it reads
 *     one part, or if they are partial and each part computes its own;
 * <li>takes the terms of {@link dray.spark.pushdown.Ordering} together with a limit;
 * <li>becomes the statement of {@link dray.spark.pushdown.Joins} if both sides are whole.
 * </ol>
 */
package dray.spark.pushdown;
