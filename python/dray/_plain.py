"""Arrow's extension types as the plain types that every engine knows."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from ._optional import import_optional
from .errors import UsageError

if TYPE_CHECKING:
    from pyarrow import DataType, RecordBatch, Schema  # type: ignore[import-untyped,unused-ignore]

__all__ = ["plain_batch", "plain_schema"]


def plain_schema(schema: Schema) -> Schema:
    """A schema in which UUIDs and JSON are text.

    Raises
    ------
    UsageError
        A column has UUIDs in lists or structs.
    """
    pyarrow = import_optional("pyarrow")
    return pyarrow.schema([field.with_type(_type(field.type, field.name)) for field in schema])


def plain_batch(batch: RecordBatch, schema: Schema) -> RecordBatch:
    """The batch with the types of a schema of :func:`plain_schema`."""
    pyarrow = import_optional("pyarrow")
    arrays = []
    for array, field in zip(batch.columns, schema, strict=True):
        if isinstance(array, pyarrow.ExtensionArray):
            array = _texts(array.storage) if _is_uuid(array.type) else array.storage
        arrays.append(array if array.type == field.type else array.cast(field.type))
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _type(data_type: DataType, column: str, nested: bool = False) -> DataType:
    pyarrow = import_optional("pyarrow")
    types = import_optional("pyarrow.types")
    if isinstance(data_type, pyarrow.BaseExtensionType):
        if not _is_uuid(data_type):
            return data_type.storage_type
        if not nested:
            return pyarrow.string()
        raise UsageError(
            f"column {column!r} has UUIDs in other values",
            "convert them in a query, for instance to text: CAST(… AS text[])",
        )
    if types.is_list(data_type):
        item = data_type.value_field
        return pyarrow.list_(item.with_type(_type(item.type, column, True)))
    if types.is_struct(data_type):
        fields = [data_type.field(i) for i in range(data_type.num_fields)]
        return pyarrow.struct([f.with_type(_type(f.type, column, True)) for f in fields])
    return data_type


def _is_uuid(data_type: DataType) -> bool:
    return bool(data_type.extension_name == "arrow.uuid")


def _texts(array: Any) -> Any:
    """UUIDs as texts of 36 characters."""
    pyarrow = import_optional("pyarrow")
    values = (None if value is None else uuid.UUID(bytes=value) for value in array.to_pylist())
    texts = [None if value is None else str(value) for value in values]
    return pyarrow.array(texts, pyarrow.string())
