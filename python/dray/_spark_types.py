"""Arrow's types as Spark's, and batches with exactly the Arrow types that Spark expects."""

from __future__ import annotations

from typing import Any

from ._optional import import_optional
from ._plain import plain_batch, plain_schema
from .errors import ExecutionError, UsageError

pyarrow = import_optional("pyarrow")
types = import_optional("pyarrow.types")
spark = import_optional("pyspark.sql.types")

__all__ = ["Conversion"]

_DECIMAL_DIGITS_MAX = 38
# Arrow's type, Spark's, and what Spark expects in Arrow.
_SAME = [
    (pyarrow.bool_(), "BooleanType", pyarrow.bool_()),
    (pyarrow.int8(), "ByteType", pyarrow.int8()),
    (pyarrow.int16(), "ShortType", pyarrow.int16()),
    (pyarrow.int32(), "IntegerType", pyarrow.int32()),
    (pyarrow.int64(), "LongType", pyarrow.int64()),
    # Spark has no unsigned integers.
    (pyarrow.uint8(), "ShortType", pyarrow.int16()),
    (pyarrow.uint16(), "IntegerType", pyarrow.int32()),
    (pyarrow.uint32(), "LongType", pyarrow.int64()),
    (pyarrow.float16(), "FloatType", pyarrow.float32()),
    (pyarrow.float32(), "FloatType", pyarrow.float32()),
    (pyarrow.float64(), "DoubleType", pyarrow.float64()),
    (pyarrow.date32(), "DateType", pyarrow.date32()),
    (pyarrow.null(), "NullType", pyarrow.null()),
]
# pyarrow 15 has no tests for views.
_TEXTS = (
    types.is_string,
    types.is_large_string,
    getattr(types, "is_string_view", types.is_string),
)
_BINARIES = (
    types.is_binary,
    types.is_large_binary,
    getattr(types, "is_binary_view", types.is_binary),
)
_LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list)


class Conversion:
    """What becomes of the columns of a result in Spark.

    Parameters
    ----------
    schema : pyarrow.Schema
        The result's.

    Raises
    ------
    UsageError
        Spark has no type for a column.
    """

    def __init__(self, schema: Any) -> None:
        #: The columns as a :class:`pyspark.sql.types.StructType`.
        self.schema = spark.StructType()
        fields = []
        self._plain = plain_schema(schema)
        for field in self._plain:
            spark_type, arrow_type = _types(field.type, field.name)
            self.schema.add(field.name, spark_type, nullable=True)
            fields.append(pyarrow.field(field.name, arrow_type))
        self._expected = pyarrow.schema(fields)

    def check(self, schema: Any) -> None:
        """Refuse a schema that the user has given, unless it is this one.

        Raises
        ------
        UsageError
            It is another one.
        """
        given = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        own = [(field.name, field.dataType.simpleString()) for field in self.schema.fields]
        if given != own:
            raise UsageError(
                f"the schema is {self.schema.simpleString()}, not {schema.simpleString()}",
                "leave .schema(…) out, and use CAST in SQL",
            )

    def convert(self, batch: Any) -> Any:
        """A batch with the types that Spark expects.

        Raises
        ------
        ExecutionError
            A value does not fit. The message names its column.
        """
        arrays = []
        columns = plain_batch(batch, self._plain).columns
        for field, array in zip(self._expected, columns, strict=True):
            try:
                arrays.append(array if array.type == field.type else array.cast(field.type))
            except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
                raise ExecutionError(
                    f"a value of column {field.name!r} does not fit Spark's type: {error}",
                    "convert it in SQL",
                ) from error
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._expected)


def _types(data_type: Any, column: str) -> tuple[Any, Any]:
    """Spark's type for a column of a type, and the Arrow type that Spark expects then."""
    for arrow_type, name, expected in _SAME:
        if data_type == arrow_type:
            return getattr(spark, name)(), expected
    if any(is_text(data_type) for is_text in _TEXTS):
        return spark.StringType(), pyarrow.string()
    if types.is_fixed_size_binary(data_type) or any(is_(data_type) for is_ in _BINARIES):
        return spark.BinaryType(), pyarrow.binary()
    if types.is_uint64(data_type):
        return spark.DecimalType(20, 0), pyarrow.decimal128(20, 0)
    if types.is_decimal(data_type):
        digits, scale = data_type.precision, data_type.scale
        if digits <= _DECIMAL_DIGITS_MAX and 0 <= scale <= digits:
            return spark.DecimalType(digits, scale), pyarrow.decimal128(digits, scale)
    if types.is_timestamp(data_type):
        if data_type.tz is None:
            return spark.TimestampNTZType(), pyarrow.timestamp("us")
        return spark.TimestampType(), pyarrow.timestamp("us", "UTC")
    if types.is_duration(data_type):
        return spark.DayTimeIntervalType(), pyarrow.duration("us")
    if types.is_dictionary(data_type):
        return _types(data_type.value_type, column)
    if types.is_map(data_type):
        key, arrow_key = _types(data_type.key_type, f"{column}.key")
        value, arrow_value = _types(data_type.item_type, f"{column}.value")
        return spark.MapType(key, value), pyarrow.map_(arrow_key, arrow_value)
    if any(is_list(data_type) for is_list in _LISTS):
        item, arrow_item = _types(data_type.value_type, f"{column}.element")
        return spark.ArrayType(item), pyarrow.list_(pyarrow.field("element", arrow_item))
    if types.is_struct(data_type):
        fields = [data_type.field(i) for i in range(data_type.num_fields)]
        found = [(f.name, *_types(f.type, f"{column}.{f.name}")) for f in fields]
        return (
            spark.StructType([spark.StructField(name, of_spark) for name, of_spark, _ in found]),
            pyarrow.struct([pyarrow.field(name, of_arrow) for name, _, of_arrow in found]),
        )
    raise UsageError(
        f"Spark has no type for column {column!r}, {data_type}",
        "convert it in a query, for instance to text: CAST(… AS text)",
    )
