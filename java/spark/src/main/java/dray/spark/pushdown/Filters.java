package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Or;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * Predicates of Spark's as conditions of a database's.
 *
 * @param conditions SQL, of which all must be true. Some of them are implied by what is kept
 * @param pushed     the predicates that the conditions decide
 * @param kept       the predicates that Spark must still evaluate
 */
public record Filters(List<String> conditions, List<Predicate> pushed, List<Predicate> kept) {
    /** Servers limit the bytes of a statement. */
    private static final int CONDITION_CHARACTERS_MAX = 1 << 18;

    /** Translates what the database means as Spark does. */
    public static Filters translate(Dialect dialect, List<SourceColumn> columns,
            Predicate... predicates) {
        var filters = new Filters(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        var translator = new Translator(dialect, columns);
        for (Predicate predicate : predicates) {
            String exact = condition(translator, predicate);
            String condition = exact == null ? weaker(translator, predicate) : exact;
            if (condition != null) {
                filters.conditions.add(condition);
            }
            (exact == null ? filters.kept : filters.pushed).add(predicate);
        }
        return filters;
    }

    private static String condition(Translator translator, Predicate predicate) {
        try {
            String sql = translator.predicate(predicate);
            return sql.length() <= CONDITION_CHARACTERS_MAX ? sql : null;
        } catch (Untranslatable kept) {
            return null;
        }
    }

    /** A condition that is true of each row of which the predicate is; or null. */
    private static String weaker(Translator translator, Predicate predicate) {
        boolean and = predicate instanceof And;
        if (!and && !(predicate instanceof Or)) {
            return null;
        }
        var sides = new ArrayList<String>();
        for (var child : predicate.children()) {
            String side = condition(translator, (Predicate) child);
            side = side == null ? weaker(translator, (Predicate) child) : side;
            if (side != null) {
                sides.add(side);
            } else if (!and) {
                return null;
            }
        }
        return sides.isEmpty() ? null : "(" + String.join(and ? " AND " : " OR ", sides) + ")";
    }
}
