"""Polars predicates as SQL conditions.

A condition may hold for more rows than its predicate, never for fewer: Polars applies the whole
predicate again to the rows that arrive. What is not recognized is left to Polars.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import Error, QueryError

if TYPE_CHECKING:
    from polars import Expr

# What may be asked of a column: integers, dates and text are compared with literals; text of a
# database may be equal in more ways than Polars knows; other types are only tested for NULL.
Kind = Literal["boolean", "integer", "date", "text", "loose text", "other"]

_COMPARISONS = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_FLIPPED = {"Eq": "Eq", "NotEq": "NotEq", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}
_BETWEEN = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}
_INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32")
# Deeper predicates are left to Polars: servers limit the nesting of expressions.
_DEPTH_MAX = 40
_EPOCH = datetime.date(1970, 1, 1).toordinal()


class _Condition(NamedTuple):
    sql: str
    # Whether it holds for exactly the rows for which the predicate holds, and is NULL for the same.
    exact: bool


def quoted(name: str, dialect: str = "dray") -> str:
    """An identifier of SQL that is exactly this name. For MySQL, a text has double quotes."""
    mark = "`" if dialect == "mysql" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def may_lack(error: Error) -> bool:
    """Whether a source may have refused a condition for what it lacks.

    A type may have no operator, and a database's encoding no such character (22P05).
    """
    return isinstance(error, QueryError) or error.sqlstate == "22P05"


def kind_of(data_type: str, metadata: Mapping[str, str], by_dray: bool) -> Kind | None:
    """What may be asked of a column; None if nothing.

    Parameters
    ----------
    data_type : str
        The Arrow type.
    metadata : mapping
        The field's metadata. It names types of PostgreSQL that come as another type.
    by_dray : bool
        Whether a Dray server compares the values, rather than a database, also one behind it.
    """
    if "dray:postgresql:type" in metadata or "ARROW:extension:name" in metadata:
        return None
    if data_type == "Boolean":
        return "boolean"
    if data_type == "Date32":
        return "date"
    if data_type in ("Utf8", "LargeUtf8", "Utf8View"):
        # Collations, char(n) and citext have equal values that differ.
        return "text" if by_dray else "loose text"
    if data_type in _INTEGERS:
        # PostgreSQL's unsigned types, such as oid, lack operators.
        return "integer" if by_dray or not data_type.startswith("U") else "other"
    if data_type.startswith(("Float", "Decimal", "Time", "UInt", "Binary", "LargeBinary")):
        return "other"
    # A composite with nothing but NULLs is NULL in SQL.
    return None


def condition(predicate: Expr, kinds: Mapping[str, Kind | None]) -> str | None:
    """Translate what is certain of a predicate.

    Parameters
    ----------
    predicate : polars.Expr
        Polars hands it to a source.
    kinds : mapping
        What may be asked of each column.

    Returns
    -------
    str or None
        A condition that holds for all rows that the predicate keeps, or None.
    """
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
    except Exception:
        # The form is Polars' own, and another version may have none.
        return None
    found = _Translator(kinds).translate(tree, 0)
    return None if found is None else found.sql


class _Translator:
    def __init__(self, kinds: Mapping[str, Kind | None]) -> None:
        self._kinds = kinds

    def translate(self, node: Any, depth: int) -> _Condition | None:
        match node:
            case _ if depth > _DEPTH_MAX:
                return None
            case {"Column": str(name), **others} if not others and self._is(name, "boolean"):
                return _Condition(quoted(name), exact=True)
            case {"BinaryExpr": {"left": left, "op": ("And" | "Or") as op, "right": right}}:
                return self._connected(
                    op, self.translate(left, depth + 1), self.translate(right, depth + 1)
                )
            case {"BinaryExpr": {"left": left, "op": str(op), "right": right}}:
                return self._compared(left, op, right)
            case {"Function": {"input": list(inputs), "function": {"Boolean": function}}}:
                return self._function(function, inputs, depth)
        return None

    def _connected(
        self, op: str, left: _Condition | None, right: _Condition | None
    ) -> _Condition | None:
        if left is None or right is None:
            # Of `a AND b` one half alone keeps more rows.
            half = left or right
            return _Condition(half.sql, exact=False) if half and op == "And" else None
        return _Condition(f"({left.sql} {op.upper()} {right.sql})", left.exact and right.exact)

    def _function(self, function: Any, inputs: list[Any], depth: int) -> _Condition | None:
        match function, inputs:
            case "Not", [inner]:
                # The opposite of a condition that keeps more rows keeps fewer.
                found = self.translate(inner, depth + 1)
                return _Condition(f"(NOT {found.sql})", True) if found and found.exact else None
            case (("IsNull" | "IsNotNull"), [{"Column": str(name)}]):
                if self._kinds.get(name) is None:
                    return None
                test = "IS NULL" if function == "IsNull" else "IS NOT NULL"
                return _Condition(f"({quoted(name)} {test})", exact=True)
            case {"IsBetween": {"closed": str(closed)}}, [{"Column": str(name)}, low, high]:
                operators = _BETWEEN.get(closed)
                lower, upper = self._literal(name, low), self._literal(name, high)
                if operators is None or lower is None or upper is None or self._is_loose(name):
                    return None
                column = quoted(name)
                between = f"({column} {operators[0]} {lower} AND {column} {operators[1]} {upper})"
                return _Condition(between, exact=True)
        return None

    def _compared(self, left: Any, op: str, right: Any) -> _Condition | None:
        if "Column" not in left:
            left, op, right = right, _FLIPPED.get(op, op), left
        match left:
            case {"Column": str(name)} if op in _COMPARISONS:
                literal = self._literal(name, right)
                loose = self._is_loose(name)
                if literal is None or (loose and op != "Eq"):
                    return None
                return _Condition(f"({quoted(name)} {_COMPARISONS[op]} {literal})", not loose)
        return None

    def _literal(self, column: str, node: Any) -> str | None:
        """A literal of SQL that may be compared with a column."""
        match self._kinds.get(column), node:
            case "boolean", {"Literal": {"Scalar": {"Boolean": bool(value)}}}:
                return "TRUE" if value else "FALSE"
            case "date", {"Literal": {"Scalar": {"Date": int(days)}}}:
                try:
                    return f"DATE '{datetime.date.fromordinal(_EPOCH + days).isoformat()}'"
                except (ValueError, OverflowError):
                    return None
            case "text" | "loose text", {"Literal": {"Scalar": {"String": str(text)}}}:
                # A server may read backslashes as escapes, and none takes a byte 0.
                if "\\" in text or "\0" in text:
                    return None
                return "'" + text.replace("'", "''") + "'"
            case "integer", {"Literal": {"Scalar": dict(scalar)}} if len(scalar) == 1:
                ((data_type, value),) = scalar.items()
                in_range = isinstance(value, int) and -(2**63) < value < 2**63
                return f"({value})" if data_type in _INTEGERS and in_range else None
        return None

    def _is(self, column: str, kind: Kind) -> bool:
        return self._kinds.get(column) == kind

    def _is_loose(self, column: str) -> bool:
        return self._is(column, "loose text")
