package dray.spark.pushdown;

import java.time.LocalDate;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Extract;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/** From Spark's expressions over some columns to terms of a dialect. */
final class Translator {
    /** More literals in a list are Spark's work. */
    static final int LIST_MAX = 1000;
    /**
     * Databases parse expressions on their stacks. Each has at most two brackets, and a leaf a few
     * more; {@code dray serve} takes 200 in each other, with those around a join.
     */
    private static final int DEPTH_MAX = 64;
    /**
     * What a cast counts, and arithmetic, whose operands are cast: a cast within another one takes
     * the parser of {@code dray serve} twice as long.
     */
    private static final int CAST_DEPTH = 4;

    private final Dialect dialect;
    private final Map<String, SourceColumn> columns = new HashMap<>();
    private int depth;

    Translator(Dialect dialect, List<SourceColumn> columns) {
        this.dialect = dialect;
        columns.forEach(column -> this.columns.put(column.name(), column));
    }

    /** A condition's text. */
    String predicate(Expression expression) throws Untranslatable {
        Term term = term(expression);
        if (!term.type().equals(DataTypes.BooleanType)) {
            throw new Untranslatable("a condition of type " + term.type().typeName());
        }
        return term.sql();
    }

    /** A condition that is true of each row of which the predicate is. */
    String weaker(Expression predicate) throws Untranslatable {
        try {
            return predicate(predicate);
        } catch (Untranslatable whole) {
            if (!(predicate instanceof Predicate scalar)) {
                throw whole;
            }
            return switch (scalar.name()) {
                case "IN" -> predicate(range(scalar.children()));
                // All sides must be known of OR, and one of AND.
                case "OR" -> chain("OR", operands(scalar), this::weaker);
                case "AND" -> known(chain("AND", operands(scalar), this::weakerOrNull), whole);
                default -> throw whole;
            };
        }
    }

    private String weakerOrNull(Expression predicate) {
        try {
            return weaker(predicate);
        } catch (Untranslatable unknown) {
            return null;
        }
    }

    private static String known(String condition, Untranslatable otherwise) throws Untranslatable {
        if (condition == null) {
            throw otherwise;
        }
        return condition;
    }

    /** From the least to the greatest of a list of integers or dates, which may be too long. */
    private static Predicate range(Expression[] children) throws Untranslatable {
        Expression least = null;
        Expression greatest = null;
        for (int i = 1; i < children.length; i++) {
            Long value = integer(children[i]);
            if (value == null) {
                throw new Untranslatable("a list of other than integers and dates");
            }
            least = least == null || value < integer(least) ? children[i] : least;
            greatest = greatest == null || value > integer(greatest) ? children[i] : greatest;
        }
        if (least == null) {
            throw new Untranslatable("an empty list");
        }
        return new And(compare(">=", children[0], least),
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

    private void descend(int levels) throws Untranslatable {
        if (depth > DEPTH_MAX - levels) {
            throw new Untranslatable("more than " + DEPTH_MAX + " expressions in each other");
        }
        depth += levels;
    }

    private static int levels(Expression expression) {
        boolean cast = expression instanceof Cast
                || expression instanceof GeneralScalarExpression scalar
                        && List.of("+", "-", "*").contains(scalar.name());
        return cast ? CAST_DEPTH : 1;
    }

    Term term(Expression expression) throws Untranslatable {
        int levels = levels(expression);
        descend(levels);
        try {
            if (expression instanceof Literal<?> literal) {
                return literal(literal.value(), literal.dataType());
            } else if (expression instanceof NamedReference reference) {
                SourceColumn column = column(reference);
                checkType(column.type());
                return Term.column(dialect.column(column), column);
            } else if (expression instanceof Cast cast) {
                return Casts.cast(dialect, term(cast.expression()), cast.dataType());
            } else if (expression instanceof Extract extract) {
                return extract(extract);
            } else if (expression instanceof GeneralScalarExpression scalar) {
                return scalar(scalar, scalar.children());
            }
        } finally {
            depth -= levels;
        }
        throw new Untranslatable(expression.describe());
    }

    SourceColumn column(NamedReference reference) throws Untranslatable {
        String[] names = reference.fieldNames();
        SourceColumn column = names.length == 1 ? columns.get(names[0]) : null;
        if (column == null) {
            throw new Untranslatable("column " + String.join(".", names));
        }
        return column;
    }

    private Term literal(Object value, DataType type) throws Untranslatable {
        checkType(type);
        return Term.literal(dialect.literal(value, type), value, type);
    }

    /** Refuses what has no order, and strings that are not compared by bytes. */
    private static void checkType(DataType type) throws Untranslatable {
        boolean known = type instanceof DecimalType || Range.of(type) != null
                || type.equals(DataTypes.BooleanType) || type.equals(DataTypes.FloatType)
                || type.equals(DataTypes.DoubleType) || type.equals(DataTypes.BinaryType)
                || type.equals(DataTypes.DateType) || type.equals(DataTypes.TimestampType)
                || type.equals(DataTypes.TimestampNTZType)
                // Of the default collation, and neither char(n) nor varchar(n).
                || type == DataTypes.StringType;
        if (!known) {
            throw new Untranslatable("type " + type.sql());
        }
    }

    private Term scalar(GeneralScalarExpression scalar, Expression[] children)
            throws Untranslatable {
        String name = scalar.name();
        return switch (name) {
            case "AND", "OR" -> bool(chain(name, operands(scalar), this::predicate));
            case "NOT" -> bool("(NOT " + predicate(children[0]) + ")");
            case "BOOLEAN_EXPRESSION" -> bool(predicate(children[0]));
            case "IS_NULL" -> bool(isNull(children[0]));
            case "IS_NOT_NULL" -> bool("(NOT " + isNull(children[0]) + ")");
            case "=", "<>", "<", "<=", ">", ">=", "<=>" -> compare(name, children);
            case "IN" -> in(children);
            case "STARTS_WITH" -> has(Dialect.Place.START, children);
            case "ENDS_WITH" -> has(Dialect.Place.END, children);
            case "CONTAINS" -> has(Dialect.Place.ANYWHERE, children);
            case "CASE_WHEN" -> caseWhen(children);
            case "COALESCE" -> coalesce(children);
            case "+", "-", "*" -> children.length == 2
                    ? Casts.arithmetic(dialect, name, term(children[0]), term(children[1]))
                    : Casts.negative(dialect, term(children[0]));
            case "SUBSTRING" -> substring(children);
            case "CHAR_LENGTH" -> Term.of(dialect.characters(string(children[0])),
                    DataTypes.IntegerType);
            default -> throw new Untranslatable("function " + name);
        };
    }

    /** The operands of AND or OR, however Spark has put them into each other. */
    private static List<Expression> operands(GeneralScalarExpression chain) {
        var operands = new ArrayList<Expression>();
        var open = new ArrayDeque<Expression>(List.of(chain));
        while (!open.isEmpty()) {
            Expression next = open.pop();
            if (next instanceof GeneralScalarExpression inner
                    && inner.name().equals(chain.name())) {
                for (int i = inner.children().length - 1; i >= 0; i--) {
                    open.push(inner.children()[i]);
                }
            } else {
                operands.add(next);
            }
        }
        return operands;
    }

    /** How an operand is translated; null if it is left out. */
    private interface Translation {
        String of(Expression operand) throws Untranslatable;
    }

    /** Operands of AND or OR in brackets of which few are in each other. */
    private String chain(String operator, List<Expression> operands, Translation translation)
            throws Untranslatable {
        if (operands.size() == 1) {
            return translation.of(operands.get(0));
        }
        descend(1);
        try {
            int half = operands.size() / 2;
            String left = chain(operator, operands.subList(0, half), translation);
            String right = chain(operator, operands.subList(half, operands.size()), translation);
            if (left == null || right == null) {
                return left == null ? right : left;
            }
            return "(" + left + " " + operator + " " + right + ")";
        } finally {
            depth--;
        }
    }

    private static Term bool(String sql) {
        return Term.of(sql, DataTypes.BooleanType);
    }

    private String isNull(Expression child) throws Untranslatable {
        if (child instanceof NamedReference reference) {
            return dialect.isNull(column(reference));
        }
        return "(" + term(child).sql() + " IS NULL)";
    }

    private Term compare(String operator, Expression[] children) throws Untranslatable {
        String years = children[0] instanceof Literal
                ? years(mirrored(operator), children[1], children[0])
                : years(operator, children[0], children[1]);
        if (years != null) {
            return bool(years);
        }
        Term left = term(children[0]);
        Term right = term(children[1]);
        checkSame(left, right);
        return bool(operator.equals("<=>") ? dialect.nullSafeEqual(left, right)
                : dialect.compare(operator, left, right));
    }

    private static String mirrored(String operator) {
        return switch (operator) {
            case "<" -> ">";
            case "<=" -> ">=";
            case ">" -> "<";
            case ">=" -> "<=";
            default -> operator;
        };
    }

    /**
     * A comparison of the year of a column's dates with a literal as one of the dates, which an
     * index finds; null if it is another one.
     */
    private String years(String operator, Expression left, Expression right)
            throws Untranslatable {
        if (!(left instanceof Extract extract) || !extract.field().equals("YEAR")
                || !isOfColumn(extract.source()) || !(right instanceof Literal<?> literal)
                || !(literal.value() instanceof Integer year)
                || year < Values.FIRST_YEAR || year >= Values.LAST_YEAR) {
            return null;
        }
        Term date = term(extract.source());
        if (!date.type().equals(DataTypes.DateType)) {
            return null;
        }
        Term first = firstDay(year);
        Term next = firstDay(year + 1);
        String within = "(" + dialect.compare(">=", date, first) + " AND "
                + dialect.compare("<", date, next) + ")";
        return switch (operator) {
            case "=" -> within;
            case "<>" -> "(NOT " + within + ")";
            case "<" -> dialect.compare("<", date, first);
            case "<=" -> dialect.compare("<", date, next);
            case ">" -> dialect.compare(">=", date, next);
            case ">=" -> dialect.compare(">=", date, first);
            default -> null;
        };
    }

    /** Whether it is short, as the text of a date that is written twice should be. */
    private static boolean isOfColumn(Expression date) {
        Expression source = date instanceof Cast cast ? cast.expression() : date;
        return source instanceof NamedReference;
    }

    private Term firstDay(int year) throws Untranslatable {
        return literal((int) LocalDate.of(year, 1, 1).toEpochDay(), DataTypes.DateType);
    }

    private static void checkSame(Term left, Term right) throws Untranslatable {
        if (!left.type().equals(right.type())) {
            throw new Untranslatable(left.type().sql() + " beside " + right.type().sql());
        }
    }

    private Term in(Expression[] children) throws Untranslatable {
        if (children.length < 2 || children.length > LIST_MAX + 1) {
            throw new Untranslatable("a list of " + (children.length - 1));
        }
        Term value = term(children[0]);
        var list = new ArrayList<Term>();
        for (int i = 1; i < children.length; i++) {
            Term item = term(children[i]);
            if (!(children[i] instanceof Literal)) {
                throw new Untranslatable("a list of other than literals");
            }
            checkSame(value, item);
            list.add(item);
        }
        return bool(dialect.in(value, list));
    }

    private Term has(Dialect.Place place, Expression[] children) throws Untranslatable {
        Term literal = string(children[1]);
        if (!literal.isLiteral()) {
            throw new Untranslatable("a part of a string that is no literal");
        }
        return bool(dialect.has(place, string(children[0]), literal));
    }

    private Term string(Expression expression) throws Untranslatable {
        Term term = term(expression);
        if (!term.type().equals(DataTypes.StringType)) {
            throw new Untranslatable("a string function of " + term.type().sql());
        }
        return term;
    }

    private Term caseWhen(Expression[] children) throws Untranslatable {
        var sql = new StringBuilder("(CASE");
        Term first = term(children[1]);
        for (int i = 0; i + 1 < children.length; i += 2) {
            Term value = term(children[i + 1]);
            checkSame(first, value);
            sql.append(" WHEN ").append(predicate(children[i]))
                    .append(" THEN ").append(value.sql());
        }
        if (children.length % 2 == 1) {
            Term value = term(children[children.length - 1]);
            checkSame(first, value);
            sql.append(" ELSE ").append(value.sql());
        }
        return Term.of(sql.append(" END)").toString(), first.type());
    }

    private Term coalesce(Expression[] children) throws Untranslatable {
        var texts = new ArrayList<String>();
        Term first = term(children[0]);
        for (Expression child : children) {
            Term term = term(child);
            checkSame(first, term);
            texts.add(term.sql());
        }
        return Term.of("coalesce(" + String.join(", ", texts) + ")", first.type());
    }

    private Term substring(Expression[] children) throws Untranslatable {
        Term string = string(children[0]);
        Term position = term(children[1]);
        Term length = children.length > 2 ? term(children[2]) : null;
        // Spark counts 0 as 1, and what is negative from the end.
        if (!(position.value() instanceof Integer from) || from < 1 || length == null
                || !(length.value() instanceof Integer count) || count < 0) {
            throw new Untranslatable("substring with other than positive literals");
        }
        return Term.of(dialect.substring(string, from, count), DataTypes.StringType);
    }

    private Term extract(Extract extract) throws Untranslatable {
        Term date = term(extract.source());
        String field = extract.field();
        boolean known = field.equals("YEAR") || field.equals("MONTH") || field.equals("DAY");
        if (!known || !date.type().equals(DataTypes.DateType)) {
            throw new Untranslatable(field + " of " + date.type().sql());
        }
        return Term.of(dialect.extract(field, date), DataTypes.IntegerType);
    }
}
