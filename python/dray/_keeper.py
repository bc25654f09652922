"""A process that makes a plan and holds it, for planners that end when they have planned.

    planner ──relation──▶ keeper: plans, and holds the snapshot until the lease ends or a signal
            ◀── parts ───

`python -m dray._keeper` reads a pickled relation and what to plan from its standard input, and
writes the parts, or the exception, to its standard output.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import InternalError

if TYPE_CHECKING:
    from ._conditions import Condition
    from ._relation import Relation

__all__ = ["keep_plan"]

# The keepers of this process, so that those that have ended are waited for.
_keepers: list[subprocess.Popen[bytes]] = []


def keep_plan(relation: Relation, condition: Condition | None) -> list[bytes]:
    """Plan in a process of its own, which holds the plan.

    The process ends with the lease, or earlier when its process group gets SIGHUP or SIGTERM.

    Returns
    -------
    list of bytes
        The parts.

    Raises
    ------
    Error
        As :meth:`Relation.plan`.
    """
    _keepers[:] = [keeper for keeper in _keepers if keeper.poll() is None]
    keeper = subprocess.Popen(
        [sys.executable, "-m", "dray._keeper"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Where this process has found its modules, the other one finds them.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    _keepers.append(keeper)
    assert keeper.stdin is not None and keeper.stdout is not None
    with keeper.stdin, keeper.stdout:
        pickle.dump((relation, condition), keeper.stdin)
        keeper.stdin.close()
        try:
            answer = pickle.load(keeper.stdout)
        except EOFError:
            message = f"the process that plans ended with {keeper.wait()}"
            raise InternalError(message, "its error output says why") from None
    if isinstance(answer, Exception):
        raise answer
    parts: list[bytes] = answer
    return parts


def _keep(requests: BinaryIO, answers: BinaryIO) -> None:
    relation, condition = pickle.load(requests)
    try:
        plan = relation.plan(None, condition)
    except Exception as error:
        pickle.dump(error, answers)
        return
    with plan:
        pickle.dump(plan.partitions, answers)
        answers.close()
        time.sleep(relation.lease)


def _end(number: int, frame: Any) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, _end)
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answers:
        # Whoever prints does not disturb the answer, and nobody waits for an end of the output.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        _keep(sys.stdin.buffer, answers)
