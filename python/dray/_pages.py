"""Page files: whole objects on disk, read in place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from . import _dray
from ._dray import Object, ObjectList
from ._source import SourceRecorder
from ._write import _source

__all__ = ["Object", "ObjectList", "PageFile", "PagesWritten", "open_pages", "write_pages"]

Mapping.register(Object)
Sequence.register(ObjectList)


@dataclass(frozen=True)
class PagesWritten:
    """What :func:`write_pages` has written.

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
    ``pyarrow.table(file)``, ``polars.DataFrame(file)``.

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
        number = ordinal if ordinal >= 0 else len(self) + ordinal
        if not 0 <= number < len(self):
            raise IndexError(f"object {ordinal} of {len(self)}")
        return self._native.get(number)

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
    def key(self) -> list[str]:
        """The fields by which :meth:`find` finds objects; empty if the file has no key. The name of
        a field in a struct follows the struct's, with a point between.
        """
        return [".".join(path) for path in self._native.key()]

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


def write_pages(
    path: str | os.PathLike[str], data: Any, *, key: str | Sequence[str] = ()
) -> PagesWritten:
    """Write rows as the objects of a page file, which replaces ``path`` once it is complete.

    Parameters
    ----------
    path : path
        The file, by custom with the ending ``.pages``.
    data : object with ``__arrow_c_stream__``, or path
        A table or reader of pyarrow, a DataFrame of pandas or Polars, a relation of DuckDB, a
        :class:`Result`, or the path of a Parquet file. It is read batch by batch.
    key : str or sequence of str
        The fields by which :meth:`PageFile.find` finds objects: ``"id"``, ``"address.city"``, or
        ``["day", "id"]`` for a key of two fields. They need not be unique.

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
    names = [key] if isinstance(key, str) else list(key)
    target = Path(path)
    handle, temporary = tempfile.mkstemp(".unfinished", f".{target.name}.", target.parent)
    os.close(handle)
    try:
        with SourceRecorder(_source(data)) as recorder:
            written = _dray.write_pages(
                temporary, recorder.source, [name.split(".") for name in names]
            )
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    return PagesWritten(*written)


def _umask() -> int:
    """The process's umask, which can't be read without setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask
