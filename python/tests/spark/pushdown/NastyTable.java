package dray.spark.pushdown;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** A table of values on which databases disagree. */
final class NastyTable {
    static final DataType CENTS = DataTypes.createDecimalType(10, 2);
    static final DataType UNSIGNED = DataTypes.createDecimalType(20, 0);
    static final DataType LONG_DECIMAL = DataTypes.createDecimalType(38, 10);
    private static final String DRAY = "dray";

    /** A column, its types in the databases that have it, and the values it may have. */
    record Column(String name, DataType type, Map<String, String> definitions, Object... values) {
        boolean isIn(String database) {
            return database.equals(DRAY) || definitions.containsKey(database);
        }

        String definition(String database) {
            return definitions.get(database);
        }
    }

    private static final String[] STRINGS = {"", " ", "a", "A", "a ", "a  ", "ab", "aB", "Ab", "b",
        "B", "ä", "a\u0308", "Ä", "ss", "ß", "ǅ", "é", "e\u0301", "z", "Z", "😀", "😁", "\uFFFC",
        "\uE000", "it's", "\"", "\\", "\\'", "a\\", "%", "_", "a%b", "a_b", "!", "!%", "a\nb", "\t",
        "NULL", "0", "1", "10", "9", "\u00A0", "\u200B", "a\u200B", "İ", "ı", "i", "I", "日本", "--",
        "/*", "$1", "?", "%s", "{}", "😀%", "x😀", "\u007F", "`", "\u0001"};
    private static final Instant[] INSTANTS = {Instant.parse("1970-01-01T00:00:01Z"),
        Instant.parse("1999-12-31T23:59:59.999999Z"), Instant.parse("2024-03-31T01:30:00Z"),
        Instant.parse("2024-03-31T00:30:00.000001Z"), Instant.parse("2024-10-27T00:30:00Z"),
        Instant.parse("2024-10-27T01:30:00Z"), Instant.parse("2037-12-31T23:59:59Z"),
        Instant.parse("2024-02-29T12:00:00.5Z")};
    private static final LocalDateTime[] TIMES = {LocalDateTime.parse("1970-01-01T00:00:00"),
        LocalDateTime.parse("1969-12-31T23:59:59.999999"),
        LocalDateTime.parse("2024-03-31T02:30:00"), LocalDateTime.parse("1999-12-31T23:59:59.5"),
        LocalDateTime.parse("2024-10-27T02:30:00"),
        LocalDateTime.parse("1700-01-01T00:00:00.000001"),
        LocalDateTime.parse("2261-12-31T00:00:00")};
    private static final LocalDate[] DATES = {LocalDate.of(1, 1, 1), LocalDate.of(1582, 10, 4),
        LocalDate.of(1582, 10, 15), LocalDate.of(1969, 12, 31), LocalDate.of(1970, 1, 1),
        LocalDate.of(2000, 2, 29), LocalDate.of(2024, 2, 29), LocalDate.of(2024, 12, 31),
        LocalDate.of(2025, 1, 1), LocalDate.of(9999, 12, 31)};
    private static final BigDecimal GREATEST =
            new BigDecimal(BigInteger.TEN.pow(38).subtract(BigInteger.ONE), 10);

    static final List<Column> COLUMNS = List.of(
        column("id", DataTypes.IntegerType, "integer", "int"),
        column("b", DataTypes.BooleanType, "boolean", null, true, false),
        column("t", DataTypes.ByteType, null, "tinyint", (byte) -128, (byte) 0, (byte) 1,
                (byte) 127),
        column("s", DataTypes.ShortType, "smallint", "smallint", Short.MIN_VALUE, Short.MAX_VALUE,
                (short) -1, (short) 0, (short) 1, (short) 70),
        column("i", DataTypes.IntegerType, "integer", "int", Integer.MIN_VALUE, Integer.MAX_VALUE,
                -1, 0, 1, 2, 10, 100),
        column("l", DataTypes.LongType, "bigint", "bigint", Long.MIN_VALUE, Long.MAX_VALUE, -1L, 0L,
                1L, (1L << 53) + 1, 1L << 53),
        column("f", DataTypes.FloatType, "real", "float", 0f, -0f, 1f, -1f, 0.1f, Float.NaN,
                Float.intBitsToFloat(0xffc00001), Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY,
                Float.MAX_VALUE, 16777216f),
        column("d", DataTypes.DoubleType, "double precision", "double", 0d, -0d, 1d, -1d, 0.1,
                (double) 0.1f, Double.NaN, Double.longBitsToDouble(0xfff8000000000001L),
                Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MAX_VALUE,
                9007199254740992d, 1e-300),
        column("n", CENTS, "numeric(10,2)", "decimal(10,2)", new BigDecimal("0.00"),
                new BigDecimal("-0.01"), new BigDecimal("1.50"), new BigDecimal("99999999.99"),
                new BigDecimal("-99999999.99"), new BigDecimal("0.10")),
        column("q", DataTypes.createDecimalType(12, 2), "numeric(12,2)", "decimal(12,2)",
                new BigDecimal("0.00"), new BigDecimal("0.07"), new BigDecimal("-0.01"),
                new BigDecimal("9999999999.99")),
        column("p", DataTypes.createDecimalType(4, 2), "numeric(4,2)", "decimal(4,2)",
                new BigDecimal("0.00"), new BigDecimal("0.07"), new BigDecimal("99.99")),
        column("u", UNSIGNED, null, "bigint unsigned", new BigDecimal("0"), new BigDecimal("3"),
                new BigDecimal("18446744073709551615")),
        column("m", LONG_DECIMAL, "numeric(38,10)", "decimal(38,10)", GREATEST, GREATEST.negate(),
                new BigDecimal("0.0000000000"), new BigDecimal("0.0000000001"),
                new BigDecimal("1.5000000000")),
        column("v", DataTypes.StringType, "text", "varchar(50)", (Object[]) STRINGS),
        column("w", DataTypes.StringType, "varchar(50)", "longtext COLLATE utf8mb4_bin",
                (Object[]) STRINGS),
        column("icu", DataTypes.StringType, "text COLLATE \"de-x-icu\"",
                "varchar(50) COLLATE utf8mb4_unicode_ci", (Object[]) STRINGS),
        column("ci", DataTypes.StringType, "citext", "varchar(300) COLLATE utf8mb4_general_ci",
                (Object[]) STRINGS),
        column("nd", DataTypes.StringType, "text COLLATE nocase", null, (Object[]) STRINGS),
        column("c", DataTypes.StringType, "char(4)", "char(4)", "", "a", "A", "a%", "ä", "😀",
                "abcd", "a\\", "it's"),
        column("e", DataTypes.StringType, null, "enum('a','A ','ä','10','9') COLLATE utf8mb4_bin",
                "a", "ä", "10", "9"),
        column("x", DataTypes.BinaryType, "bytea", "varbinary(50)", new byte[0], new byte[] {0},
                new byte[] {0, 0}, new byte[] {-1}, new byte[] {127}, new byte[] {' '},
                "a".getBytes(StandardCharsets.UTF_8), "A".getBytes(StandardCharsets.UTF_8)),
        column("day", DataTypes.DateType, "date", "date", (Object[]) DATES),
        column("ts", DataTypes.TimestampType, "timestamptz", "timestamp(6) NULL",
                (Object[]) INSTANTS),
        column("nt", DataTypes.TimestampNTZType, "timestamp", "datetime(6)", (Object[]) TIMES),
        column("odd \"`'%\\", DataTypes.IntegerType, "integer", "int", 1, 2));

    private NastyTable() { }

    private static Column column(String name, DataType type, String postgresql, String mysql,
            Object... values) {
        var definitions = new java.util.HashMap<String, String>();
        if (postgresql != null) {
            definitions.put("postgresql", postgresql);
        }
        if (mysql != null) {
            for (String database : List.of("mariadb", "mysql")) {
                definitions.put(database, mysql);
            }
        }
        return new Column(name, type, definitions, values);
    }

    static List<Column> columns(String database) {
        return COLUMNS.stream().filter(column -> column.isIn(database)).toList();
    }

    static StructType schema(List<Column> columns) {
        var schema = new StructType();
        for (Column column : columns) {
            schema = schema.add(column.name(), column.type());
        }
        return schema;
    }

    /** Rows with a number each, and values by chance, of which some are NULL. */
    static List<Object[]> rows(List<Column> columns, int count, Random random) {
        var rows = new ArrayList<Object[]>();
        for (int id = 0; id < count; id++) {
            Object[] row = new Object[columns.size()];
            for (int i = 1; i < row.length; i++) {
                Object[] values = columns.get(i).values();
                // All of the values come in the first rows.
                row[i] = id < values.length ? values[id]
                        : random.nextInt(8) == 0 ? null : values[random.nextInt(values.length)];
            }
            row[0] = id;
            rows.add(row);
        }
        return rows;
    }

    /** All values of a type, for literals. */
    static Object[] values(DataType type) {
        return COLUMNS.stream().filter(column -> column.type().equals(type))
                .flatMap(column -> Arrays.stream(column.values())).distinct().toArray();
    }
}
