"""Formats without a server: how many bytes a table takes as DBMS X sends it, by section 2.3 of the
paper. Nothing is sent and nothing is timed.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: The paper draws a header before each row without stating its bytes. This is the least that could
#: tell a message's kind and a row's length.
ROW_HEADER_BYTES = 3
#: A date in seven bytes, and a number as an exponent and two decimal digits a byte: the terse forms
#: that the paper calls a custom format, as a widely used commercial system documents them.
DATE_BYTES = 7
#: Values longer than this have a length of more than one byte.
SHORT_BYTES_MAX = 127


def dbms_x_bytes(parquet: Path) -> int:
    """Each row has a header, and each value a length of one byte or more before it. A missing value
    is a length of 0.
    """
    total = 0
    with pq.ParquetFile(parquet) as source:
        for batch in source.iter_batches():
            total += batch.num_rows * ROW_HEADER_BYTES
            total += sum(column_bytes(column) for column in batch.columns)
    return total


def column_bytes(column: pa.Array) -> int:
    """Bytes of the values of a column with their lengths."""
    present = column.drop_null()
    if pa.types.is_temporal(column.type):
        return len(column) + DATE_BYTES * len(present)
    is_text = pa.types.is_string(column.type) or pa.types.is_string_view(column.type)
    values = pc.binary_length(present.cast(pa.string())) if is_text else number_bytes(present)
    long = pc.sum(pc.cast(pc.greater(values, SHORT_BYTES_MAX), pa.int64())).as_py() or 0
    return len(column) + long + (pc.sum(values).as_py() or 0)


def number_bytes(column: pa.Array) -> pa.Array:
    """One byte for the sign and the exponent, and one for each two digits. Zeroes at either end
    take none. A pair may begin at any digit here, which is the least that it can take.
    """
    digits = pc.replace_substring(column.cast(pa.string()), ".", "")
    significant = pc.utf8_rtrim(pc.utf8_ltrim(digits, "-0"), "0")
    return pc.add(1, pc.divide(pc.add(pc.utf8_length(significant), 1), 2))
