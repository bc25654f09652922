"""A data source of Daft."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from ._conditions import Condition, Conditions, all_of, any_of
from ._optional import import_optional
from ._plain import plain_batch, plain_schema
from ._predicate import may_lack
from ._relation import Relation, read_part
from .errors import Error, UsageError

DataSource: Any = import_optional("daft.io.source").DataSource
DataSourceTask: Any = import_optional("daft.io.source").DataSourceTask
PredicateVisitor: Any = import_optional("daft.expressions.visitor").PredicateVisitor
RecordBatch = import_optional("daft.recordbatch").RecordBatch
pyarrow = import_optional("pyarrow")

if TYPE_CHECKING:
    from ._options import ReaderOptions

__all__ = ["DraySource"]


class DraySource(DataSource):  # type: ignore[misc]
    """A table or a query as Daft reads it: each part of a plan is a task."""

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._schema = _daft_schema(plain_schema(relation.schema))

    @property
    def name(self) -> str:
        """Names the source in Daft's plans."""
        return "dray"

    @property
    def schema(self) -> Any:
        """The columns of all of it."""
        return self._schema

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[Any]:
        """One task for each part of a plan for what Daft needs."""
        relation = self._relation
        columns = None
        if pushdowns.columns is not None:
            # Daft applies the filters, and drops columns that only these need.
            needed = set(pushdowns.columns) | pushdowns.filter_required_column_names()
            columns = [name for name in relation.schema.names if name in needed]
            columns = columns or relation.schema.names[:1]
        condition = limit = None
        if relation.pushes:
            if pushdowns.filters is not None:
                condition = _Translator(relation.conditions).visit(pushdowns.filters)
            if pushdowns.filters is None or (condition is not None and condition.exact):
                limit = pushdowns.limit
        try:
            plan = await asyncio.to_thread(relation.plan, columns, condition, limit)
        except Error as error:
            if condition is None or not may_lack(error):
                raise
            plan = await asyncio.to_thread(relation.plan, columns)
        for part in plan:
            yield _Task(part, columns or relation.schema.names, plan.schema, relation.reading)


class _Task(DataSourceTask):  # type: ignore[misc]
    """A part of a plan. It can be pickled."""

    def __init__(
        self, part: bytes, columns: Sequence[str], schema: Any, reading: ReaderOptions
    ) -> None:
        self._part = part
        self._columns = list(columns)
        self._plain = plain_schema(pyarrow.schema([schema.field(name) for name in self._columns]))
        self._reading = reading

    @property
    def schema(self) -> Any:
        """The columns that it reads."""
        return _daft_schema(self._plain)

    async def read(self) -> AsyncIterator[Any]:
        """The batches of the part. Waiting for them does not hold up other tasks."""
        batches = read_part(self._part, self._reading, self._columns)
        try:
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                yield _of_daft(plain_batch(batch, self._plain))
                del batch
        finally:
            batches.close()


def _daft_schema(schema: Any) -> Any:
    """The schema of batches in Daft, or an error that names a column without a type there."""
    for field in schema:
        try:
            _empty(pyarrow.schema([field]))
        except Exception as error:
            raise UsageError(
                f"Daft has no type for column {field.name!r}, {field.type}",
                "convert it in SQL, for instance to text: CAST(… AS text)",
            ) from error
    return _empty(schema).schema()


def _empty(schema: Any) -> Any:
    columns = [pyarrow.array([], field.type) for field in schema]
    return _of_daft(pyarrow.RecordBatch.from_arrays(columns, schema=schema))


def _of_daft(batch: Any) -> Any:
    return RecordBatch.from_arrow_record_batches([batch], batch.schema)


class _Translator(PredicateVisitor):  # type: ignore[misc]
    """Translates what is certain of a predicate. Columns and literals come as such, the rest as
    conditions; None is what is not translated.
    """

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions

    def visit_col(self, name: str) -> _Column:
        return _Column(name)

    def visit_lit(self, value: Any) -> _Literal:
        return _Literal(value)

    def visit_alias(self, expr: Any, alias: str) -> Any:
        return self.visit(expr)

    def visit_cast(self, expr: Any, dtype: Any) -> None:
        return None

    def visit_try_cast(self, expr: Any, dtype: Any) -> None:
        return None

    def visit_function(self, name: str, args: list[Any]) -> None:
        return None

    def visit_coalesce(self, args: list[Any]) -> None:
        return None

    def visit_and(self, left: Any, right: Any) -> Condition | None:
        return all_of([self._condition(left), self._condition(right)])

    def visit_or(self, left: Any, right: Any) -> Condition | None:
        return any_of([self._condition(left), self._condition(right)])

    def visit_not(self, expr: Any) -> Condition | None:
        # Of NULL and of values that a source takes for equal, the opposite may be another one.
        return None

    def visit_equal(self, left: Any, right: Any) -> Condition | None:
        return self._compared(left, "=", right)

    def visit_not_equal(self, left: Any, right: Any) -> Condition | None:
        return self._compared(left, "<>", right)

    def visit_less_than(self, left: Any, right: Any) -> Condition | None:
        return self._compared(left, "<", right)

    def visit_less_than_or_equal(self, left: Any, right: Any) -> Condition | None:
        return self._compared(left, "<=", right)

    def visit_greater_than(self, left: Any, right: Any) -> Condition | None:
        return self._compared(left, ">", right)

    def visit_greater_than_or_equal(self, left: Any, right: Any) -> Condition | None:
        return self._compared(left, ">=", right)

    def visit_between(self, expr: Any, lower: Any, upper: Any) -> Condition | None:
        return all_of([self._compared(expr, ">=", lower), self._compared(expr, "<=", upper)])

    def visit_is_in(self, expr: Any, items: list[Any]) -> Condition | None:
        found = self.visit(expr)
        values = [self.visit(item) for item in items]
        if not isinstance(found, _Column) or not all(isinstance(v, _Literal) for v in values):
            return None
        return self._conditions.one_of(found.name, [value.value for value in values])

    def visit_is_null(self, expr: Any) -> Condition | None:
        found = self.visit(expr)
        return self._conditions.is_null(found.name) if isinstance(found, _Column) else None

    def visit_not_null(self, expr: Any) -> Condition | None:
        found = self.visit(expr)
        return self._conditions.is_not_null(found.name) if isinstance(found, _Column) else None

    def _condition(self, expr: Any) -> Condition | None:
        found = self.visit(expr)
        if isinstance(found, _Column):
            return self._conditions.compare(found.name, "=", True)
        return found if isinstance(found, Condition) else None

    def _compared(self, left: Any, operator: str, right: Any) -> Condition | None:
        match self.visit(left), self.visit(right):
            case _Column() as column, _Literal() as literal:
                return self._conditions.compare(column.name, operator, literal.value)
            case _Literal() as literal, _Column() as column:
                flipped = operator.translate(str.maketrans("<>", "><"))
                operator = operator if operator in ("=", "<>") else flipped
                return self._conditions.compare(column.name, operator, literal.value)
        return None


class _Column:
    def __init__(self, name: str) -> None:
        self.name = name


class _Literal:
    def __init__(self, value: Any) -> None:
        self.value = value
