"""A data source of Ray Data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ._conditions import Condition, Conditions, all_of, any_of
from ._optional import import_optional
from ._plan import Plan
from ._predicate import may_lack
from ._relation import Relation, read_part
from .errors import Error, UsageError

block = import_optional("ray.data.block")
Datasource: Any = import_optional("ray.data.datasource").Datasource
ReadTask = import_optional("ray.data.datasource").ReadTask
expressions = import_optional("ray.data.expressions")
pyarrow = import_optional("pyarrow")

if TYPE_CHECKING:
    from ._options import ReaderOptions

__all__ = ["DrayDatasource"]

_OPERATORS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_FLIPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


class DrayDatasource(Datasource):  # type: ignore[misc]
    """A table or a query as Ray reads it: each part of a plan is a read task."""

    def __init__(self, relation: Relation) -> None:
        super().__init__()
        self._relation = relation
        # Ray's mixin for projections expects it.
        self._projection_map: dict[str, str] | None = None

    def get_name(self) -> str:
        """Names the read tasks."""
        return "Dray"

    def estimate_inmemory_data_size(self) -> int | None:
        """The bytes of Arrow data that the source expects of all parts."""
        sizes = [estimate.bytes for estimate in self._plan().estimates]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def supports_projection_pushdown(self) -> bool:
        """Columns that are not needed are never received, or dropped when they arrive."""
        return True

    def supports_predicate_pushdown(self) -> bool:
        """The source is asked for some rows of a table."""
        return self._relation.pushes

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        """A task for each part. There are as many as the plan has: it goes by size."""
        plan, output = self._plan(), self._output()
        fields = [plan.schema.field(name).with_name(new) for name, new in output.items()]
        schema = pyarrow.schema(fields)
        read = partial(_read, self._relation.reading, output, self._predicate_expr)
        return [
            ReadTask(
                partial(read, part),
                # The rows are an estimate, which Ray would take for their number.
                block.BlockMetadata(None, estimate.bytes, None, None),
                schema=schema,
                per_task_row_limit=per_task_row_limit,
            )
            for part, estimate in zip(plan.partitions, plan.estimates, strict=True)
        ]

    def _output(self) -> dict[str, str]:
        """The columns that are needed, and what they are called in the Dataset.

        Ray before 2.56 leaves renaming to the source. Later it asks for columns by their own names.
        """
        chosen = self._projection_map
        if chosen is None:
            return {name: name for name in self._relation.schema.names}
        output = {name: chosen[name] for name in self._relation.checked(chosen)}
        if len(set(output.values())) < len(output):
            raise UsageError("two columns have the same name", "leave out the one that is replaced")
        return output

    def _plan(self) -> Plan:
        relation = self._relation
        columns: Sequence[str] | None = None
        if self._projection_map is not None:
            needed = [*self._output(), *_columns_of(self._predicate_expr)]
            columns = [name for name in relation.schema.names if name in needed]
        condition = None
        if self._predicate_expr is not None:
            condition = self._condition(self._predicate_expr)
        try:
            return relation.plan(columns, condition)
        except Error as error:
            if condition is None or not may_lack(error):
                raise
            return relation.plan(columns)

    def _condition(self, predicate: Any) -> Condition | None:
        return _translate(predicate, self._relation.conditions)


def _read(
    reading: ReaderOptions, output: dict[str, str], predicate: Any, part: bytes
) -> Iterator[Any]:
    """The rows of a part that meet the predicate, as tables with the columns of the output."""
    for batch in read_part(part, reading):
        table = pyarrow.Table.from_batches([batch])
        del batch
        if predicate is not None:
            # As Ray's own operator does. Ray before 2.56 hands over what pyarrow can't express.
            table = block.BlockAccessor.for_block(table).filter(predicate)
        # Without columns Ray counts no rows: it joins blocks, which then have none.
        names = list(output) or table.column_names[:1]
        yield table.select(names).rename_columns([output.get(name, name) for name in names])


def _columns_of(expr: Any) -> Iterator[str]:
    """The names of the columns in an expression."""
    match expr:
        case expressions.ColumnExpr():
            yield expr.name
        case expressions.BinaryExpr():
            yield from _columns_of(expr.left)
            yield from _columns_of(expr.right)
        case expressions.UnaryExpr():
            yield from _columns_of(expr.operand)
        case expressions.AliasExpr():
            yield from _columns_of(expr.expr)
        case expressions.UDFExpr():
            for argument in (*expr.args, *expr.kwargs.values()):
                yield from _columns_of(argument)


def _translate(expr: Any, conditions: Conditions) -> Condition | None:
    """What is certain of a predicate.

    There is no NOT: what pyarrow's and SQL's conditions say of NULL differs.
    """
    match expr:
        case expressions.AliasExpr():
            return _translate(expr.expr, conditions)
        case expressions.UnaryExpr(operand=expressions.ColumnExpr() as column):
            if expr.op.value == "is_null":
                return conditions.is_null(column.name)
            return conditions.is_not_null(column.name) if expr.op.value == "is_not_null" else None
        case expressions.BinaryExpr():
            return _translate_binary(expr, conditions)
    return None


def _translate_binary(expr: Any, conditions: Conditions) -> Condition | None:
    op, left, right = expr.op.value, expr.left, expr.right
    if op in ("and", "or"):
        both = [_translate(left, conditions), _translate(right, conditions)]
        return all_of(both) if op == "and" else any_of(both)
    if isinstance(right, expressions.ColumnExpr):
        op, left, right = _FLIPPED.get(op, op), right, left
    if not isinstance(left, expressions.ColumnExpr):
        return None
    if not isinstance(right, expressions.LiteralExpr):
        return None
    if op == "in":
        values = right.value if isinstance(right.value, list) else [right.value]
        return conditions.one_of(left.name, values)
    return conditions.compare(left.name, _OPERATORS[op], right.value) if op in _OPERATORS else None
