"""The compiled half of the package. The classes that users see are documented here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final, overload

from typing_extensions import Self

__version__: str

def connect(
    uri: str,
    token: str | None,
    plain_token: bool,
    ca: str | None,
    timeout: float,
    read_timeout: float | None,
    local_socket: bool,
    check: Callable[[], object] | None,
) -> Connection: ...

class Closing:
    """A base class whose `with` block calls `close`, also when interrupted."""

    def __new__(cls, *arguments: object, **options: object) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *raised: object) -> None: ...

@final
class Connection:
    @property
    def server(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def dialect(self) -> str: ...
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
        partition_by: str | None,
        ordered: bool,
        progress: Callable[[Progress], object] | None,
    ) -> Result: ...
    def objects(
        self,
        sql: str,
        params: Sequence[Any] | None,
        layout: str,
        row_bytes_max: int | None,
        compression: str,
        checksums: str,
        extension: str,
        numeric: str,
        nonfinite: str,
        partitions: str,
        partition_by: str | None,
        ordered: bool,
        progress: Callable[[Progress], object] | None,
    ) -> Objects: ...

@final
class Objects:
    @property
    def estimate(self) -> Estimate: ...
    @property
    def progress(self) -> Progress: ...
    def next_page(self) -> list[Object] | None: ...
    def stats(self) -> dict[str, Any]: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Result:
    @property
    def columns(self) -> list[str]: ...
    @property
    def fields(self) -> list[tuple[str, str, dict[str, str]]]: ...
    @property
    def estimate(self) -> Estimate: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def receipt(self) -> bytes | None: ...
    def next_batch(self) -> Batch | None: ...
    def next_rows(self) -> list[tuple[Any, ...]] | None: ...
    def read_all(self) -> Table: ...
    def stream(self) -> object: ...
    def stats(self) -> dict[str, Any]: ...
    def cancel(self) -> None: ...
    def close(self) -> None: ...
    def __arrow_c_schema__(self) -> object: ...

def plan(
    connection: Connection,
    sql: str,
    params: Sequence[Any] | None,
    at_most: int | None,
    lease: float,
    include_password: bool,
    strings: str,
    numeric: str,
    nonfinite: str,
    snapshot: bytes | None,
    report: Callable[[Progress], object] | None,
) -> Plan: ...
def part_uri(descriptor: bytes, uri: str | None) -> str: ...
def read_partition(
    connection: Connection,
    descriptor: bytes,
    row_bytes_max: int | None,
    batch_rows: int,
    batch_bytes: int,
    compression: str,
    strings: str,
    extension: str,
    progress: Callable[[Progress], object] | None,
) -> Result: ...

@final
class Plan:
    @property
    def partitions(self) -> list[bytes]: ...
    @property
    def estimates(self) -> list[Estimate]: ...
    @property
    def reason(self) -> str | None: ...
    @property
    def released(self) -> bool: ...
    @property
    def columns(self) -> list[str]: ...
    def release(self) -> None: ...
    def verify(self, receipts: Sequence[bytes]) -> tuple[int, int, int]: ...
    def __arrow_c_schema__(self) -> object: ...

def write(
    connection: Connection,
    table: str,
    source: object,
    mode: str,
    schema: str | None,
    temporary: bool,
    types: Sequence[tuple[str, str]],
    connections: int,
    progress: Callable[[Progress], object] | None,
) -> tuple[int, int, bool, tuple[float, float, float, float, float]]: ...
def sort(
    source: object,
    by: Sequence[str | tuple[str, bool, bool]],
    memory: str | None,
    spill: str | None,
    distinct: str,
    limit: int | None,
    threads: int,
    progress: Callable[[SortProgress], object] | None,
) -> Sorted: ...

@final
class SortProgress:
    """The progress of a sort."""

    @property
    def rows_read(self) -> int:
        """Rows read from the source."""

    @property
    def spilled_bytes(self) -> int:
        """Bytes written to disk."""

@final
class Sorted:
    """Sorted rows, as an Arrow stream that can be read once."""

    @property
    def spilled_bytes(self) -> int | None:
        """Bytes written to disk; None once a consumer has taken the rows."""

    def __arrow_c_schema__(self) -> object:
        """The schema, for consumers of Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, for consumers of Arrow's PyCapsule interface.

        ``requested_schema`` is ignored.
        """

@final
class Batch:
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[object, object]: ...

@final
class Table:
    def values(self, column: int) -> list[Any]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Progress:
    """The progress of a statement."""

    @property
    def rows(self) -> int:
        """Rows received."""

    @property
    def bytes(self) -> int:
        """Bytes of chunks received."""

    @property
    def rows_read(self) -> int:
        """Rows that the server's scans read so far."""

    @property
    def estimate(self) -> Estimate:
        """The planner's estimate of the result's size."""

@final
class Estimate:
    """The planner's estimate of a result's size."""

    @property
    def rows(self) -> int | None:
        """Rows, or None if unknown."""

    @property
    def rows_exact(self) -> bool:
        """Whether ``rows`` is exact rather than an estimate."""

    @property
    def bytes(self) -> int | None:
        """Bytes of Arrow data, or None if unknown."""

    @property
    def bytes_exact(self) -> bool:
        """Whether ``bytes`` is exact rather than an estimate."""

def server_uri(uri: str) -> tuple[str | None, str | None, float | None] | None: ...
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

@final
class Object(Mapping[str, Any]):
    """An object of a page file, or a struct in one, read in place.

    A field is read when it is asked for: ``customer.name``, or ``customer["first name"]`` for what
    is no name in Python. Structs are objects, lists are :class:`ObjectList`, a missing value is
    ``None``, and other values are as in :meth:`Result.rows`. An object equals a dict with the same
    values. It keeps its page in memory.

    A field comes before a method of the same name: ``order.items`` may be a list of items. Then
    ``dray.Object.items(order)`` calls the method.
    """

    def __getattr__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def dict(self) -> dict[str, Any]:
        """All values, with dicts and lists in place of objects.

        Raises
        ------
        UsageError
            Several fields have the same name: read them with ``values()``.
        """

@final
class ObjectList(Sequence[Any]):
    """The items of a list in an object, read in place.

    Numbers that are never missing lie side by side: ``numpy.asarray(prices)`` and
    :meth:`memoryview` copy nothing.
    """

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __len__(self) -> int: ...
    def list(self) -> list[Any]:
        """All items, with dicts and lists in place of objects."""

    def memoryview(self) -> memoryview:
        """The numbers, where they lie in the page. It keeps the page in memory.

        Raises
        ------
        UsageError
            The items are no numbers, or may be missing.
        """

    @property
    def __array_interface__(self) -> dict[str, Any]: ...

@final
class ObjectEditor(Mapping[str, Any]):
    """An object of a page file that is changed, or a struct in one: from :func:`edit_pages`.

    It is read as an :class:`Object` is, and its fields are assigned: ``customer.name = "new"``,
    ``customer["first name"] = "new"``. It means a place: after ``file[17] = {…}`` it has the new
    object's values. A struct that has become missing is refused until it is assigned a dict.
    """

    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: Any) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def dict(self) -> dict[str, Any]:
        """A copy of all values, with dicts and lists in place of objects."""

@final
class ListEditor(Sequence[Any]):
    """The items of a list in an object that is changed: structs are :class:`ObjectEditor`.

    The pairs of a map are tuples. Each change of the number of items writes the object anew: assign
    or :meth:`extend` many at once. An item that was looked up is refused when it has moved since,
    because another one was inserted or removed before it; look it up again.
    """

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __setitem__(self, index: int | slice, value: Any) -> None: ...
    def __delitem__(self, index: int | slice) -> None: ...
    def __iadd__(self, values: Iterable[Any]) -> ListEditor: ...
    def __len__(self) -> int: ...
    def append(self, value: Any) -> None:
        """Add an item."""

    def extend(self, values: Iterable[Any]) -> None:
        """Add items."""

    def insert(self, index: int, value: Any) -> None:
        """Add an item before another one."""

    def clear(self) -> None:
        """Remove all items."""

    def list(self) -> list[Any]:
        """A copy of all items, with dicts and lists in place of objects."""

@final
class PageFileEditor:
    def __init__(self, path: str) -> None: ...
    def __len__(self) -> int: ...
    def key(self) -> list[list[str]]: ...
    def get(self, ordinal: int) -> ObjectEditor: ...
    def set(self, ordinal: int, value: Mapping[str, Any]) -> None: ...
    def find(self, key: list[int | str | bytes | bool]) -> list[int]: ...
    def is_changed(self) -> bool: ...
    def write(self, path: str) -> None: ...
    def close(self) -> None: ...

@final
class PageWriter:
    def __init__(self, path: str, schema: object, key: list[list[str]]) -> None: ...
    def append(self, value: Mapping[str, Any]) -> None: ...
    def finish(self) -> tuple[int, int, int]: ...

@final
class PageFile:
    def __init__(self, path: str) -> None: ...
    def size(self) -> tuple[int, int, int]: ...
    def schema_digest(self) -> bytes: ...
    def key(self) -> list[list[str]]: ...
    def get(self, ordinal: int) -> Object: ...
    def page(self, page: int) -> list[Object]: ...
    def find(self, key: list[int | str | bytes | bool]) -> list[int]: ...
    def check(self) -> None: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def write_pages(path: str, source: object, key: list[list[str]]) -> tuple[int, int, int]: ...

@final
class Nested:
    """Nested rows, as an Arrow stream that can be read once: from :func:`dray.nest`."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def nest(connection: Connection, spec: str, memory: str | None, spill: str | None) -> Nested: ...
