package dray.spark;

import java.util.List;
import java.util.stream.Stream;
import org.apache.arrow.vector.complex.MapVector;
import org.apache.arrow.vector.types.DateUnit;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.IntervalUnit;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.types.VarcharType;
import org.apache.spark.sql.types.YearMonthIntervalType;

/** The Arrow types in which columns of Spark are written. */
final class ArrowTypes {
    private ArrowTypes() {}

    /** The columns. All take NULL: what must not be NULL is the database's to say. */
    static Schema schema(StructType columns) {
        return new Schema(Stream.of(columns.fields())
                .map(column -> field(column.name(), column.dataType(), column.name())).toList());
    }

    private static Field field(String name, DataType type, String path) {
        return new Field(name, FieldType.nullable(type(type, path)), children(type, path));
    }

    private static List<Field> children(DataType type, String path) {
        if (type instanceof ArrayType array) {
            return List.of(field("element", array.elementType(), path + ".element"));
        }
        if (type instanceof StructType struct) {
            return Stream.of(struct.fields()).map(field -> field(
                    field.name(), field.dataType(), path + "." + field.name())).toList();
        }
        if (type instanceof MapType map) {
            ArrowType keyType = type(map.keyType(), path + ".key");
            Field key = new Field(MapVector.KEY_NAME, FieldType.notNullable(keyType),
                    children(map.keyType(), path + ".key"));
            Field value = field(MapVector.VALUE_NAME, map.valueType(), path + ".value");
            return List.of(new Field(MapVector.DATA_VECTOR_NAME,
                    FieldType.notNullable(ArrowType.Struct.INSTANCE), List.of(key, value)));
        }
        return List.of();
    }

    private static ArrowType type(DataType type, String path) {
        if (type instanceof DecimalType decimal) {
            return new ArrowType.Decimal(decimal.precision(), decimal.scale(), 128);
        } else if (type instanceof StringType && !(type instanceof CharType)
                && !(type instanceof VarcharType)) {
            return ArrowType.Utf8.INSTANCE;
        } else if (type instanceof TimeType) {
            return new ArrowType.Time(TimeUnit.NANOSECOND, 64);
        } else if (type instanceof YearMonthIntervalType) {
            return new ArrowType.Interval(IntervalUnit.YEAR_MONTH);
        } else if (type instanceof DayTimeIntervalType) {
            return new ArrowType.Duration(TimeUnit.MICROSECOND);
        } else if (type instanceof ArrayType) {
            return ArrowType.List.INSTANCE;
        } else if (type instanceof StructType) {
            return ArrowType.Struct.INSTANCE;
        } else if (type instanceof MapType) {
            return new ArrowType.Map(false);
        }
        switch (type.typeName()) {
            case "void": return ArrowType.Null.INSTANCE;
            case "boolean": return ArrowType.Bool.INSTANCE;
            case "byte": return new ArrowType.Int(8, true);
            case "short": return new ArrowType.Int(16, true);
            case "integer": return new ArrowType.Int(32, true);
            case "long": return new ArrowType.Int(64, true);
            case "float": return new ArrowType.FloatingPoint(FloatingPointPrecision.SINGLE);
            case "double": return new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE);
            case "binary": return ArrowType.Binary.INSTANCE;
            case "date": return new ArrowType.Date(DateUnit.DAY);
            case "timestamp": return new ArrowType.Timestamp(TimeUnit.MICROSECOND, "UTC");
            case "timestamp_ntz": return new ArrowType.Timestamp(TimeUnit.MICROSECOND, null);
            default: throw new DrayException("column " + path + " has the type "
                    + type.simpleString() + ", which Dray does not write: cast it first");
        }
    }
}
