package dray.spark;

import java.util.List;
import org.apache.arrow.c.ArrowSchema;
import org.apache.arrow.c.CDataDictionaryProvider;
import org.apache.arrow.c.Data;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimeType;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * Spark's types of the Arrow types that native code hands out ({@code spark_types.rs}). All take
 * NULL, as those of Spark's own sources: a column may get some before it is read.
 */
final class SparkTypes {
    /** All of Dray's sources count microseconds at most. */
    private static final int TIME_PRECISION = 6;

    private SparkTypes() {}

    /** The columns of what a handle stands for, as Arrow has them. */
    static Schema arrowSchema(long handle, BufferAllocator allocator) {
        try (ArrowSchema schema = ArrowSchema.allocateNew(allocator);
                CDataDictionaryProvider dictionaries = new CDataDictionaryProvider()) {
            Native.schema(handle, schema.memoryAddress());
            return Data.importSchema(allocator, schema, dictionaries);
        }
    }

    /** The columns of what a handle stands for. */
    static StructType schema(long handle) {
        return struct(arrowSchema(handle, ArrowUtils.rootAllocator()).getFields());
    }

    static StructType struct(List<Field> fields) {
        return new StructType(fields.stream().map(SparkTypes::field).toArray(StructField[]::new));
    }

    private static StructField field(Field field) {
        return new StructField(field.getName(), type(field), true, Metadata.empty());
    }

    private static DataType type(Field field) {
        ArrowType type = field.getType();
        if (type instanceof ArrowType.Int number) {
            switch (number.getBitWidth()) {
                case 8: return DataTypes.ByteType;
                case 16: return DataTypes.ShortType;
                case 32: return DataTypes.IntegerType;
                default: return DataTypes.LongType;
            }
        }
        if (type instanceof ArrowType.Decimal decimal) {
            return DataTypes.createDecimalType(decimal.getPrecision(), decimal.getScale());
        }
        if (type instanceof ArrowType.Timestamp timestamp) {
            return timestamp.getTimezone() == null
                    ? DataTypes.TimestampNTZType : DataTypes.TimestampType;
        }
        if (type instanceof ArrowType.Interval interval) {
            switch (interval.getUnit()) {
                case YEAR_MONTH: return DataTypes.createYearMonthIntervalType();
                default: return DataTypes.CalendarIntervalType;
            }
        }
        switch (type.getTypeID()) {
            case Null: return DataTypes.NullType;
            case Bool: return DataTypes.BooleanType;
            case FloatingPoint: return floating((ArrowType.FloatingPoint) type);
            case Utf8: return DataTypes.StringType;
            case Binary: return DataTypes.BinaryType;
            case Date: return DataTypes.DateType;
            case Time: return new TimeType(TIME_PRECISION);
            case Duration: return DataTypes.createDayTimeIntervalType();
            case List: return DataTypes.createArrayType(type(field.getChildren().get(0)), true);
            case Struct: return struct(field.getChildren());
            case Map: {
                List<Field> entry = field.getChildren().get(0).getChildren();
                return DataTypes.createMapType(type(entry.get(0)), type(entry.get(1)), true);
            }
            default: throw new DrayException("column " + field.getName() + " has the type " + type
                    + ", which Spark does not have");
        }
    }

    private static DataType floating(ArrowType.FloatingPoint type) {
        switch (type.getPrecision()) {
            case SINGLE: return DataTypes.FloatType;
            default: return DataTypes.DoubleType;
        }
    }
}
