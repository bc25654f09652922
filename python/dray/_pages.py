"""Page files: whole objects on disk, read and changed in place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, overload

from . import _dray
from ._dray import ListEditor, Object, ObjectEditor, ObjectList
from ._source import SourceRecorder
from ._write import _source
from .errors import UsageError

__all__ = [
    "ListEditor",
    "Object",
    "ObjectEditor",
    "ObjectList",
    "PageFile",
    "PageFileEditor",
    "PageWriter",
    "PagesWritten",
    "edit_pages",
    "open_pages",
    "write_pages",
]

Mapping.register(Object)
Mapping.register(ObjectEditor)
Sequence.register(ObjectList)
Sequence.register(ListEditor)


@dataclass(frozen=True)
class PagesWritten:
    """What :func:`write_pages` or a :class:`PageWriter` has written.

    Attributes
    ----------
    objects, pages, bytes : int
        The numbers of objects and pages, and the size of the file.
    """

    objects: int
    pages: int
    bytes: int


class PageFile(Sequence[Object]):
    """The objects of a page file, from :func:`open_pages`.

    A sequence of :class:`Object`. The file is mapped into memory, and only pages that are asked for
    are read and checked. It is also an Arrow stream, which can be read any number of times:
    ``pyarrow.table(file)``, ``polars.DataFrame(file)``. Dictionaries are made anew for each page,
    with indexes of at least 32 bits, and are not ``ordered``: pages have only their values.

    Examples
    --------
    >>> file = dray.open_pages("customers.pages")
    >>> len(file)
    150000
    >>> file[17].name
    'Customer#000000018'
    >>> [customer] = file.find(4711)
    >>> sum(item.price for order in customer.orders for item in order.items)
    Decimal('182345.20')
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._native = _dray.PageFile(os.fspath(path))
        self._path = Path(path)

    def __len__(self) -> int:
        return self._native.size()[0]

    @overload
    def __getitem__(self, ordinal: int) -> Object: ...

    @overload
    def __getitem__(self, ordinal: slice) -> list[Object]: ...

    def __getitem__(self, ordinal: int | slice) -> Object | list[Object]:
        if isinstance(ordinal, slice):
            return [self._native.get(n) for n in range(*ordinal.indices(len(self)))]
        return self._native.get(_number(ordinal, len(self)))

    def __iter__(self) -> Iterator[Object]:
        for page in range(self._native.size()[1]):
            yield from self._native.page(page)

    def __repr__(self) -> str:
        objects, pages, size = self._native.size()
        return (
            f"<dray.PageFile {str(self._path)!r}: {objects} objects, {pages} pages, {size} bytes>"
        )

    @property
    def schema_digest(self) -> bytes:
        """The SHA-256 of the schema, by which generated accessors know their files."""
        return self._native.schema_digest()

    @property
    def key(self) -> list[str | list[str]]:
        """The fields by which :meth:`find` finds objects; empty if the file has no key. The name of
        a field in a struct follows the struct's, with a point between; if a name has a point
        itself, there is a list of the names. :func:`write_pages` takes both.
        """
        return _shown(self._native.key())

    def find(self, *key: int | str | bytes | bool) -> list[Object]:
        """The objects whose key has these values, in their order in the file.

        Parameters
        ----------
        *key : int, str, bytes or bool
            A value for each field of :attr:`key`. A date, a time or a decimal is the integer that
            Arrow stores for it.

        Raises
        ------
        UsageError
            The file has no key, or the values are not of its types.
        ExecutionError
            The key index, or a page with such an object, is damaged.
        """
        return [self._native.get(ordinal) for ordinal in self._native.find(list(key))]

    def ordinals(self, *key: int | str | bytes | bool) -> list[int]:
        """The numbers of the objects that :meth:`find` returns."""
        return self._native.find(list(key))

    def check(self) -> None:
        """Check every byte of the file.

        Raises
        ------
        ExecutionError
            A page or the key index is damaged.
        """
        self._native.check()

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)


def open_pages(path: str | os.PathLike[str]) -> PageFile:
    """Open a page file. Everything but its pages is checked at once; a page when it is first read.

    Raises
    ------
    UsageError
        There is no such file, or it is no page file.
    ExecutionError
        The file is damaged or was cut off. The error of the latter says how many objects
        ``dray pages FILE --salvage --convert OTHER`` can save.

    Examples
    --------
    >>> dray.open_pages("customers.pages")[0]
    """
    return PageFile(path)


def write_pages(path: str | os.PathLike[str], data: Any, *, key: _Key = ()) -> PagesWritten:
    """Write rows as the objects of a page file, which replaces ``path`` once it is complete.

    Parameters
    ----------
    path : path
        The file, by custom with the ending ``.pages``.
    data : object with ``__arrow_c_stream__``, or path
        A table or reader of pyarrow, a DataFrame of pandas or Polars, a relation of DuckDB, a
        :class:`Result`, or the path of a Parquet file. It is read batch by batch.
    key : str, or sequence of str or of sequences of str
        The fields by which :meth:`PageFile.find` finds objects: ``"id"``, ``"address.city"`` for
        a field of a struct, or ``["day", "id"]`` for a key of two fields. They need not be unique.
        A path of names is taken as it is: ``[["address", "zip.code"]]``.

    Raises
    ------
    UsageError
        The data can't be written.
    ExecutionError
        The key is none of the fields, the source of the data failed, or the file can't be written.

    Examples
    --------
    >>> dray.write_pages("orders.pages", connection.query("SELECT * FROM orders"), key="id")
    """
    with _replacing(Path(path)) as temporary, SourceRecorder(_source(data)) as recorder:
        written = _dray.write_pages(temporary, recorder.source, _paths(key))
    return PagesWritten(*written)


class PageWriter:
    """Builds the objects of a page file one by one, straight in its pages.

    The file replaces ``path`` when the ``with`` block ends; after an exception ``path`` is as it
    was. Memory holds a page, and 16 bytes for each object if the file has a key.

    Parameters
    ----------
    path : path
        The file, by custom with the ending ``.pages``.
    schema : object with ``__arrow_c_schema__``
        The types of the fields: a schema of pyarrow, an open :class:`PageFile`, a :class:`Result`.
    key : str, or sequence of str or of sequences of str
        As for :func:`write_pages`.

    Raises
    ------
    UsageError
        The schema can't be that of objects, or two fields of it have the same name.
    ExecutionError
        The key is none of the fields, or the file can't be written.

    Attributes
    ----------
    written : PagesWritten or None
        What was written, once the block has ended.

    Examples
    --------
    >>> item = pyarrow.struct({"part": pyarrow.int32(), "price": pyarrow.decimal128(9, 2)})
    >>> schema = pyarrow.schema({"id": pyarrow.int64(), "items": pyarrow.list_(item)})
    >>> with dray.PageWriter("orders.pages", schema, key="id") as pages:
    ...     pages.append({"id": 7, "items": [{"part": 1, "price": Decimal("9.99")}]})
    >>> pages.written.objects
    1
    """

    def __init__(self, path: str | os.PathLike[str], schema: Any, *, key: _Key = ()) -> None:
        if not hasattr(schema, "__arrow_c_schema__"):
            raise UsageError(
                f"{type(schema).__qualname__} is no schema: it has no __arrow_c_schema__",
                "give a pyarrow.schema({name: type, …})",
            )
        self.written: PagesWritten | None = None
        self._path, self._schema, self._key = Path(path), schema, _paths(key)
        self._native: _dray.PageWriter | None = None

    def __enter__(self) -> PageWriter:
        with ExitStack() as stack:
            temporary = stack.enter_context(_replacing(self._path))
            self._native = _dray.PageWriter(temporary, self._schema, self._key)
            self._ending = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        native, self._native = self._native, None
        if native is None or error is not None:
            self._ending.__exit__(kind, error, traceback)
            return
        with self._ending:
            self.written = PagesWritten(*native.finish())

    def append(self, value: Mapping[str, Any]) -> None:
        """Write an object, or nothing if the value is refused.

        Parameters
        ----------
        value : mapping
            A value for each field: a dict, or an :class:`Object`, which is copied if it has the
            same schema. Structs are mappings, lists are iterables, maps are mappings or pairs of
            key and value, and other values are as in :meth:`Result.rows`, or scalars of NumPy,
            pandas or pyarrow. A field that is left out is missing.

        Raises
        ------
        UsageError
            There is no such field, or a value is not of its type, out of its range, more precise
            than it, or missing where it may not be. Numbers are never rounded, but for a float's
            last digits.
        ExecutionError
            The file can't be written.
        """
        if self._native is None:
            raise UsageError("objects are written within a with block")
        self._native.append(value)


class PageFileEditor(Sequence[ObjectEditor]):
    """The objects of a page file, to be changed, from :func:`edit_pages`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._native = _dray.PageFileEditor(os.fspath(path))
        self._count = len(self._native)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, ordinal: int) -> ObjectEditor: ...

    @overload
    def __getitem__(self, ordinal: slice) -> list[ObjectEditor]: ...

    def __getitem__(self, ordinal: int | slice) -> ObjectEditor | list[ObjectEditor]:
        if isinstance(ordinal, slice):
            return [self._native.get(n) for n in range(*ordinal.indices(self._count))]
        return self._native.get(_number(ordinal, self._count))

    def __setitem__(self, ordinal: int, value: Mapping[str, Any]) -> None:
        """Replace an object; :meth:`PageWriter.append` describes the value."""
        self._native.set(_number(ordinal, self._count), value)

    @property
    def key(self) -> list[str | list[str]]:
        """As :attr:`PageFile.key`."""
        return _shown(self._native.key())

    def find(self, *key: int | str | bytes | bool) -> list[ObjectEditor]:
        """The objects that had this key when the file was opened; see :meth:`PageFile.find`."""
        return [self._native.get(ordinal) for ordinal in self._native.find(list(key))]


@contextmanager
def edit_pages(path: str | os.PathLike[str]) -> Iterator[PageFileEditor]:
    """Open a page file whose objects are changed in a ``with`` block.

    What keeps its size is overwritten where it lies, in a copy of its page in memory; what grows or
    shrinks is written anew there. When the block ends, a new file with all objects replaces the old
    one, with a new key index if it has a key. After an exception the old one remains. Until then
    memory holds the pages that were changed. Objects of :func:`open_pages` stay as they were. If
    something else has replaced or written to the file before the block ends, its file remains.

    Fields of an :class:`ObjectEditor` and items of a :class:`ListEditor` are assigned as
    :meth:`PageWriter.append` describes. An assignment that is refused changes nothing.

    Raises
    ------
    UsageError
        There is no such file, it is no page file, two of its fields have the same name, or the file
        was replaced meanwhile.
    ExecutionError
        The file is damaged, or the new one can't be written.

    Examples
    --------
    >>> with dray.edit_pages("customers.pages") as file:
    ...     file[17].name = "a new name"
    ...     file[17].address = None
    ...     order = file[17].orders[0]
    ...     order.items[2].price = Decimal("9.99")
    ...     order.items.append({"part": 5, "price": Decimal("1.00")})
    ...     del file[17].orders[1:]
    ...     for customer in file.find(4711):
    ...         customer.orders = []
    """
    target = Path(os.path.realpath(path))
    before = _version(target)
    file = PageFileEditor(target)
    native = file._native
    try:
        yield file
        if native.is_changed():
            with _replacing(target) as temporary:
                native.write(temporary)
                if _version(target) != before:
                    raise UsageError("the file was replaced meanwhile", "edit it again")
    finally:
        native.close()


_Key = str | Sequence[str | Sequence[str]]


def _paths(key: _Key) -> list[list[str]]:
    """The names of the structs around each field of a key, then its own."""
    fields = [key] if isinstance(key, str) else key
    return [field.split(".") if isinstance(field, str) else list(field) for field in fields]


def _shown(paths: Iterable[list[str]]) -> list[str | list[str]]:
    return [path if any("." in name for name in path) else ".".join(path) for path in paths]


def _number(ordinal: int, count: int) -> int:
    """The number of an object, also counted from the end."""
    number = ordinal if ordinal >= 0 else count + ordinal
    if not 0 <= number < count:
        raise IndexError(f"object {ordinal} of {count}")
    return number


@contextmanager
def _replacing(target: Path) -> Iterator[str]:
    """A new file that replaces the target, with its mode, when the block ends without an error.
    Changes of the working folder, and of a link, have no effect until then.
    """
    target = Path(os.path.realpath(target))
    handle, temporary = tempfile.mkstemp(".unfinished", f".{target.name}.", target.parent)
    os.close(handle)
    try:
        yield temporary
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _version(path: Path) -> tuple[int, ...] | None:
    """What differs once a file was replaced or written to; none if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _umask() -> int:
    """The process's umask, which can't be read without setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
