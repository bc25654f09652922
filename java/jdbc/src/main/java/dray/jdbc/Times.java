package dray.jdbc;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.util.function.Function;
import org.apache.arrow.vector.BaseFixedWidthVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.TimeMicroVector;
import org.apache.arrow.vector.TimeNanoVector;
import org.apache.arrow.vector.TimeStampVector;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;

/** Appends dates and times, by the classes of java.time: without a zone, and without gaps. */
final class Times {
    private static final long NANOSECONDS = 1_000_000_000;
    private static final long NANOSECONDS_PER_MICROSECOND = 1000;
    /** As Derby and others write a timestamp. */
    private static final DateTimeFormatter TIMESTAMP = new DateTimeFormatterBuilder()
            .append(DateTimeFormatter.ISO_LOCAL_DATE).appendLiteral(' ')
            .append(DateTimeFormatter.ISO_LOCAL_TIME).toFormatter();

    private Times() {}

    static Appender dates(FieldVector vector, Product product) {
        var days = (DateDayVector) vector;
        var values = new Values<>(LocalDate.class, LocalDate::parse, product);
        return (rows, column, at) -> {
            LocalDate value = values.next(rows, column);
            if (value == null) {
                days.setNull(at);
            } else {
                days.setSafe(at, Math.toIntExact(value.toEpochDay()));
            }
            return Integer.BYTES;
        };
    }

    static Appender times(FieldVector vector, Product product) {
        var unit = ((ArrowType.Time) vector.getField().getType()).getUnit();
        var values = new Values<>(LocalTime.class, LocalTime::parse, product);
        return (rows, column, at) -> {
            if (product == Product.MYSQL && isNegative(rows.getBytes(column))) {
                throw Failure.ofColumn(vector.getName(), "a time below zero",
                        "cast the column to text");
            }
            LocalTime value = values.next(rows, column);
            if (value == null) {
                ((BaseFixedWidthVector) vector).setNull(at);
            } else if (vector instanceof TimeMicroVector micros) {
                micros.setSafe(at, inUnit(0, value.toNanoOfDay(), unit));
            } else {
                ((TimeNanoVector) vector).setSafe(at, value.toNanoOfDay());
            }
            return Long.BYTES;
        };
    }

    /**
     * The sign of a time as MySQL sends it, as text or as bytes: its driver takes some times below
     * zero for positive.
     */
    private static boolean isNegative(byte[] sent) {
        return sent != null && sent.length > 0 && (sent[0] == '-' || sent[0] == 1);
    }

    static Appender timestamps(FieldVector vector, Product product) {
        var times = (TimeStampVector) vector;
        var unit = ((ArrowType.Timestamp) vector.getField().getType()).getUnit();
        var values = new Values<>(
                LocalDateTime.class, text -> LocalDateTime.parse(text, TIMESTAMP), product);
        return (rows, column, at) -> {
            LocalDateTime value = values.next(rows, column);
            if (value == null) {
                times.setNull(at);
            } else {
                times.setSafe(at,
                        inUnit(value.toEpochSecond(ZoneOffset.UTC), value.getNano(), unit));
            }
            return Long.BYTES;
        };
    }

    static Appender instants(FieldVector vector, Product product) {
        var times = (TimeStampVector) vector;
        var unit = ((ArrowType.Timestamp) vector.getField().getType()).getUnit();
        var values = new Values<>(OffsetDateTime.class, OffsetDateTime::parse, product);
        return (rows, column, at) -> {
            OffsetDateTime value = values.next(rows, column);
            if (value == null) {
                times.setNull(at);
            } else {
                times.setSafe(at, inUnit(value.toEpochSecond(), value.getNano(), unit));
            }
            return Long.BYTES;
        };
    }

    /** A time in the unit of its column. */
    private static long inUnit(long seconds, long nanoseconds, TimeUnit unit) {
        boolean isNano = unit == TimeUnit.NANOSECOND;
        long divisor = isNano ? 1 : NANOSECONDS_PER_MICROSECOND;
        if (nanoseconds % divisor != 0) {
            throw new ArithmeticException("a time has digits behind its microseconds");
        }
        try {
            return Math.addExact(Math.multiplyExact(seconds, NANOSECONDS / divisor),
                    nanoseconds / divisor);
        } catch (ArithmeticException overflow) {
            throw new ArithmeticException("a time does not fit 64 bits of "
                    + (isNano ? "nanoseconds, which end in the year 2262" : "microseconds"));
        }
    }

    /** Reads values as a class of java.time, or as text where the driver is older than that. */
    private static final class Values<T> {
        private final Class<T> type;
        private final Function<String, T> parser;
        private boolean isKnown;
        private boolean isText;

        Values(Class<T> type, Function<String, T> parser, Product product) {
            this.type = type;
            this.parser = parser;
            // MariaDB's driver makes the day 0000-00-00 NULL, and takes times for positive. SQLite's
            // takes numbers for milliseconds.
            isText = product == Product.MARIADB || product == Product.SQLITE;
        }

        T next(ResultSet rows, int column) throws SQLException {
            if (!isText) {
                try {
                    T value = rows.getObject(column, type);
                    isKnown |= value != null;
                    return value;
                } catch (SQLException notSupported) {
                    if (isKnown) {
                        throw notSupported;
                    }
                    T value = parse(rows.getString(column), notSupported);
                    isText = true;
                    return value;
                }
            }
            return parse(rows.getString(column), null);
        }

        private T parse(String text, SQLException cause) throws SQLException {
            try {
                return text == null ? null : parser.apply(text);
            } catch (java.time.DateTimeException unknown) {
                if (cause != null) {
                    throw cause;
                }
                throw unknown;
            }
        }
    }
}
