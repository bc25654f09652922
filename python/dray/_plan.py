"""Plans of partitions: a query as parts that other processes read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _dray
from ._optional import import_optional
from ._options import NonFinite, Strings
from .errors import UsageError

if TYPE_CHECKING:
    from ._async_plan import AsyncPlan
    from pyarrow import Schema  # type: ignore[import-untyped,unused-ignore]

__all__ = ["Plan", "Proof"]


class Proof(NamedTuple):
    """That a plan was read whole, each part once."""

    #: The rows of all parts.
    rows: int
    #: A digest of all values. It is the same however the query is divided.
    digest: int
    #: The number of parts.
    parts: int


class Plan:
    """A query as parts. :meth:`Connection.partitions` makes it.

    For a database it holds a snapshot, over a connection to PostgreSQL or in the Dray server that
    the database is behind. :meth:`verify`, :meth:`release`, the end of a ``with`` block and the end
    of the lease give it up; parts that nobody has begun to read are errors then.

    Of its own tables a Dray server keeps nothing for a plan, since they don't change while it runs.
    Its parts can be read until the lease ends or the server stops, also after :meth:`release`.
    """

    def __init__(self, native: _dray.Plan) -> None:
        self._native = native
        self._partitions = native.partitions

    @property
    def partitions(self) -> list[bytes]:
        """The parts, for :func:`dray.read_partition` in any process on any host.

        Those of PostgreSQL have no password unless ``include_password`` was set. A part is as
        powerful as a program that runs the query: read only parts from people whose programs you
        would run. Those of a Dray server have a pass in place of its token: until the lease ends,
        whoever has a part can read the rows of the plan and release it, and nothing else.
        """
        return list(self._partitions)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    @property
    def schema(self) -> Schema:
        """The schema of each part as a :class:`pyarrow.Schema`."""
        return import_optional("pyarrow").schema(self._native)

    @property
    def estimates(self) -> list[_dray.Estimate]:
        """The rows and bytes that the server's planner expects of each part."""
        return self._native.estimates

    @property
    def reason(self) -> str | None:
        """Why there is only one part; None if there are several."""
        return self._native.reason

    @property
    def released(self) -> bool:
        """Whether this process has released the plan."""
        return self._native.released

    def verify(self, receipts: Iterable[bytes]) -> Proof:
        """Check that the receipts prove the query read whole, and release the plan.

        Parameters
        ----------
        receipts : iterable of bytes
            :attr:`Result.receipt` of each part, in any order. The same receipt may come twice.

        Returns
        -------
        Proof
            The rows of all parts, and their digest.

        Raises
        ------
        ExecutionError
            Parts have no receipt, or a part was read twice. The message says which, and whether
            both readings had the same rows.
        UsageError
            A receipt is damaged or of another plan.
        """
        return Proof(*self._native.verify(list(receipts)))

    def release(self) -> None:
        """Give a database's snapshot up.

        Parts that are being read can be read to their ends. For a Dray server's own tables nothing
        changes.
        """
        self._native.release()

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._partitions)

    def __enter__(self) -> Plan:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()

    def __arrow_c_schema__(self) -> object:
        """The schema, for consumers of Arrow's PyCapsule interface."""
        return self._native.__arrow_c_schema__()

    def __repr__(self) -> str:
        state = "released" if self.released else "held"
        return f"<dray.Plan of {len(self)} parts: {state}>"


def _part_of(snapshot: Plan | AsyncPlan | bytes | None) -> bytes | None:
    """A part that names a snapshot."""
    if snapshot is None or isinstance(snapshot, bytes):
        return snapshot
    part = next(iter(snapshot), None) if isinstance(snapshot, Iterable) else None
    if not isinstance(part, bytes):
        raise UsageError(
            f"snapshot is {type(snapshot).__name__}, expected a plan or a part of one",
            "as in partitions(sql, snapshot=earlier)",
        )
    return part


class Planning:
    """What connections have for plans."""

    _native: _dray.Connection

    def partitions(
        self,
        sql: str,
        params: Sequence[Any] | None = None,
        *,
        at_most: int | None = None,
        lease: float = 600.0,
        include_password: bool = False,
        strings: Strings = "utf8",
        numeric: str = "text",
        nonfinite: NonFinite = "error",
        snapshot: Plan | AsyncPlan | bytes | None = None,
    ) -> Plan:
        """Divide a query into parts that other processes read, on any host, all of the same data.

        A query that can't be divided, such as a join, becomes one part; :attr:`Plan.reason` says
        why.

        PostgreSQL: the parts are ranges of the query's table. They see what is committed now, by a
        snapshot that is held over another connection, so this one stays free. While the plan lasts,
        their tables can't be truncated, rewritten or dropped, and rows that are deleted meanwhile
        keep their space: end the plan when it is read.

        A Dray server: the parts are row groups, ranges of files, whole files, or batches of tables
        in memory, and queries may filter, project and unite them. Readers need no token. TLS works
        with the authorities of the reader's system (``SSL_CERT_FILE`` names others).

        A database behind a Dray server (``dray://host/NAME``): the parts are those of the database,
        and the server holds their snapshot until the plan is released. So plans of MySQL and
        MariaDB, which can't share a snapshot with another process, go through a Dray server.

        Parameters
        ----------
        sql : str
            One query.
        params : sequence, optional
            The values of ``$1, $2 …``, as for :meth:`Connection.query`.
        at_most : int, optional
            The maximum number of parts, up to 65,536; by default one for each 64 MiB of the table.
            Small tables have fewer, and so have files that can't be divided, such as one CSV file.
        lease : float
            Seconds until parts can no longer be read, at most a day. The server keeps the time,
            and frees a snapshot at its end even if this process hangs.
        include_password : bool
            Whether the parts contain this connection's password to PostgreSQL, for readers whose
            environment has none. Whoever sees such a part sees the password. The parts of a Dray
            server never contain its token.
        strings, numeric, nonfinite
            As for :meth:`Connection.query`. The last two are for PostgreSQL, and also apply to the
            readers.

        snapshot : Plan or AsyncPlan or bytes, optional
            An earlier plan, or a part of one, whose snapshot this plan is to have, too: the rows of
            both are then consistent with each other. The earlier plan must be held still, over the
            same uri. Afterwards this plan holds the snapshot itself, for its own lease. PostgreSQL
            has such snapshots, also behind a Dray server. The tables of a Dray server are the same
            for all plans until it stops. By default, a plan has a new snapshot.

        Returns
        -------
        Plan
            Its parts are bytes, to be read with :func:`dray.read_partition`.

        Raises
        ------
        QueryError
            The query does not parse or plan.
        UsageError
            The statement is not a query, or this session has a transaction, temporary tables or
            settings that other sessions don't see. Or the source has no snapshot that another plan
            can have, as MySQL and MariaDB.
        ExecutionError
            The snapshot of the earlier plan has ended (its ``sqlstate`` is 72000), or a table was
            made, emptied or altered after it was taken.

        Examples
        --------
        >>> with connection.partitions("SELECT * FROM orders", at_most=8) as plan:
        ...     with multiprocessing.Pool() as pool:
        ...         receipts = pool.map(work, plan.partitions)
        ...     print(plan.verify(receipts).rows, "rows")

        where ``work`` reads a part and returns ``result.receipt``. Two tables as of one moment:

        >>> orders = connection.partitions("SELECT * FROM orders")
        >>> lines = connection.partitions("SELECT * FROM lineitem", snapshot=orders)
        """
        return self._plan(
            None,
            sql,
            params,
            at_most=at_most,
            lease=lease,
            include_password=include_password,
            strings=strings,
            numeric=numeric,
            nonfinite=nonfinite,
            snapshot=snapshot,
        )

    def _plan(
        self,
        report: Callable[[_dray.Progress], object] | None,
        sql: str,
        params: Sequence[Any] | None,
        *,
        at_most: int | None = None,
        lease: float = 600.0,
        include_password: bool = False,
        strings: Strings = "utf8",
        numeric: str = "text",
        nonfinite: NonFinite = "error",
        snapshot: Plan | AsyncPlan | bytes | None = None,
    ) -> Plan:
        """Divide a query, unless ``report``, which is called meanwhile, raises an exception."""
        native = _dray.plan(
            self._native,
            sql,
            params,
            at_most,
            lease,
            include_password,
            strings,
            numeric,
            nonfinite,
            _part_of(snapshot),
            report,
        )
        return Plan(native)
