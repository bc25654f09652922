"""The sorting engines, and a row of the report: an engine on a case with a memory limit."""

from __future__ import annotations

import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from lab.common.process import Failure
from lab.sort.check import check
from lab.sort.data import Case
from lab.sort.watch import Run, Watch

MEMORY, PARQUET = "memory", "parquet"
#: Free memory to touch before each sort: as much as a sort and its result may reasonably need.
TOUCHED_BASE_BYTES, TOUCHED_TIMES = 3 << 30, 3


@dataclass(frozen=True)
class Engine:
    """A sorting engine.

    `setting` names its option for a memory limit, and is empty if it has none. Only engines that
    spill take part in the curve.
    """

    name: str
    label: str
    setting: str
    spills: bool
    forms: tuple[str, ...] = (MEMORY, PARQUET)
    rounds_max: int | None = None
    #: Whether it takes part only in the curve, because it is better only with little memory.
    curve_only: bool = False
    note: str = ""


ENGINES = [
    Engine("dray", "Dray", "--memory", True),
    Engine("duckdb", "DuckDB", "memory_limit (from memory: plus the table)", True),
    Engine("clickhouse", "ClickHouse (chDB)", "max_bytes_before_external_sort = half of it", True),
    Engine("datafusion", "DataFusion", "fair spill pool", True),
    Engine(
        "datafusion-1",
        "DataFusion, 1 partition",
        "fair spill pool",
        True,
        (PARQUET,),
        curve_only=True,
    ),
    Engine("polars-streaming", "Polars, streaming", "POLARS_OOC_MEMORY_BUDGET_MB", True),
    Engine("polars", "Polars, in memory", "", False, (MEMORY,)),
    Engine(
        "hyper",
        "HyPer",
        "memory_limit (plus the data)",
        False,
        note="from memory: to an Arrow stream in /dev/shm, which does not count as growth",
    ),
    Engine("pyarrow", "pyarrow", "", False),
    Engine("pandas", "pandas, Arrow types", "", False),
    Engine(
        "sqlite",
        "SQLite",
        "cache_size",
        True,
        rounds_max=1,
        note="Python rows instead of Arrow, SQLite files instead of Parquet, numbers as integers",
    ),
]


@dataclass
class Setting:
    """Settings that all rows share."""

    dray: Path
    folder: Path
    threads: int
    headroom_bytes: int
    timeout_s: float


@dataclass
class Row:
    """The runs of one engine on one case."""

    setting: Setting
    engine: Engine
    case: Case
    form: str
    memory_bytes: int
    runs: list[Run] = field(default_factory=list)
    checked: bool = False
    failure: str | None = None

    @property
    def title(self) -> str:
        return f"{self.case.name}, {self.form}, {self.engine.label}"

    @property
    def limit_bytes(self) -> int:
        """Limit of anonymous memory above that at the start of the clock."""
        return self.memory_bytes + self.setting.headroom_bytes

    def runs_in(self, number: int, rounds: int) -> bool:
        """Whether it runs in round `number`; round 0 warms up and checks the result."""
        return self.failure is None and (
            number == 0 or number <= min(rounds, self.engine.rounds_max or rounds)
        )

    def measure(self, checks: bool) -> None:
        """Sort once in a process of its own, and check the result or record the run."""
        # Engines infer the format from the suffix.
        spill, output = self.setting.folder / "spill", self.setting.folder / "sorted.parquet"
        spill.mkdir()
        try:
            if self.engine.name == "sqlite":
                self.case.sqlite()
            run = self.watch(spill, output, checks).run(
                self.limit_bytes, self.setting.timeout_s, output
            )
            if run.rows is None:
                run.rows = (
                    self.case.rows
                    if self.engine.name == "sqlite"
                    else pq.read_metadata(output).num_rows
                )
            if run.rows != self.case.rows:
                raise Failure(f"wrong: expected {self.case.rows:,} rows, found {run.rows:,}")
            if checks:
                check(self.case, output)
                self.checked = True
            else:
                self.runs.append(run)
        except Failure as failure:
            self.failure = str(failure)
        finally:
            output.unlink(missing_ok=True)

    def watch(self, spill: Path, output: Path, checks: bool) -> Watch:
        setting = self.setting
        task = {
            "source": str(self.case.parquet()),
            "keys": self.case.keys,
            "output": str(output) if checks or self.form == PARQUET else None,
            "spill": str(spill),
            "memory_bytes": self.memory_bytes,
            "headroom_bytes": setting.headroom_bytes,
            "data_bytes": self.case.arrow_bytes(),
            "threads": setting.threads,
            "row_group_rows": self.case.row_group_rows,
            "dray": str(setting.dray),
        }
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "lab.sort.client",
            self.engine.name,
            self.form,
        ]
        environment = {
            "TMPDIR": str(spill),
            "SQLITE_TMPDIR": str(spill),
            "POLARS_MAX_THREADS": str(setting.threads),
        }
        processors = set(sorted(os.sched_getaffinity(0))[: setting.threads])
        log = setting.folder / "client.log"
        touched_bytes = TOUCHED_BASE_BYTES + TOUCHED_TIMES * self.case.arrow_bytes()
        return Watch(
            [*command, json.dumps(task)], environment, processors, spill, log, touched_bytes
        )

    def seconds(self) -> list[float]:
        return [run.seconds for run in self.runs]

    def median(self, name: str) -> float | None:
        values = [getattr(run, name) for run in self.runs]
        return statistics.median(values) if values else None

    def as_json(self) -> dict[str, object]:
        return {
            "engine": self.engine.name,
            "form": self.form,
            "memory_bytes": self.memory_bytes,
            "limit_bytes": self.limit_bytes,
            "checked": self.checked,
            "failure": self.failure,
            "seconds_median": self.median("seconds"),
            "runs": [{**asdict(run), "growth_bytes": run.growth_bytes} for run in self.runs],
        }
