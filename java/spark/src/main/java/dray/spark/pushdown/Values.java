package dray.spark.pushdown;

import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import org.apache.spark.sql.types.Decimal;

/** Spark's internal values as text that any database reads. */
final class Values {
    private static final DateTimeFormatter MICROS =
            DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSS");
    static final int FIRST_YEAR = 1;
    static final int LAST_YEAR = 9999;

    private Values() { }

    /** A string, which must be UTF-8. */
    static String text(Object value) throws Untranslatable {
        String text = value.toString();
        // What is not UTF-8 has become this character.
        if (text.indexOf('\uFFFD') >= 0) {
            throw new Untranslatable("a string that may not be UTF-8");
        }
        return text;
    }

    /** The bytes in hexadecimal digits. */
    static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    /** A date, such as {@code 2024-02-29}; days since 1970. */
    static String date(Object days) throws Untranslatable {
        LocalDate date = LocalDate.ofEpochDay(((Number) days).longValue());
        checkYear(date.getYear(), FIRST_YEAR, LAST_YEAR);
        return date.toString();
    }

    /** A time without a zone, with all six digits; microseconds since 1970. */
    static String time(Object micros) throws Untranslatable {
        return time(micros, FIRST_YEAR, LAST_YEAR);
    }

    static String time(Object micros, int firstYear, int lastYear) throws Untranslatable {
        Instant instant = Instant.EPOCH.plus(((Number) micros).longValue(), ChronoUnit.MICROS);
        LocalDateTime time = LocalDateTime.ofInstant(instant, ZoneOffset.UTC);
        checkYear(time.getYear(), firstYear, lastYear);
        return MICROS.format(time);
    }

    private static void checkYear(int year, int first, int last) throws Untranslatable {
        if (year < first || year > last) {
            throw new Untranslatable("year " + year + " is beyond " + first + " to " + last);
        }
    }

    /** A decimal with all its digits. */
    static String decimal(Object value) {
        return ((Decimal) value).toJavaBigDecimal().toPlainString();
    }
}
