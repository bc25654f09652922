package dray.page;

import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;

/**
 * Stored dates and times as those of {@code java.time}. A unit is 0 for seconds, 1 for
 * milliseconds, 2 for microseconds, 3 for nanoseconds. No value is rounded: one that the type of
 * {@code java.time} does not have is a {@link DateTimeException}.
 */
public final class Times {
    private static final long[] PER_SECOND = {1, 1_000, 1_000_000, 1_000_000_000};
    private static final long DAY_MILLISECONDS = 86_400_000;

    private Times() {}

    public static LocalDate date(int days) {
        return LocalDate.ofEpochDay(days);
    }

    /** The day of a date64, which must begin at midnight. */
    public static LocalDate date(long milliseconds) {
        if (milliseconds % DAY_MILLISECONDS != 0) {
            throw new DateTimeException(milliseconds + " ms since 1970 is not the start of a day");
        }
        return LocalDate.ofEpochDay(milliseconds / DAY_MILLISECONDS);
    }

    public static LocalTime time(long value, int unit) {
        return LocalTime.ofNanoOfDay(Math.multiplyExact(value, PER_SECOND[3] / PER_SECOND[unit]));
    }

    public static Instant instant(long value, int unit) {
        return Instant.ofEpochSecond(seconds(value, unit), nanoseconds(value, unit));
    }

    public static LocalDateTime dateTime(long value, int unit) {
        return LocalDateTime.ofEpochSecond(
                seconds(value, unit), nanoseconds(value, unit), ZoneOffset.UTC);
    }

    public static Duration duration(long value, int unit) {
        return Duration.ofSeconds(seconds(value, unit), nanoseconds(value, unit));
    }

    /** The stored value of an instant, which the unit must hold exactly. */
    public static long of(Instant instant, int unit) {
        return stored(instant.getEpochSecond(), instant.getNano(), unit);
    }

    /** The stored value of a date and time, which the unit must hold exactly. */
    public static long of(LocalDateTime time, int unit) {
        return stored(time.toEpochSecond(ZoneOffset.UTC), time.getNano(), unit);
    }

    private static long stored(long seconds, int nanoseconds, int unit) {
        long nanosecondsPer = PER_SECOND[3] / PER_SECOND[unit];
        if (nanoseconds % nanosecondsPer != 0) {
            throw new ArithmeticException(nanoseconds + " ns are no whole number of units");
        }
        return Math.addExact(Math.multiplyExact(seconds, PER_SECOND[unit]),
                nanoseconds / nanosecondsPer);
    }

    private static long seconds(long value, int unit) {
        return Math.floorDiv(value, PER_SECOND[unit]);
    }

    private static int nanoseconds(long value, int unit) {
        return (int) (Math.floorMod(value, PER_SECOND[unit]) * (PER_SECOND[3] / PER_SECOND[unit]));
    }
}
