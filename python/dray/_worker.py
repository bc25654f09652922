"""The thread in which the calls of an asynchronous connection run."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from . import _dray
from .errors import Cancelled, UsageError

if TYPE_CHECKING:
    from concurrent.futures import Future

# asyncio and concurrent.futures are imported late: they take longer than the rest of this package.

T = TypeVar("T")


class Stop:
    """Asks a call in another thread to stop.

    The native half calls it about twenty times a second while it waits for a server, and passes
    what it raises on to the caller.
    """

    def __init__(self, progress: Callable[[_dray.Progress], object] | None = None) -> None:
        self.requested = False
        self._progress = progress

    def check(self) -> None:
        """Raise if the call has to stop."""
        if self.requested:
            raise Cancelled("the statement was cancelled")

    def report(self, progress: _dray.Progress) -> None:
        """Call the user's progress function, unless the call has to stop."""
        self.check()
        if self._progress is not None:
            self._progress(progress)


class Worker:
    """A thread that runs calls, one after the other, for tasks of an event loop."""

    def __init__(self) -> None:
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        # The event loop that used the worker last.
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="dray")
        self._dropped: deque[Callable[[], object]] = deque()
        self.ended = False

    async def run(
        self, call: Callable[[], T], stop: Stop, undo: Callable[[Future[T]], object]
    ) -> T:
        """Run a call, and wait for it without blocking the event loop.

        If the task is cancelled, the call is asked to stop, and the task does not wait for that;
        the worker's next call does. Then ``undo`` gets the call, which may have ended well, have
        failed, or not have begun.
        """
        import asyncio

        if self.ended:
            raise UsageError("the connection is closed", "connect again")
        self._loop = asyncio.get_running_loop()
        work = self._submit(call)
        try:
            return await asyncio.wrap_future(work)
        except asyncio.CancelledError:
            stop.requested = True
            self.follow(lambda: undo(work))
            raise

    def follow(self, call: Callable[[], object]) -> None:
        """Run a call after the others. Nobody waits for it or sees its exception."""
        # The executor refuses once it was shut down: then the connection is closed, too.
        with suppress(RuntimeError):
            self._submit(call)

    def drop(self, call: Callable[[], object]) -> None:
        """Run a call of a destructor before the next call, and soon.

        The garbage collector runs destructors anywhere, even inside the executor, whose locks are
        held then. So this takes none.
        """
        if self.ended:
            return
        self._dropped.append(call)
        try:
            self._loop.call_soon_threadsafe(self.follow, _nothing)
        except RuntimeError:
            # The loop has ended. Without one, the native half's destructor may wait.
            with suppress(ValueError):
                self._dropped.remove(call)

    async def finish(self, call: Callable[[], object]) -> None:
        """Run a call after the others, even if the task is cancelled meanwhile."""
        import asyncio

        if not self.ended:
            await asyncio.shield(asyncio.wrap_future(self._submit(call)))

    async def end(self, last: Callable[[], object]) -> None:
        """Run a last call, even if the task is cancelled meanwhile, and end the thread."""
        import asyncio

        if not self.ended:
            self.ended = True
            work = self._submit(last)
            self._executor.shutdown(wait=False)
            await asyncio.shield(asyncio.wrap_future(work))

    def abandon(self) -> None:
        """End the thread after the calls that it has."""
        self.ended = True
        self._executor.shutdown(wait=False)

    def _submit(self, call: Callable[[], T]) -> Future[T]:
        return self._executor.submit(self._after_dropped, call)

    def _after_dropped(self, call: Callable[[], T]) -> T:
        while self._dropped:
            with suppress(Exception):
                self._dropped.popleft()()
        return call()


def _nothing() -> None:
    """Follows what was dropped."""
