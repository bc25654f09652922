"""A data source of Spark in Python, for Spark 4 and later.

This module needs ``pip install 'dray[spark]'``, or a Spark that is there anyway.

>>> import dray.spark
>>> spark.dataSource.register(dray.spark.DrayDataSource)
>>> orders = (
...     spark.read.format("dray")
...     .option("url", "postgresql://me@localhost/shop")
...     .option("dbtable", "orders")
...     .load()
... )
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from ._conditions import Condition, Conditions, all_of
from ._keeper import keep_plan
from ._optional import import_optional
from ._predicate import may_lack
from ._relation import Relation, check_names, read_part
from ._spark_types import Conversion
from .errors import Error, UsageError

sources = import_optional("pyspark.sql.datasource")
DataSource: Any = sources.DataSource
DataSourceReader: Any = sources.DataSourceReader

__all__ = ["DrayDataSource"]

#: Options by the names that the connector in a jar has for them, what this package calls them, and
#: the type of the value.
_OPTIONS: dict[str, tuple[str, type]] = {
    "numPartitions": ("at_most", int),
    "maxConnections": ("max_connections", int),
    "lease": ("lease", float),
    "includePassword": ("include_password", bool),
    "numeric": ("numeric", str),
    "nonfinite": ("nonfinite", str),
    "compression": ("compression", str),
    "extension": ("extension", str),
    "connectTimeout": ("timeout", float),
    "readTimeout": ("read_timeout", float),
    "rowBytesMax": ("row_bytes_max", int),
    "token": ("token", str),
    "ca": ("ca", str),
    "plainToken": ("plain_token", bool),
    "localSocket": ("local_socket", bool),
}
#: What is read.
_WHAT = ("url", "query", "dbtable")
_SWITCH = {"true": True, "false": False}
#: Whether PostgreSQL's extension is used.
_EXTENSION = {"always": True, "never": False, **_SWITCH}
#: The worker in which Spark asks for filters to be pushed.
_PUSHING = "pyspark.sql.worker.data_source_pushdown_filters"


class DrayDataSource(DataSource):  # type: ignore[misc]
    """Reads a table or a query: ``spark.read.format("dray")``.

    One plan is made when a DataFrame is executed, under one snapshot, and its parts become Spark's
    partitions. A process beside the driver holds the plan until its lease ends.

    Options are ``url``, as :func:`dray.connect` takes it, and either ``query`` or ``dbtable``, a
    table by its exact name as for :func:`dray.scan`. Others have the names that they have in the
    connector in a jar, and the meanings of :func:`dray.connect` (``token``, ``ca``, ``plainToken``,
    ``localSocket``, ``connectTimeout``, ``readTimeout``), :meth:`dray.Connection.partitions`
    (``numPartitions`` for ``at_most``, ``lease``, ``includePassword``, ``numeric``, ``nonfinite``)
    and :func:`dray.read_partition` (``compression``, ``extension``, ``rowBytesMax``). With
    ``maxConnections`` there are no more parts than that, so no more are read at once.

    If ``spark.sql.python.filterPushdown.enabled`` is true, conditions on a table go to its source:
    on integers, decimals, dates and booleans, and ``=`` and ``IN`` of texts. Spark does not tell a
    data source in Python which columns it needs.
    """

    options: Mapping[str, str]

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "dray"

    def schema(self) -> Any:
        """The columns, with Spark's types.

        Raises
        ------
        UsageError
            An option is wrong, or Spark has no type for a column.
        Error
            As :func:`dray.connect` and :meth:`dray.Connection.partitions`.
        """
        return Conversion(_relation(self.options).schema).schema

    def reader(self, schema: Any) -> Any:
        """Spark reads with it. Its ``schema`` has to be that of the table or the query."""
        relation = _relation(self.options)
        # Spark sends this object to the executors, with the url's password and the token.
        self.options = {}
        return (_FilteringReader if _PUSHING in sys.modules else _Reader)(relation, schema)


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, relation: Relation, schema: Any) -> None:
        self._relation = relation
        self._reading = relation.reading
        self._conversion = Conversion(relation.schema)
        self._conversion.check(schema)
        self._parts: list[bytes] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Executors need neither the password nor the other parts.
        return {"_reading": self._reading, "_conversion": self._conversion}

    def partitions(self) -> list[Any]:
        """The parts of one plan."""
        parts = keep_plan(self._relation, None) if self._parts is None else self._parts
        return [sources.InputPartition(part) for part in parts]

    def read(self, partition: Any) -> Iterator[Any]:
        """The batches of a part, in Spark's types."""
        for batch in read_part(partition.value, self._reading):
            yield self._conversion.convert(batch)
            del batch


class _FilteringReader(_Reader):
    def pushFilters(self, filters: list[Any]) -> list[Any]:  # noqa: N802
        """Asks the source for fewer rows. Returns the filters that Spark has to apply, too."""
        conditions = self._relation.conditions
        found = [_translate(spark_filter, conditions) for spark_filter in filters]
        condition = all_of(found)
        if condition is None:
            return filters
        try:
            self._parts = keep_plan(self._relation, condition)
        except Error as error:
            if not may_lack(error):
                raise
            return filters
        return [
            spark_filter
            for spark_filter, pushed in zip(filters, found, strict=True)
            if pushed is None or not pushed.exact
        ]


def _translate(spark_filter: Any, conditions: Conditions) -> Condition | None:
    if len(getattr(spark_filter, "attribute", ())) > 1:
        return None
    match spark_filter:
        case sources.Not(child=sources.EqualTo(attribute=(column,), value=value)):
            return conditions.compare(column, "<>", value)
        case sources.IsNull(attribute=(column,)):
            return conditions.is_null(column)
        case sources.IsNotNull(attribute=(column,)):
            return conditions.is_not_null(column)
        case sources.In(attribute=(column,), value=values):
            return conditions.one_of(column, values)
    operators = {
        sources.EqualTo: "=",
        sources.LessThan: "<",
        sources.LessThanOrEqual: "<=",
        sources.GreaterThan: ">",
        sources.GreaterThanOrEqual: ">=",
    }
    for kind, operator in operators.items():
        if isinstance(spark_filter, kind):
            return conditions.compare(spark_filter.attribute[0], operator, spark_filter.value)
    return None


def _relation(options: Mapping[str, str]) -> Relation:
    """What the options describe. Spark does not distinguish the case of their names."""
    names = {name.lower(): name for name in (*_WHAT, *_OPTIONS)}
    given = {names.get(name.lower(), name): text for name, text in options.items()}
    check_names(given, names.values())
    if "url" not in given:
        raise UsageError("the option 'url' is missing", "dray://…, postgresql://… and others")
    url, query, table = (given.pop(name, None) for name in _WHAT)
    if (query is None) == (table is None):
        raise UsageError("expected one of the options 'query' and 'dbtable'")
    values: Any = {_OPTIONS[name][0]: _value(name, text) for name, text in given.items()}
    return Relation(str(url), query, None, table, values)


def _value(name: str, text: str) -> object:
    """An option's value."""
    kind = _OPTIONS[name][1]
    if name == "extension":
        return _EXTENSION.get(text.lower(), text)
    if kind is bool:
        if text.lower() not in _SWITCH:
            raise UsageError(f"the option {name!r} is {text!r}, expected true or false")
        return _SWITCH[text.lower()]
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"the option {name!r} is {text!r}, expected a number") from None
