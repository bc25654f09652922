package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;

/** The order of rows, by which a database finds the first of them as Spark does. */
public final class Ordering {
    private Ordering() { }

    /**
     * The terms of {@code ORDER BY}, if the database orders as Spark does. With a limit it is
     * complete for a single part; of several parts each may return its first rows, and Spark sorts
     * them again.
     */
    public static Optional<List<String>> translate(Dialect dialect, List<SourceColumn> columns,
            SortOrder... orders) {
        var translator = new Translator(dialect, columns);
        var texts = new ArrayList<String>();
        try {
            for (SortOrder order : orders) {
                Term term = translator.term(order.expression());
                texts.add(dialect.order(term, order.direction() == SortDirection.DESCENDING,
                        order.nullOrdering() == NullOrdering.NULLS_FIRST));
            }
        } catch (Untranslatable kept) {
            return Optional.empty();
        }
        return texts.isEmpty() ? Optional.empty() : Optional.of(List.copyOf(texts));
    }
}
