package dray.jdbc;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;

/** Sets the parameters of a statement. */
final class Parameters {
    private Parameters() {}

    /** Sets them from an Arrow IPC stream of one batch of one row. */
    static void set(PreparedStatement statement, byte[] stream)
            throws SQLException, IOException, Failure {
        try (var allocator = new RootAllocator(Runtime.getRuntime().maxMemory());
                var reader = new ArrowStreamReader(new ByteArrayInputStream(stream), allocator)) {
            var root = reader.getVectorSchemaRoot();
            if (!reader.loadNextBatch() || root.getRowCount() != 1) {
                throw new IOException("parameters that are not one row");
            }
            int number = 0;
            for (FieldVector vector : root.getFieldVectors()) {
                number++;
                if (vector.isNull(0)) {
                    setNull(statement, number);
                } else {
                    set(statement, number, vector);
                }
            }
        }
    }

    /** Some drivers take a NULL only of the parameter's type. */
    private static void setNull(PreparedStatement statement, int number) throws SQLException {
        int type;
        try {
            type = statement.getParameterMetaData().getParameterType(number);
        } catch (SQLException | RuntimeException unknown) {
            type = Types.NULL;
        }
        statement.setNull(number, type);
    }

    private static void set(PreparedStatement statement, int number, FieldVector vector)
            throws SQLException, Failure {
        ArrowType type = vector.getField().getType();
        Object value = vector.getObject(0);
        switch (type.getTypeID()) {
            case Bool -> statement.setBoolean(number, (Boolean) value);
            case Int -> setInteger(statement, number, (ArrowType.Int) type, vector);
            case FloatingPoint -> {
                if (value instanceof Float single) {
                    statement.setFloat(number, single);
                } else if (value instanceof Double wide) {
                    statement.setDouble(number, wide);
                } else {
                    throw refused(number, type);
                }
            }
            case Decimal -> statement.setBigDecimal(number, (BigDecimal) value);
            case Utf8, LargeUtf8, Utf8View -> statement.setString(number, value.toString());
            case Binary, LargeBinary, BinaryView, FixedSizeBinary ->
                    statement.setBytes(number, (byte[]) value);
            case Date -> setTime(statement, number, date(value));
            case Time -> setTime(statement, number, time((ArrowType.Time) type, value));
            case Timestamp -> setTimestamp(statement, number, (ArrowType.Timestamp) type, vector);
            default -> throw refused(number, type);
        }
    }

    private static Failure refused(int number, ArrowType type) {
        return new Failure(Failure.Kind.QUERY, "0A000",
                "parameter " + number + ": no JDBC driver takes the type " + type,
                "pass it as a number or as text");
    }

    private static void setInteger(PreparedStatement statement, int number, ArrowType.Int type,
            FieldVector vector) throws SQLException {
        long value = ((org.apache.arrow.vector.BaseIntVector) vector).getValueAsLong(0);
        if (type.getBitWidth() == Long.SIZE && !type.getIsSigned()) {
            var unsigned = new BigInteger(Long.toUnsignedString(value));
            statement.setBigDecimal(number, new BigDecimal(unsigned));
        } else if (value == (int) value) {
            statement.setInt(number, (int) value);
        } else {
            statement.setLong(number, value);
        }
    }

    private static LocalDate date(Object value) {
        return value instanceof Integer days
                ? LocalDate.ofEpochDay(days) : ((LocalDateTime) value).toLocalDate();
    }

    private static LocalTime time(ArrowType.Time type, Object value) {
        return switch (type.getUnit()) {
            case SECOND -> LocalTime.ofSecondOfDay((Integer) value);
            case MILLISECOND -> ((LocalDateTime) value).toLocalTime();
            case MICROSECOND -> LocalTime.ofNanoOfDay((Long) value * 1000);
            case NANOSECOND -> LocalTime.ofNanoOfDay((Long) value);
        };
    }

    private static void setTimestamp(PreparedStatement statement, int number,
            ArrowType.Timestamp type, FieldVector vector) throws SQLException {
        long value = ((org.apache.arrow.vector.TimeStampVector) vector).get(0);
        long inSecond = perSecond(type.getUnit());
        var instant = Instant.ofEpochSecond(Math.floorDiv(value, inSecond),
                Math.floorMod(value, inSecond) * (1_000_000_000 / inSecond));
        if (type.getTimezone() != null) {
            statement.setObject(number, instant.atOffset(ZoneOffset.UTC));
        } else {
            setTime(statement, number, LocalDateTime.ofInstant(instant, ZoneOffset.UTC));
        }
    }

    private static long perSecond(TimeUnit unit) {
        return switch (unit) {
            case SECOND -> 1;
            case MILLISECOND -> 1000;
            case MICROSECOND -> 1_000_000;
            case NANOSECOND -> 1_000_000_000;
        };
    }

    /** As text where the driver is older than java.time. */
    private static void setTime(PreparedStatement statement, int number, Object value)
            throws SQLException {
        try {
            statement.setObject(number, value);
        } catch (SQLException notSupported) {
            String text = value.toString().replace('T', ' ');
            try {
                statement.setString(number, text);
            } catch (SQLException refused) {
                throw notSupported;
            }
        }
    }
}
