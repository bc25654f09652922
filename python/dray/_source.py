"""The sources of rows that Dray reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .errors import Error, ExecutionError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Protocol

    from pyarrow import RecordBatch, RecordBatchReader  # type: ignore[import-untyped,unused-ignore]

    class ArrowStream(Protocol):
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class SourceRecorder:
    """Wraps a source while it is read. If the source raises an exception, that one leaves the
    block: Arrow's C stream interface passes on only its text.
    """

    def __init__(self, source: ArrowStream) -> None:
        self.source = source
        self._failure: BaseException | None = None
        pyarrow = sys.modules.get("pyarrow")
        # Only a pyarrow reader can run Python code; other sources need no wrapper.
        if pyarrow is not None and isinstance(source, pyarrow.RecordBatchReader):
            self.source = pyarrow.RecordBatchReader.from_batches(
                source.schema, self._batches(source)
            )

    def _batches(self, reader: RecordBatchReader) -> Iterator[RecordBatch]:
        try:
            yield from reader
        except GeneratorExit:
            raise
        except BaseException as failure:
            self._failure = failure
            raise

    def __enter__(self) -> SourceRecorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # The traceback of the exception would keep frames and their batches alive.
        cause, self._failure = self._failure, None
        if cause is None or not isinstance(error, Error):
            return
        if not isinstance(cause, Exception):
            raise cause from None
        raise ExecutionError(
            f"the source of the rows failed: {type(cause).__name__}: {cause}"
        ) from cause
