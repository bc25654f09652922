"""Tables and statements as lazy frames of Polars."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import _dray
from ._connection import Connection, connect
from ._optional import import_optional
from ._options import ConnectOptions
from ._predicate import condition, kind_of, may_lack, quoted
from ._result import Result
from .errors import Error, UsageError

if TYPE_CHECKING:
    from polars import DataFrame, Expr, LazyFrame
    from typing_extensions import Unpack

    from ._options import ScanOptions

__all__ = ["parts_of", "scan"]

# A part of a table's path: quoted, or a name without blanks, quotes and dots.
_PART = re.compile(r'"((?:[^"]|"")+)"|([^\s".]+)')


def scan(
    uri: str,
    table: str | Sequence[str] | None = None,
    *,
    sql: str | None = None,
    params: Sequence[Any] | None = None,
    **options: Unpack[ScanOptions],
) -> LazyFrame:
    """Scan a table or a query as a :class:`polars.LazyFrame`.

    Each time that the frame is collected, one statement reads the columns and rows that it needs,
    in bounded memory. The source is asked for the columns, for the first rows of a table
    (``head``), and for rows that meet conditions which mean the same there as in Polars:
    comparisons of integers, dates, booleans and strings with literals, ``is_null``,
    ``is_between``, ``&``, ``|`` and ``~``. Of PostgreSQL's strings, only ``==`` with a literal; of
    other databases behind a Dray server, none. Polars applies all conditions to the rows that
    arrive.

    Parameters
    ----------
    uri : str
        As for :func:`connect`.
    table : str or sequence of str, optional
        A table, always by its exact name, upper and lower case included: ``"lineitem"``,
        ``"public.orders"``. A dot separates the schema; a part with a dot, a blank or a quote is
        written between double quotes, or the parts are given as a sequence: ``("my.schema",
        "Table 1")``.
    sql : str, optional
        A query, instead of a table. One with an ``ORDER BY`` is sent as it is, to keep the order;
        of others the source is asked for less, as of a table.
    params : sequence, optional
        The values of ``$1, $2 …`` in ``sql``.
    **options
        As for :func:`connect` and :meth:`Connection.query`. ``strings`` is ``"view"``, Polars' own
        layout, unless given.

    Returns
    -------
    polars.LazyFrame
        Its schema is read at once; later changes of the columns are errors. What fails while it is
        collected is an exception of this package.

    Raises
    ------
    Error
        As :func:`connect` and :meth:`Connection.query`.
    UsageError
        The server is MySQL or MariaDB, and not behind a Dray server. Both or neither of ``table``
        and ``sql`` are given, the name of the table is not valid, or two columns have the same
        name.

    Examples
    --------
    >>> orders = dray.scan("dray://localhost", "orders")
    >>> orders.filter(polars.col("o_orderkey") < 100).select("o_totalprice").sum().collect()
    """
    import_optional("polars")
    plugins = import_optional("polars.io.plugins")
    if uri.startswith(("mysql://", "mariadb://")):
        raise UsageError(
            "scan does not read from MySQL and MariaDB",
            "dray.read reads the rows of a statement: polars.from_arrow(dray.read(uri, sql))",
        )
    if (table is None) == (sql is None):
        raise UsageError("expected either a table or sql=", 'as in scan(uri, sql="SELECT …")')
    statement, path = None, None
    if sql is not None:
        statement = _dray.enclosable(sql, False)
        if statement is None or not _dray.is_query(statement):
            raise UsageError("scan needs one query", "run other statements by a connection")
    else:
        assert table is not None
        path = parts_of(table)
        if params is not None:
            raise UsageError("a table has no parameters", "use sql= with params")
    source = _Source(path, statement, uri, params, options)
    lazy: LazyFrame = plugins.register_io_source(source, schema=source.schema)
    return lazy


def parts_of(table: str | Sequence[str]) -> list[str]:
    """The parts of a table's path, as :func:`scan` documents them."""
    if not isinstance(table, str):
        parts = list(table)
        if not parts or not all(parts):
            raise UsageError(f"the table {table!r}, expected names")
        return parts
    parts, at = [], 0
    while found := _PART.match(table, at):
        parts.append(found[2] or found[1].replace('""', '"'))
        at = found.end()
        if at == len(table):
            return parts
        if table[at] != ".":
            break
        at += 1
    raise UsageError(
        f"{table!r} is not the name of a table",
        'use sql= for a statement, and write "a name" with blanks or dots between double quotes',
    )


class _Source:
    """What Polars calls for the rows of a scan. It can be pickled, as a plan may be."""

    def __init__(
        self,
        path: list[str] | None,
        statement: str | None,
        uri: str,
        params: Sequence[Any] | None,
        options: ScanOptions,
    ) -> None:
        # Whether the statement is sent as it is.
        self._as_it_is = statement is not None and bool(
            re.search(r"\border\s+by\b", statement, re.IGNORECASE)
        )
        # Whether asking for the first rows of the relation gives these rows.
        self._is_table = path is not None
        self._uri = uri
        self._params = params
        given: dict[str, Any] = dict(options)
        connecting = ConnectOptions.__annotations__
        self._connecting: dict[str, Any] = {k: v for k, v in given.items() if k in connecting}
        self._reading: dict[str, Any] = {"strings": "view"} | {
            name: value for name, value in given.items() if name not in connecting
        }
        with connect(uri, **self._connecting) as connection:
            dialect = connection._native.dialect
            self._dialect = dialect
            self._relation = f"({statement}\n) AS dray_scan"
            if path is not None:
                self._relation = ".".join(self._quoted(path))
            # All of the relation.
            self._whole = statement if statement is not None else f"SELECT * FROM {self._relation}"
            with self._query(connection, f"SELECT * FROM {self._relation} LIMIT 0") as result:
                if len(set(result.columns)) < len(result.columns):
                    raise UsageError("two columns have the same name", "name them in SQL with AS")
                fields = result._native.fields
                frame = result.to_polars()
        # Elsewhere a column's name between double quotes may be a text.
        if statement is not None and dialect not in ("dray", "postgresql"):
            self._as_it_is = True
        self.schema = dict(frame.schema)
        # Other values of `nonfinite` turn values into NULL or text that the source does not see so.
        certain = dialect == "dray" or (
            dialect == "postgresql" and self._reading.get("nonfinite", "error") == "error"
        )
        self._kinds = {
            name: kind_of(data_type, metadata, dialect == "dray") if certain else None
            for name, data_type, metadata in fields
        }

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[DataFrame]:
        names = list(self.schema) if with_columns is None else with_columns
        needed = names + [
            name
            for name in ([] if predicate is None else predicate.meta.root_names())
            if name not in names
        ]
        # With both, the first rows of the source are meant, and of these the ones that match.
        where = None
        if predicate is not None and n_rows is None and not self._as_it_is:
            where = condition(predicate, self._kinds)
        columns = needed or list(self.schema)[:1]
        with (
            connect(self._uri, **self._connecting) as connection,
            self._start(connection, columns, where, n_rows) as result,
        ):
            yield from self._frames(result, names, columns, predicate, n_rows)

    def _start(
        self, connection: Connection, columns: list[str], where: str | None, n_rows: int | None
    ) -> Result:
        if self._as_it_is:
            return self._query(connection, self._whole)
        whole = f"SELECT {', '.join(self._quoted(columns))} FROM {self._relation}"
        # Of a query's rows, the first ones are those that it sends first.
        if self._is_table and n_rows is not None:
            whole += f" LIMIT {n_rows}"
        if where is None:
            return self._query(connection, whole)
        try:
            return self._query(connection, f"{whole} WHERE {where}")
        except Error as error:
            if not may_lack(error):
                raise
            # Polars filters alone.
            return self._query(connection, whole)

    def _quoted(self, names: Sequence[str]) -> list[str]:
        return [quoted(name, self._dialect) for name in names]

    def _query(self, connection: Connection, sql: str) -> Result:
        return connection.query(sql, self._params, **self._reading)

    def _frames(
        self,
        result: Result,
        names: list[str],
        columns: list[str],
        predicate: Expr | None,
        n_rows: int | None,
    ) -> Iterator[DataFrame]:
        polars = import_optional("polars")
        empty = True
        for frame in result._converted("scan()", polars.DataFrame):
            frame = frame.select(columns)
            self._check(frame)
            if n_rows is not None:
                frame = frame.head(n_rows)
                n_rows -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            empty = False
            yield frame.select(names)
            del frame
            if n_rows == 0:
                break
        if empty:
            yield polars.DataFrame(schema={name: self.schema[name] for name in names})

    def _check(self, frame: DataFrame) -> None:
        for name, data_type in frame.schema.items():
            if data_type != self.schema[name]:
                raise UsageError(
                    f"column {name!r} was {self.schema[name]} when scan() was called, and is "
                    f"{data_type}",
                    "call scan() again",
                )
