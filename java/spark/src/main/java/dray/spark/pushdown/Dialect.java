package dray.spark.pushdown;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;

/**
 * How a database writes what Spark means. Arguments have been checked: both sides of a comparison
 * have the same type, arithmetic cannot overflow, and a cast loses nothing.
 *
 * <p>A term's <b>key</b> is SQL that the database compares, groups and orders exactly as Spark does
 * the term's values. For most types it is the term itself.
 */
public sealed interface Dialect permits PostgreSql, MySql, DataFusion {
    /** {@code dray}, or a source as spec/protocol.md section 14 names it; none of others. */
    static Optional<Dialect> of(String name) {
        return switch (name) {
            case "dray" -> Optional.of(new DataFusion());
            case "postgresql" -> Optional.of(new PostgreSql());
            case "mysql" -> Optional.of(new MySql());
            default -> Optional.empty();
        };
    }

    /** The name of a table or column, quoted. */
    String identifier(String name);

    /**
     * A statement that tells the types of what may stand after {@code FROM}, for
     * {@link SourceColumn#list}; or none if the database can't tell them of a query.
     */
    default Optional<String> describe(String from, List<String> names) {
        return Optional.empty();
    }

    /** A column's value, if the database and Spark compute with it alike. */
    String column(SourceColumn column) throws Untranslatable;

    /** A value in Spark's internal form; NULL if it is null. */
    String literal(Object value, DataType type) throws Untranslatable;

    /** The name of a type in a cast. */
    String typeName(DataType type) throws Untranslatable;

    /** Whether a column of any type is NULL. */
    default String isNull(SourceColumn column) throws Untranslatable {
        return "(" + identifier(column.name()) + " IS NULL)";
    }

    /** See above. */
    default String key(Term term) throws Untranslatable {
        return term.sql();
    }

    /** A comparison by {@code =}, {@code <>}, {@code <}, {@code <=}, {@code >} or {@code >=}. */
    default String compare(String operator, Term left, Term right) throws Untranslatable {
        return "(" + key(left) + " " + operator + " " + key(right) + ")";
    }

    /** Whether both are equal or both NULL. */
    default String nullSafeEqual(Term left, Term right) throws Untranslatable {
        return "(" + key(left) + " IS NOT DISTINCT FROM " + key(right) + ")";
    }

    /** Whether a value is one of a list of literals. */
    default String in(Term value, List<Term> list) throws Untranslatable {
        return "(" + key(value) + " IN (" + keys(list) + "))";
    }

    /** The keys of terms, with commas between them. */
    default String keys(List<Term> terms) throws Untranslatable {
        var keys = new ArrayList<String>(terms.size());
        for (Term term : terms) {
            keys.add(key(term));
        }
        return String.join(", ", keys);
    }

    /** Whether a string has a literal at its beginning, at its end, or anywhere. */
    String has(Place place, Term string, Term literal) throws Untranslatable;

    /** Where a string has another one. */
    enum Place {
        START, END, ANYWHERE;

        /** The pattern of LIKE whose escape character is {@code !}. */
        String pattern(String literal) {
            String escaped = literal.replaceAll("[!%_]", "!$0");
            return (this == START ? "" : "%") + escaped + (this == END ? "" : "%");
        }
    }

    /**
     * A term as an operand of arithmetic. An unsigned column, and whatever has its type, would make
     * all of it unsigned, and a result below 0 an error.
     */
    default String operand(Term term) throws Untranslatable {
        return term.isLiteral() ? term.sql() : cast(term, term.type());
    }

    /** A cast to a type that has all values of the term's. */
    default String cast(Term term, DataType type) throws Untranslatable {
        return "CAST(" + term.sql() + " AS " + typeName(type) + ")";
    }

    /** {@code YEAR}, {@code MONTH} or {@code DAY} of a date. */
    String extract(String field, Term date) throws Untranslatable;

    /** Code points from a position on, which counts from 1. */
    default String substring(Term string, long position, long length) throws Untranslatable {
        return "substr(" + string.sql() + ", " + position + ", " + length + ")";
    }

    /** The number of code points of a string. */
    default String characters(Term string) throws Untranslatable {
        return "char_length(" + string.sql() + ")";
    }

    /** Refuses values of which {@code GROUP BY} and {@code DISTINCT} make other groups. */
    default void checkGrouping(Term term) throws Untranslatable {
        if (term.type().equals(DataTypes.FloatType) || term.type().equals(DataTypes.DoubleType)) {
            // Spark makes one zero and one NaN of all.
            throw new Untranslatable("groups of floats");
        }
    }

    /** A group's key, once more as a value of the term's type. */
    default String groupValue(Term term) throws Untranslatable {
        return key(term);
    }

    /** {@code min} or {@code max}. */
    default String extreme(String function, Term term) throws Untranslatable {
        return result(function + "(" + key(term) + ")", term.type());
    }

    /** The sum of integers or decimals that fit the type. */
    default String sum(Term term, DataType type) throws Untranslatable {
        return result("sum(" + term.sql() + ")", type);
    }

    /** The average of short integers or decimals as Spark rounds it. */
    String average(Term term, DataType type) throws Untranslatable;

    /** An aggregate in the type by which Spark reads it. */
    default String result(String sql, DataType type) throws Untranslatable {
        return "CAST(" + sql + " AS " + typeName(type) + ")";
    }

    /** One term of {@code ORDER BY}. */
    default String order(Term term, boolean descending, boolean nullsFirst) throws Untranslatable {
        return key(term) + (descending ? " DESC" : " ASC")
                + (nullsFirst ? " NULLS FIRST" : " NULLS LAST");
    }

    /** The end of a statement that skips rows and returns at most so many of the others. */
    default String limit(long limit, long offset) {
        return "LIMIT " + limit + (offset == 0 ? "" : " OFFSET " + offset);
    }

    /** The end of a statement that skips rows and returns all others. */
    default String offset(long offset) {
        return "OFFSET " + offset;
    }

    /** Names in a list, quoted. */
    default String identifiers(List<String> names) {
        return names.stream().map(this::identifier).collect(Collectors.joining(", "));
    }

    /** A decimal type's name in standard SQL. */
    static String decimalName(String name, DecimalType type) {
        return name + "(" + type.precision() + ", " + type.scale() + ")";
    }
}
