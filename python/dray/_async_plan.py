"""Plans of partitions for programs that run on asyncio."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from . import _dray
from ._plan import Plan, Proof

if TYPE_CHECKING:
    from pyarrow import Schema  # type: ignore[import-untyped,unused-ignore]

__all__ = ["AsyncPlan"]


class AsyncPlan:
    """A query as parts, for asyncio. :meth:`AsyncConnection.partitions` makes it.

    It holds a snapshot as a :class:`Plan` does, over a connection of its own.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @property
    def partitions(self) -> list[bytes]:
        """The parts, for :func:`dray.read_partition` in any process on any host."""
        return self._plan.partitions

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._plan.columns

    @property
    def schema(self) -> Schema:
        """The schema of each part as a :class:`pyarrow.Schema`."""
        return self._plan.schema

    @property
    def estimates(self) -> list[_dray.Estimate]:
        """The rows and bytes that the server's planner expects of each part."""
        return self._plan.estimates

    @property
    def reason(self) -> str | None:
        """Why there is only one part; None if there are several."""
        return self._plan.reason

    @property
    def released(self) -> bool:
        """Whether this process has given the snapshot up."""
        return self._plan.released

    async def verify(self, receipts: Iterable[bytes]) -> Proof:
        """Check that the receipts prove the query read whole, as :meth:`Plan.verify` does."""
        import asyncio

        return await asyncio.to_thread(self._plan.verify, list(receipts))

    async def release(self) -> None:
        """Give the snapshot up. Parts that are being read can be read to their ends."""
        import asyncio

        await asyncio.shield(asyncio.to_thread(self._plan.release))

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._plan)

    async def __aenter__(self) -> AsyncPlan:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.release()

    def __repr__(self) -> str:
        return repr(self._plan).replace("dray.Plan", "dray.AsyncPlan", 1)
