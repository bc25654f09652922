"""The rows of a statement as objects, read in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from . import _dray
from ._dray import Object
from ._optional import import_optional
from ._stats import Stats

if TYPE_CHECKING:
    from pyarrow import Schema  # type: ignore[import-untyped,unused-ignore]

__all__ = ["Objects"]


class Objects(_dray.Closing, Iterator[Object]):
    """The rows of a statement as objects. :meth:`Connection.objects` makes it.

    An iterator of :class:`Object`, in bounded memory: a page of objects goes once none of them is
    used any more. Read it to its end, or close it, before the connection's next statement.

    Examples
    --------
    >>> for customer in connection.objects("SELECT * FROM customers"):
    ...     print(customer.name, sum(order.price for order in customer.orders))
    """

    def __init__(self, native: _dray.Objects) -> None:
        self._native = native
        self._page: Iterator[Object] = iter(())

    def __iter__(self) -> Objects:
        return self

    def __next__(self) -> Object:
        while True:
            for row in self._page:
                return row
            page = self._native.next_page()
            if page is None:
                raise StopIteration
            self._page = iter(page)

    @property
    def schema(self) -> Schema:
        """The objects' fields as a :class:`pyarrow.Schema`."""
        return import_optional("pyarrow").schema(self._native)

    @property
    def estimate(self) -> _dray.Estimate:
        """The planner's estimate of the result's size."""
        return self._native.estimate

    @property
    def progress(self) -> _dray.Progress:
        """The progress of the statement; up to 50 ms old while another thread reads."""
        return self._native.progress

    @property
    def stats(self) -> Stats:
        """Where time and bytes went. Complete once all objects have been read. ``pages`` of the
        ``chunks`` came as pages.
        """
        return Stats._of(self._native.stats())

    def cancel(self) -> None:
        """Cancel the statement, from any thread."""
        self._native.cancel()

    def close(self) -> None:
        """Cancel the statement if it still runs. Objects that were read stay usable."""
        self._page = iter(())
        self._native.close()

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()
