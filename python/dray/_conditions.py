"""Conditions that engines push into a table, as SQL.

Each engine translates its own predicates to these. What is not certain to mean the same at every
source is None, and the engine applies it to the rows that arrive.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from ._optional import import_optional
from ._predicate import quoted

if TYPE_CHECKING:
    from pyarrow import DataType, Field, Schema  # type: ignore[import-untyped,unused-ignore]

__all__ = ["Condition", "Conditions", "all_of", "any_of"]

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
#: More values are left to the engine: a statement has a size.
_VALUES_MAX = 1000
#: Whose SQL is known.
_DIALECTS = ("dray", "postgresql", "mysql")
#: Metadata of columns that have another type at the source.
_OTHER_TYPES = (b"dray:postgresql:type", b"dray:mysql:type", b"ARROW:extension:name")


class Condition(NamedTuple):
    """A condition of SQL. It holds at least for the rows for which the engine's holds."""

    sql: str
    #: Whether it holds for no other rows, so that the engine need not look again.
    exact: bool


def all_of(conditions: Iterable[Condition | None]) -> Condition | None:
    """What is certain of the conjunction; None stands for a condition that was not translated."""
    found = list(conditions)
    known = [condition for condition in found if condition is not None]
    if not known:
        return None
    exact = len(known) == len(found) and all(condition.exact for condition in known)
    return Condition(" AND ".join(condition.sql for condition in known), exact)


def any_of(conditions: Iterable[Condition | None]) -> Condition | None:
    """The disjunction, if all of it was translated."""
    found = list(conditions)
    known = [condition for condition in found if condition is not None]
    if len(known) < len(found) or not known:
        return None
    sql = " OR ".join(f"({condition.sql})" for condition in known)
    return Condition(f"({sql})", all(condition.exact for condition in known))


class Conditions:
    """Makes conditions on the columns of a table.

    Integers, decimals, dates and booleans are compared with literals, texts only for being equal:
    sources order texts in many ways, and for some ``a`` and ``A`` are equal. MySQL compares texts
    in the column's character set, which may lack a character, so no texts are compared there.

    Parameters
    ----------
    schema : pyarrow.Schema
        The table's.
    dialect : str
        Whose SQL the source takes: ``"dray"``, ``"postgresql"`` or ``"mysql"``. There are no
        conditions for others.
    """

    def __init__(self, schema: Schema, dialect: str) -> None:
        self._dialect = dialect
        self._kinds: Mapping[str, DataType] = {
            field.name: field.type
            for field in (schema if dialect in _DIALECTS else [])
            if _is_plain(field) and not (dialect == "mysql" and _is_text(field.type))
        }

    def compare(self, column: str, operator: str, value: Any) -> Condition | None:
        """``column operator value``. NULL in the column makes it NULL, as in SQL.

        Parameters
        ----------
        column : str
            The column's name.
        operator : str
            One of ``OPERATORS``.
        value
            None, bool, int, Decimal, str or date; others are not translated.
        """
        data_type = self._kinds.get(column)
        literal = None if data_type is None else _literal(data_type, value)
        if literal is None:
            return None
        is_text = isinstance(value, str)
        if is_text and operator != "=":
            return None
        name = quoted(column, self._dialect)
        return Condition(f"{name} {operator} {literal}", exact=not is_text)

    def one_of(self, column: str, values: Iterable[Any]) -> Condition | None:
        """``column IN (values)``. Without values, or with NULL among them, it is None."""
        data_type = self._kinds.get(column)
        values = list(values)
        if data_type is None or not 0 < len(values) <= _VALUES_MAX:
            return None
        literals = [_literal(data_type, value) for value in values]
        known = [literal for literal in literals if literal is not None]
        if len(known) < len(values):
            return None
        exact = not any(isinstance(value, str) for value in values)
        return Condition(f"{quoted(column, self._dialect)} IN ({', '.join(known)})", exact)

    def is_null(self, column: str) -> Condition | None:
        """``column IS NULL``."""
        # MySQL's IS NULL finds more: the date 0000-00-00, and with sql_auto_is_null a row's number.
        return self._null_test(column, "<=> NULL" if self._dialect == "mysql" else "IS NULL")

    def is_not_null(self, column: str) -> Condition | None:
        """``column IS NOT NULL``."""
        return self._null_test(column, "IS NOT NULL")

    def _null_test(self, column: str, test: str) -> Condition | None:
        if column not in self._kinds:
            return None
        return Condition(f"{quoted(column, self._dialect)} {test}", exact=True)


def _is_plain(field: Field) -> bool:
    """Whether a column has one of the types that conditions are about.

    A column that comes as another type than it has at the source says so in its metadata.
    """
    types = import_optional("pyarrow.types")
    data_type, metadata = field.type, field.metadata or {}
    return metadata.keys().isdisjoint(_OTHER_TYPES) and (
        types.is_signed_integer(data_type)
        or types.is_boolean(data_type)
        or types.is_date32(data_type)
        or types.is_decimal(data_type)
        or _is_text(data_type)
    )


def _is_text(data_type: DataType) -> bool:
    types = import_optional("pyarrow.types")
    return bool(types.is_string(data_type) or types.is_large_string(data_type))


def _literal(data_type: DataType, value: Any) -> str | None:
    """A literal of SQL that is compared with a column of a type exactly."""
    types = import_optional("pyarrow.types")
    match value:
        case bool():
            if types.is_boolean(data_type):
                return "TRUE" if value else "FALSE"
        case int():
            if types.is_signed_integer(data_type) and -(2**63) < value < 2**63:
                return f"({value})" if value < 0 else str(value)
            if types.is_decimal(data_type):
                return _decimal(data_type, Decimal(value))
        case Decimal():
            if types.is_decimal(data_type):
                return _decimal(data_type, value)
        case datetime.datetime():
            return None
        case datetime.date():
            if types.is_date32(data_type):
                return f"DATE '{value.isoformat()}'"
        case str():
            # A server may read backslashes as escapes, and none takes a byte 0.
            if _is_text(data_type) and "\\" not in value and "\0" not in value:
                return "'" + value.replace("'", "''") + "'"
    return None


def _decimal(data_type: DataType, value: Decimal) -> str | None:
    """A literal of the column's own type, if that holds the value."""
    if not value.is_finite() or data_type.scale < 0:
        return None
    text = format(value, "f")
    whole, _, fraction = text.lstrip("-").partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > data_type.scale:
        return None
    if len(whole.lstrip("0")) > data_type.precision - data_type.scale:
        return None
    return f"CAST('{text}' AS DECIMAL({data_type.precision}, {data_type.scale}))"
