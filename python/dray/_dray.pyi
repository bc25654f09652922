"""The compiled half of the package."""

from collections.abc import Callable, Sequence
from typing import Any, final

__version__: str

def connect(
    uri: str,
    token: str | None,
    plain_token: bool,
    ca: str | None,
    timeout: float,
    read_timeout: float | None,
) -> Connection: ...

@final
class Connection:
    @property
    def server(self) -> str: ...
    @property
    def place(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    def close(self) -> None: ...
    def query(
        self,
        sql: str,
        params: Sequence[Any] | None,
        chunk_bytes_max: int | None,
        decoded_bytes_max: int | None,
        row_bytes_max: int | None,
        batch_rows: int,
        batch_bytes: int,
        compression: str,
        checksums: str,
        strings: str,
        extension: str,
        numeric: str,
        nonfinite: str,
        partitions: str,
        ordered: bool,
        progress: Callable[[Progress], object] | None,
    ) -> Result: ...

@final
class Result:
    @property
    def columns(self) -> list[str]: ...
    @property
    def estimate(self) -> Estimate: ...
    @property
    def progress(self) -> Progress: ...
    def next_batch(self) -> Batch | None: ...
    def next_rows(self) -> list[tuple[Any, ...]] | None: ...
    def read_all(self) -> Table: ...
    def stream(self) -> object: ...
    def stats(self) -> dict[str, Any]: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def __arrow_c_schema__(self) -> object: ...

def sort(
    source: object,
    by: Sequence[str],
    memory: str | None,
    spill: str | None,
    distinct: str,
    limit: int | None,
    threads: int,
    progress: Callable[[SortProgress], object] | None,
) -> Sorted: ...

@final
class SortProgress:
    @property
    def rows_read(self) -> int: ...
    @property
    def spilled_bytes(self) -> int: ...

@final
class Sorted:
    @property
    def spilled_bytes(self) -> int | None: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Batch:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

@final
class Table:
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Progress:
    """How far a statement is."""

    @property
    def rows(self) -> int:
        """Rows received."""

    @property
    def bytes(self) -> int:
        """Bytes of chunks received."""

    @property
    def rows_read(self) -> int:
        """Rows that the server's scans have read."""

    @property
    def estimate(self) -> Estimate:
        """What the planner expects of the result."""

@final
class Estimate:
    """What the planner expects of a result."""

    @property
    def rows(self) -> int | None:
        """Rows, or None if nothing is known."""

    @property
    def rows_exact(self) -> bool:
        """Whether ``rows`` is the number itself rather than a guess."""

    @property
    def bytes(self) -> int | None:
        """Bytes of Arrow data, or None if nothing is known."""

    @property
    def bytes_exact(self) -> bool:
        """Whether ``bytes`` is the number itself rather than a guess."""

def enclosable(sql: str, escapes: bool) -> str | None: ...
def is_query(sql: str) -> bool: ...
def other_library(answer: str) -> str | None: ...

@final
class Copy:
    def __new__(
        cls,
        numeric: str,
        nonfinite: str,
        money_scale: int | None,
        strings: str,
        row_bytes_max: int | None,
    ) -> Copy: ...
    @staticmethod
    def is_describable(sql: str, escapes: bool) -> bool: ...
    def describe(self, columns: list[tuple[str, int, int]], server_version: int) -> str | None: ...
    def learn(self, rows: list[list[str | None]]) -> None: ...
    def rows(self, sql: str) -> tuple[str, bool]: ...
    def frames(self, sql: str) -> str: ...
    def write(self, data: bytes) -> int: ...
    def finish(self, counted: int | None) -> Table: ...
