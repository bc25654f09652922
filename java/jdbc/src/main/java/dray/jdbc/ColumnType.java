package dray.jdbc;

import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Types;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;

/**
 * The type of a column, which holds its values exactly ({@code spec/types.md}).
 *
 * @param appender makes what appends the values of the column
 */
record ColumnType(Field field, Appender.Maker appender) {
    private static final int DIGITS_128 = 38;
    private static final int DIGITS_256 = 76;
    private static final int MICROSECOND_DIGITS = 6;
    /** The metadata that names a type which the column's own does not identify. */
    private static final String NAMED = "dray:jdbc:type";
    /** Oracle's and SQL Server's numbers of types. */
    private static final int ORACLE_BINARY_FLOAT = 100;
    private static final int ORACLE_BINARY_DOUBLE = 101;
    private static final int ORACLE_TIMESTAMPTZ = -101;
    private static final int ORACLE_TIMESTAMPLTZ = -102;
    private static final int DATETIMEOFFSET = -155;
    /** PostgreSQL's types that its driver takes for others, with a loss. */
    private static final Set<String> POSTGRESQL_TEXTS = Set.of("money", "timetz");
    /** Classes of values whose text is the whole value. */
    private static final Set<String> TEXT_CLASSES = Set.of("java.lang.String", "java.util.UUID",
            "java.math.BigDecimal", "java.math.BigInteger");

    /** The type of a column, counted from 1. */
    static ColumnType of(ResultSetMetaData columns, int column, Product product)
            throws SQLException, Failure {
        return new Choice(columns, column, product).type();
    }

    /** Chooses the type of one column. */
    private record Choice(ResultSetMetaData columns, int column, Product product) {
        ColumnType type() throws SQLException, Failure {
            return switch (jdbcType()) {
                case Types.BOOLEAN -> plain(ArrowType.Bool.INSTANCE, Numbers::booleans);
                case Types.BIT -> bits();
                case Types.TINYINT -> integer(Byte.SIZE);
                case Types.SMALLINT -> integer(Short.SIZE);
                case Types.INTEGER -> integer(Integer.SIZE);
                case Types.BIGINT -> integer(Long.SIZE);
                case Types.REAL -> plain(
                        new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE),
                        Numbers::singles);
                case Types.FLOAT, Types.DOUBLE -> doubles();
                case Types.DECIMAL, Types.NUMERIC -> decimal();
                case Types.CHAR, Types.VARCHAR, Types.LONGVARCHAR, Types.NCHAR, Types.NVARCHAR,
                        Types.LONGNVARCHAR -> plain(ArrowType.Utf8.INSTANCE,
                        product == Product.SQLITE ? Dynamic::texts : Texts::strings);
                case Types.CLOB, Types.NCLOB ->
                        plain(ArrowType.Utf8.INSTANCE, LargeObjects::characters);
                case Types.BINARY, Types.VARBINARY, Types.LONGVARBINARY -> binary();
                case Types.BLOB -> product == Product.SQLITE
                        ? binary() : plain(ArrowType.Binary.INSTANCE, LargeObjects::bytes);
                case Types.DATE -> plain(
                        new ArrowType.Date(org.apache.arrow.vector.types.DateUnit.DAY),
                        vector -> Times.dates(vector, product));
                case Types.TIME -> plain(new ArrowType.Time(unit(), Long.SIZE),
                        vector -> Times.times(vector, product));
                case Types.TIMESTAMP -> plain(new ArrowType.Timestamp(unit(), null),
                        vector -> Times.timestamps(vector, product));
                case Types.TIMESTAMP_WITH_TIMEZONE -> plain(
                        new ArrowType.Timestamp(unit(), "UTC"),
                        vector -> Times.instants(vector, product));
                case Types.TIME_WITH_TIMEZONE, Types.SQLXML -> text();
                case Types.NULL -> plain(ArrowType.Null.INSTANCE, Appender::ofNulls);
                default -> other();
            };
        }

        /** The number of the type, where drivers give others for the same. */
        private int jdbcType() throws SQLException {
            int type = columns.getColumnType(column);
            if (product == Product.POSTGRESQL) {
                if (typeName().equals("timestamptz")) {
                    return Types.TIMESTAMP_WITH_TIMEZONE;
                }
                return POSTGRESQL_TEXTS.contains(typeName()) ? Types.OTHER : type;
            }
            if (product == Product.ORACLE) {
                return switch (type) {
                    case ORACLE_BINARY_FLOAT -> Types.REAL;
                    case ORACLE_BINARY_DOUBLE -> Types.DOUBLE;
                    case ORACLE_TIMESTAMPTZ, ORACLE_TIMESTAMPLTZ -> Types.TIMESTAMP_WITH_TIMEZONE;
                    default -> type;
                };
            }
            if (product == Product.SQLITE) {
                return switch (type) {
                    case Types.REAL -> Types.DOUBLE;
                    // Its booleans are integers, of any value.
                    case Types.BOOLEAN, Types.BIT -> Types.BIGINT;
                    default -> type;
                };
            }
            return product == Product.SQLSERVER && type == DATETIMEOFFSET
                    ? Types.TIMESTAMP_WITH_TIMEZONE : type;
        }

        private String typeName() throws SQLException {
            String name = columns.getColumnTypeName(column);
            return name == null ? "" : name.toLowerCase(Locale.ROOT);
        }

        private ColumnType plain(ArrowType type, Appender.Maker appender) throws SQLException {
            return column(type, appender, null);
        }

        /** The text of the value, with the name of its type. */
        private ColumnType text() throws SQLException {
            return column(ArrowType.Utf8.INSTANCE,
                    product == Product.SQLITE ? Dynamic::digits : Texts::strings,
                    Map.of(NAMED, typeName()));
        }

        private ColumnType column(ArrowType type, Appender.Maker appender,
                Map<String, String> metadata) throws SQLException {
            String name = columns.getColumnLabel(column);
            var field = new Field(name == null ? "" : name,
                    new FieldType(true, type, null, metadata), null);
            return new ColumnType(field, appender);
        }

        private ColumnType doubles() throws SQLException {
            return plain(new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE),
                    product == Product.SQLITE ? Dynamic::doubles : Numbers::doubles);
        }

        private ColumnType integer(int bits) throws SQLException {
            var type = new ArrowType.Int(bits, columns.isSigned(column)
                    // Their drivers don't know what each value is.
                    || product == Product.SQLITE || product == Product.DUCKDB);
            if (product == Product.SQLITE) {
                // Whatever the column declares, its integers have 64 bits.
                return plain(new ArrowType.Int(Long.SIZE, true), Dynamic::integers);
            }
            return plain(type, vector -> Numbers.integers(vector, type));
        }

        private ColumnType bits() throws SQLException {
            if (product == Product.POSTGRESQL) {
                return typeName().equals("bool")
                        ? plain(ArrowType.Bool.INSTANCE, Numbers::booleans) : text();
            }
            if ("java.lang.String".equals(columns.getColumnClassName(column))) {
                return text();
            }
            // Drivers give several bits as a boolean if they are asked for one.
            return columns.getPrecision(column) > 1
                    ? plain(ArrowType.Binary.INSTANCE, Texts::bytes)
                    : plain(ArrowType.Bool.INSTANCE, Numbers::booleans);
        }

        private ColumnType binary() throws SQLException {
            return plain(ArrowType.Binary.INSTANCE,
                    product == Product.SQLITE ? Dynamic::bytes : Texts::bytes);
        }

        /** Of its declared digits; text where none are declared. */
        private ColumnType decimal() throws SQLException {
            int scale = columns.getScale(column);
            // numeric(5,-2) has seven digits, numeric(3,5) has five.
            long precision = columns.getPrecision(column);
            long digits = Math.max(precision + Math.max(0, -scale), scale);
            boolean isDeclared = precision > 0 && product != Product.SQLITE;
            if (!isDeclared || digits > DIGITS_256) {
                return text();
            }
            var type = new ArrowType.Decimal((int) digits, Math.max(0, scale),
                    digits <= DIGITS_128 ? 128 : 256);
            return plain(type, vector -> Numbers.decimals(vector, type));
        }

        private TimeUnit unit() throws SQLException {
            return columns.getScale(column) > MICROSECOND_DIGITS
                    ? TimeUnit.NANOSECOND : TimeUnit.MICROSECOND;
        }

        private ColumnType other() throws SQLException, Failure {
            int type = columns.getColumnType(column);
            boolean isNested = switch (type) {
                case Types.ARRAY, Types.STRUCT, Types.REF, Types.ROWID, Types.REF_CURSOR,
                        Types.DATALINK, Types.JAVA_OBJECT -> true;
                default -> false;
            };
            boolean isText = product == Product.POSTGRESQL
                    || TEXT_CLASSES.contains(columns.getColumnClassName(column));
            if (isText && !isNested) {
                return text();
            }
            throw new Failure(Failure.Kind.QUERY, "0A000",
                    "column " + columns.getColumnLabel(column) + ": the type "
                            + columns.getColumnTypeName(column) + " has no form in Arrow here",
                    "cast the column to text, or leave it out");
        }
    }
}
