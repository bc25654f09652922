"""A race: contenders that alternate on one machine."""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.common import congestion
from lab.common.contender import Contender, Setting
from lab.common.process import Failure
from lab.common.program import program_name
from lab.common.row import Row
from lab.data.lineitem import Lineitem


def options(description: str) -> argparse.ArgumentParser:
    """The options that all races share."""
    parser = argparse.ArgumentParser(prog=program_name(), description=description)
    parser.add_argument(
        "--scale-factor", type=float, default=1.0, help="scale factor of TPC-H (default: 1)"
    )
    parser.add_argument(
        "--dray",
        type=Path,
        default=default_dray(),
        help="path of the dray program (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=120.0,
        help="seconds until a server's start or a client fails (default: %(default)s)",
    )
    return parser


def default_dray() -> Path:
    """The path of the program after a release build."""
    target = os.environ.get("CARGO_TARGET_DIR") or Path.home() / ".cache" / "dray" / "target"
    return Path(target) / "release" / "dray"


def run(
    given: argparse.Namespace, rounds: int, entries: Callable[[Setting], list[Row]]
) -> list[Row]:
    """Measure the rows that `entries` returns, then stop all servers and restore the congestion
    control.

    Raises
    ------
    Failure
        If the race cannot be run at all. If a single row fails, the row records it.
    """
    with arena(given) as setting:
        rows = entries(setting)
        measure_and_stop(rows, rounds)
    return rows


def measure_and_stop(rows: list[Row], rounds: int) -> None:
    try:
        measure(rows, rounds)
    finally:
        for row in rows:
            row.contender.stop()


@contextmanager
def arena(given: argparse.Namespace) -> Iterator[Setting]:
    """The settings of a race. Its folder is removed and the congestion control restored at the end,
    also after an interruption.
    """
    stop_on_signal()
    with tempfile.TemporaryDirectory(prefix="dray-lab-") as folder, congestion.restored():
        yield Setting(Lineitem.of(given.scale_factor), given.dray, Path(folder), given.timeout)


def over(contenders: list[Contender], controls: list[str]) -> list[Row]:
    """A row for each contender, and for each congestion control if it runs over TCP."""
    return [
        Row(contender, control)
        for contender in contenders
        for control in (controls if contender.over_tcp else [None])
    ]


def measure(rows: list[Row], rounds: int, long_s: float = math.inf) -> None:
    """Measure round by round, so that a machine that slows down affects all contenders alike.
    A row whose last run took longer than `long_s` runs no more.

    Each round has another order, the same in every run, so that no contender always follows the
    same one. The first round warms up and is dropped.
    """
    for number in range(rounds + 1):
        for row in random.Random(number).sample(rows, len(rows)):
            is_long = bool(row.runs) and row.totals()[-1] > long_s
            if not is_long and runs_in(row, number, rounds):
                row.measure(warm_up=number == 0)
                narrate("warm-up" if number == 0 else f"round {number}/{rounds}", row)
    for row in rows:
        if row.contender.once:
            row.measure(warm_up=False)
            narrate("once", row)


def runs_in(row: Row, number: int, rounds: int) -> bool:
    """Whether a row runs in round `number`; round 0 is the warm-up."""
    contender = row.contender
    if contender.once or row.failure is not None:
        return False
    return (
        contender.warms_up if number == 0 else number <= min(rounds, contender.rounds_max or rounds)
    )


def narrate(stage: str, row: Row) -> None:
    figure = f"{row.totals()[-1]:.3f} s" if row.runs else "done"
    print(f"{stage}: {row.title}: {row.failure or figure}", file=sys.stderr, flush=True)


def stop_on_signal() -> None:
    """Turn signals into SystemExit, so that servers stop and settings are restored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: sys.exit(128 + received))


def fail(failure: Failure) -> int:
    print(failure, file=sys.stderr)
    return 2
