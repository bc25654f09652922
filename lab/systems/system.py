"""A system: a server with a table, and clients that fetch the table from it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from lab.common.contender import Contender, Server, Setting
from lab.common.loaded_server import is_installed
from lab.common.measurement import Measurement
from lab.common.process import Failure
from lab.common.program import compiled
from lab.systems.networks import Network

HERE = Path(__file__).resolve().parent
JAVA = HERE / "java" / "target"
#: Derby's drivers would write a log into the working folder.
JAVA_OPTIONS = (
    "-XX:-UsePerfData",
    "-XX:+UseParallelGC",
    f"-Dderby.stream.error.file={Path(tempfile.gettempdir()) / 'dray-lab-derby.log'}",
)
#: Rows that a client asks for at once, where it can choose.
ROWS_PER_FETCH = 10_000


class Program(Contender):
    """A client that is a command line. It is made when it runs, so that what is missing is said
    then, and nothing else fails.
    """

    def __init__(
        self,
        name: str,
        label: str,
        server: Server,
        command: Callable[[], list[object]],
        into_table: bool = False,
    ) -> None:
        super().__init__(name, label, server)
        self.command = command
        self.into_table = into_table

    def client_command(self) -> list[str]:
        return [str(word) for word in self.command()]

    def run_client(self) -> Measurement:
        """Run it, and check the sum of the first column as well, if the client tells it."""
        measurement = super().run_client()
        found = measurement.details.get("first_column_sum")
        table = self.server.setting.table
        if found is not None and table.name == "lineitem":
            expected = first_column_sum(table.parquet())
            if found != expected:
                raise Failure(f"expected the sum {expected} of a column, the client found {found}")
        return measurement


@cache
def first_column_sum(parquet: Path) -> int:
    column = pq.read_schema(parquet).names[0]
    total: int = pc.sum(pq.read_table(parquet, columns=[column]).column(0)).as_py()
    return total


@dataclass(frozen=True)
class Entry:
    """A client as a row of the report.

    Attributes
    ----------
    paper : str
        The row of the paper's tables that it stands for. Empty: the paper has no such client.
    in_figures : bool
        Whether it takes part in figures 3 and 4.
    local_only : bool
        Whether it is measured over loopback alone, because no network takes as long as it does.
    note : str
        A remark for the report.
    """

    contender: Contender
    paper: str = ""
    in_figures: bool = False
    local_only: bool = False
    note: str = ""

    def runs_over(self, network: Network) -> bool:
        """Whether it is measured there. Over a slow link the network decides, so that one client of
        each kind is enough.
        """
        if network.figure:
            return self.in_figures
        if network.is_slow:
            return self.in_figures or bool(self.paper)
        return network.make_link is None or not self.local_only


@dataclass(frozen=True)
class System:
    """A system of the report.

    Attributes
    ----------
    entries : callable
        Makes the clients, which share one server or a few.
    versions : callable
        Names and versions of what it consists of.
    can_warm : bool
        Whether a client may run before those that are measured. netcat serves only one.
    """

    name: str
    title: str
    entries: Callable[[Setting], list[Entry]]
    versions: Callable[[], dict[str, str]]
    can_warm: bool = True


def odbc(connection_string: str, sql: str) -> list[object]:
    """The command line of odbc.c."""
    return [compiled(HERE / "odbc.c", "-lodbc"), connection_string, sql]


def java(main: str, *arguments: object, jars: str = "", options: tuple[str, ...] = ()) -> list[str]:
    """The command line of a class of the folder java/, or of its libraries."""
    is_installed(JAVA / "classes", "run scripts/setup CACHE systems")
    path = ":".join(part for part in (f"{JAVA}/classes", f"{JAVA}/jars/*", jars) if part)
    words = ["java", *JAVA_OPTIONS, *options, "-cp", path, main]
    return [*words, *map(str, arguments)]


def jdbc(
    url: str, sql: str, *properties: str, jars: str = "", options: tuple[str, ...] = ()
) -> list[str]:
    """The command line of Drain.java."""
    words = (url, sql, ROWS_PER_FETCH, *properties)
    return java("dray.systems.Drain", *words, jars=jars, options=options)
