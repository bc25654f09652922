"""Tables and queries that an engine of several processes reads, by plans of partitions."""

from __future__ import annotations

import difflib
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from . import _dray
from ._conditions import Condition, Conditions
from ._connection import connect
from ._options import ConnectOptions, EngineOptions, PlanOptions, ReaderOptions
from ._plan import Plan
from ._predicate import quoted
from ._read_partition import read_partition
from ._scan import parts_of
from .errors import UsageError

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Schema  # type: ignore[import-untyped,unused-ignore]

__all__ = ["Relation", "read_part"]

#: Of `partitions`, in seconds.
_LEASE = 600.0
#: The most plans that are held for one relation: each may have a connection to a database.
_PLANS_MAX = 4


class Relation:
    """A table or a query, and the plans that were made of it.

    It can be pickled. The copy has no plans: it makes its own.

    Parameters
    ----------
    uri, query, params, table
        As engines get them: one of ``query`` and ``table``.
    options : EngineOptions
        Of the reader and the planner.

    Raises
    ------
    UsageError
        An option is unknown, or not one of ``query`` and ``table`` is given.
    Error
        As :func:`dray.connect` and :meth:`dray.Connection.partitions`.
    """

    def __init__(
        self,
        uri: str,
        query: str | None,
        params: Sequence[Any] | None,
        table: str | Sequence[str] | None,
        options: EngineOptions,
    ) -> None:
        check_names(options, EngineOptions.__annotations__)
        if (query is None) == (table is None):
            raise UsageError("expected either a query or table=", 'as in read(uri, "SELECT …")')
        if table is not None and params is not None:
            raise UsageError("a table has no parameters", "use a query with params")
        self._uri = uri
        self._query = query
        self._table = None if table is None else parts_of(table)
        self._params = params
        given: dict[str, Any] = dict(options)
        most = [given[name] for name in ("at_most", "max_connections") if given.get(name)]
        self._at_most = min(most, default=None)
        self._connecting = _chosen(given, ConnectOptions.__annotations__)
        planning = PlanOptions.__annotations__.keys() - {"at_most", "strings", "snapshot"}
        self._planning = _chosen(given, planning)
        #: The options of :func:`read_part`.
        self.reading: ReaderOptions = _of_uri(uri) | _chosen(given, ReaderOptions.__annotations__)
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        #: When each plan was made, and its statement. Readers may need it until its lease ends.
        self._plans: list[tuple[float, str, Plan]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_lock", "_plans")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    @property
    def lease(self) -> float:
        """For how long parts can be read, in seconds."""
        return float(self._planning.get("lease", _LEASE))

    @property
    def pushes(self) -> bool:
        """Whether the source is asked for some columns and rows: a query is sent as it is."""
        return self._table is not None

    @cached_property
    def dialect(self) -> str:
        """Whose SQL the source takes. It is asked once."""
        with connect(self._uri, **self._connecting) as connection:
            return connection._native.dialect

    @cached_property
    def schema(self) -> Schema:
        """The columns of all of it, as of the first time that this is asked."""
        plan = self.plan() if self._table is None else self._plan(self.statement(), at_most=1)
        if self._table is not None:
            plan.release()
        return plan.schema

    @cached_property
    def conditions(self) -> Conditions:
        """Makes conditions for :meth:`plan`."""
        # Other values of `nonfinite` turn values into NULL or text that the source does not see so.
        certain = self.pushes and self._planning.get("nonfinite", "error") == "error"
        return Conditions(self.schema, self.dialect) if certain else Conditions([], "other")

    def checked(self, columns: Iterable[str]) -> list[str]:
        """Names of columns.

        Raises
        ------
        UsageError
            A column does not exist. The message names a similar one.
        """
        columns = list(columns)
        check_names(columns, self.schema.names, "column")
        return columns

    def statement(
        self,
        columns: Sequence[str] | None = None,
        condition: Condition | None = None,
        limit: int | None = None,
    ) -> str:
        """The statement for some columns and rows of a table; a query is as it is."""
        if self._query is not None:
            return self._query
        # Rows are counted even if nothing of them is needed.
        names = None if columns is None else list(columns) or self.schema.names[:1]
        chosen = "*" if names is None else ", ".join(self._quoted(names))
        table = ".".join(self._quoted(self._table or ()))
        where = f" WHERE {condition.sql}" if condition else ""
        return f"SELECT {chosen} FROM {table}{where}" + (f" LIMIT {limit}" if limit else "")

    def _quoted(self, names: Iterable[str]) -> list[str]:
        return [quoted(name, self.dialect) for name in names]

    def plan(
        self,
        columns: Sequence[str] | None = None,
        condition: Condition | None = None,
        limit: int | None = None,
    ) -> Plan:
        """A plan that lasts for half of its lease at least, as long as this object lives.

        Whoever asks for the same again gets the same plan, until half of its lease is over. The
        fourth plan after it ends a plan.
        """
        statement = self.statement(columns, condition, limit)
        lease = self.lease
        with self._lock:
            now = time.monotonic()
            self._plans = [held for held in self._plans if now < held[0] + lease]
            for made, of, plan in self._plans:
                if of == statement and now < made + lease / 2:
                    return plan
            plan = self._plan(statement, self._at_most)
            self._plans = [*self._plans[1 - _PLANS_MAX :], (now, statement, plan)]
            return plan

    def _plan(self, statement: str, at_most: int | None) -> Plan:
        with connect(self._uri, **self._connecting) as connection:
            plan = connection.partitions(statement, self._params, at_most=at_most, **self._planning)
        if len(set(plan.columns)) < len(plan.columns):
            raise UsageError("two columns have the same name", "name them in SQL with AS")
        return plan


def read_part(
    part: bytes, reading: ReaderOptions, columns: Sequence[str] | None = None
) -> Generator[RecordBatch, None, None]:
    """The batches of a part, in bounded memory, with some of its columns.

    Raises
    ------
    Error
        As :func:`dray.read_partition`.
    """
    with read_partition(part, **reading) as result:
        for batch in result.batches():
            yield batch if columns is None else batch.select(columns)
            del batch


def check_names(names: Iterable[str], known: Iterable[str], what: str = "option") -> None:
    """Refuse a name that is not known, and say which one is similar.

    Raises
    ------
    UsageError
        A name is not known.
    """
    known = list(known)
    for name in names:
        if name not in known:
            similar = difflib.get_close_matches(name, known, 1, 0.4)
            hint = f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(known)}"
            raise UsageError(f"there is no {what} {name!r}", hint)


def _of_uri(uri: str) -> Any:
    """The options of a Dray server's uri that readers need, and that parts do not have."""
    _, ca, read_timeout = _dray.server_uri(uri) or (None, None, None)
    found = {"ca": ca, "read_timeout": read_timeout}
    return {name: value for name, value in found.items() if value is not None}


def _chosen(given: dict[str, Any], names: Iterable[str]) -> Any:
    return {name: given[name] for name in names if name in given}
