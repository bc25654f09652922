package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * Predicates of Spark's as conditions of a database's.
 *
 * @param conditions SQL, of which all must be true. Some of them are implied by what is kept
 * @param pushed     the predicates that the conditions decide
 * @param kept       the predicates that Spark must still evaluate
 */
public record Filters(List<String> conditions, List<Predicate> pushed, List<Predicate> kept) {
    /** All that the conditions may have. {@code dray serve} takes statements of 2 MiB. */
    private static final int CHARACTERS_MAX = 1 << 18;
    /** {@code dray serve} takes trees of operators that are 1,000 deep, as a chain of these is. */
    private static final int CONDITIONS_MAX = 500;

    /** Translates what the database means as Spark does. */
    public static Filters translate(Dialect dialect, List<SourceColumn> columns,
            Predicate... predicates) {
        var filters = new Filters(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
        var translator = new Translator(dialect, columns);
        int characters = 0;
        for (Predicate predicate : predicates) {
            String exact = orNull(() -> translator.predicate(predicate));
            String condition = exact == null ? orNull(() -> translator.weaker(predicate)) : exact;
            boolean fits = condition != null && filters.conditions.size() < CONDITIONS_MAX
                    && condition.length() <= CHARACTERS_MAX - characters;
            if (fits) {
                filters.conditions.add(condition);
                characters += condition.length();
            }
            (fits && exact != null ? filters.pushed : filters.kept).add(predicate);
        }
        return filters;
    }

    private interface Translation {
        String run() throws Untranslatable;
    }

    private static String orNull(Translation translation) {
        try {
            return translation.run();
        } catch (Untranslatable kept) {
            return null;
        }
    }
}
