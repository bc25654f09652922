"""What tests do meanwhile: read in another thread, change the table, look at tasks and sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from accounts import moving
from hosted import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTS = 4
#: A part takes seconds over such a link, however well its rows are compressed.
SLOW = "20mbit"
#: A worker that has received so much is in the middle of a part.
SOME_BYTES = 500_000
GROUP = "cluster test"


def changing(source: Source) -> AbstractContextManager[None]:
    return moving(source.database) if source.database else nullcontext()


@contextmanager
def reading(spark: SparkSession, read: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Meanwhile another thread reads; yields whether it still does. Its error is raised at the
    end, or told beside the one that the test has raised.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            spark.sparkContext.setJobGroup(GROUP, GROUP)
            read()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread.is_alive
    except BaseException as failure:
        thread.join()
        for error in errors:
            failure.add_note(f"the reader failed, too: {error}")
        raise
    thread.join()
    if errors:
        raise errors[0]


def failed_tasks(spark: SparkSession) -> int:
    """How many tasks of the jobs of `reading` have failed."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(GROUP)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    return sum(stage.numFailedTasks for stage in stages if stage)


def quiet(source: Source) -> bool:
    """Whether the database has no session that reads or holds a snapshot."""
    assert source.database
    return not [state for _, state in source.database.sessions() if state != "idle"]
