package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
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
        if (predicate.name().equals("IN")) {
            Predicate range = range(predicate.children());
            return range == null ? null : condition(translator, range);
        }
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
        if (sides.size() < 2) {
            return sides.isEmpty() ? null : sides.get(0);
        }
        return "(" + String.join(and ? " AND " : " OR ", sides) + ")";
    }

    /** From the least to the greatest of a list of integers or dates that is too long; or null. */
    private static Predicate range(Expression[] children) {
        Expression least = null;
        Expression greatest = null;
        for (int i = 1; i < children.length; i++) {
            Long value = integer(children[i]);
            if (value == null) {
                return null;
            }
            least = least == null || value < integer(least) ? children[i] : least;
            greatest = greatest == null || value > integer(greatest) ? children[i] : greatest;
        }
        return least == null ? null : new And(compare(">=", children[0], least),
                compare("<=", children[0], greatest));
    }

    private static Predicate compare(String operator, Expression left, Expression right) {
        return new Predicate(operator, new Expression[] {left, right});
    }

    private static Long integer(Expression expression) {
        Object value = expression instanceof Literal<?> literal ? literal.value() : null;
        boolean integer = value instanceof Byte || value instanceof Short
                || value instanceof Integer || value instanceof Long;
        return integer ? ((Number) value).longValue() : null;
    }
}
