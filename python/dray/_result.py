"""Results, and what they become."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _dray
from .errors import UsageError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Result"]


class Result:
    def __init__(self, native: _dray.Result) -> None:
        self._native = native
        self._reading: str | None = None

    def arrow(self) -> pyarrow.Table:
        """The whole result as a table, in the memory that it was received into."""
        pyarrow = _import("pyarrow")
        self._begin("arrow()")
        table: pyarrow.Table = pyarrow.table(self._native.read_all())
        return table

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        pyarrow = _import("pyarrow")
        self._begin("batches()")

        def next_batch() -> pyarrow.RecordBatch | None:
            batch = self._native.next_batch()
            return None if batch is None else pyarrow.record_batch(batch)

        # Not a generator: its frame would keep each batch alive while the next one is received.
        return iter(next_batch, None)

    @property
    def stats(self) -> dict[str, Any]:
        return self._native.stats()

    def close(self) -> None:
        self._native.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self._begin("__arrow_c_stream__")
        return self._native.stream()

    def _begin(self, how: str) -> None:
        if self._reading is not None:
            raise UsageError(
                f"the result was already read by {self._reading}", "a result is read once; keep the table, or query again"
            )
        self._reading = how


def _import(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"{name} is not installed; pip install 'dray[{name}]'", name=name) from error
