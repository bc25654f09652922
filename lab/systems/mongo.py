"""MongoDB's protocol: a server in Java that keeps documents in memory, by libmongoc, by pymongo
and by Dray's relay.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from lab.common.contender import Setting
from lab.common.loaded_server import LoadedServer, run
from lab.common.machine import package_version, program_version
from lab.common.measurement import Client, Measurement, Stopwatch, with_cpu
from lab.common.program import compiled, output_of, program_name, python
from lab.systems.frames import FOLDERS, frame
from lab.systems.relay import RelayServer
from lab.systems.system import HERE, JAVA, Entry, Program, System, java

DATABASE = "lab"
ROWS_PER_INSERT = 5000
BATCH_BYTES = 16_000_000
#: The first column of lineitem, whose sum is checked.
KEY = "l_orderkey"
#: Documents in memory are many times larger than the table.
HEAP_PERCENTAGE = 60


class MongoServer(LoadedServer):
    announcement = "listening"
    keeps_data = False

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, "mongo")

    def command(self) -> list[str]:
        address = [self.setting.testbed.address, self.port]
        heap = f"-XX:MaxRAMPercentage={HEAP_PERCENTAGE}"
        return java("dray.systems.Mongo", *address, options=(heap,))

    def load(self) -> None:
        address = [self.setting.testbed.address, self.port]
        table = self.setting.table
        command = python(__name__, "load", *address, table.name, table.parquet())
        run([*self.setting.testbed.far, *command], "fill the server of MongoDB's protocol")


def entries(setting: Setting) -> list[Entry]:
    server = MongoServer(setting)
    address, table = setting.testbed.address, setting.table.name

    def client(way: str, label: str) -> Program:
        command = python(__name__, way, address, server.port, table)
        return Program(f"mongo-{way}", label, server, lambda: list(command))

    def by_libmongoc() -> list[object]:
        flags = output_of("pkg-config", "--cflags", "--libs", "libmongoc-1.0").split()
        words = [address, server.port, DATABASE, table, BATCH_BYTES, KEY]
        return [compiled(HERE / "mongo.c", *flags), *words]

    libmongoc = Program("mongo-libmongoc", "libmongoc, documents", server, by_libmongoc)
    uri = f"mongodb://{address}:{server.port}/{DATABASE}"
    relay = RelayServer(server, uri)
    return [
        Entry(libmongoc, "MongoDB", in_figures=True),
        Entry(client("documents", "pymongo, documents")),
        Entry(client("raw", "pymongo, undecoded batches")),
        frame("mongo", server, "pymongoarrow", uri, table),
        Entry(relay.client(json.dumps({"find": table})), in_figures=True),
    ]


def versions() -> dict[str, str]:
    jars = (JAVA / "jars").glob("mongo-java-server-core-*.jar")
    arrow = FOLDERS["pymongoarrow"].glob("pymongoarrow-*.dist-info")
    return {
        "server": next((jar.stem for jar in jars), "missing"),
        "libmongoc": program_version(["pkg-config", "--modversion", "libmongoc-1.0"]),
        "pymongo": package_version("pymongo"),
        "pymongoarrow": next((it.stem for it in arrow), "not installed"),
    }


SYSTEM = System("mongo", "MongoDB's protocol", entries, versions)


def bson_value(value: object) -> object:
    """Decimals as doubles, and dates as dates of a time: BSON's Decimal128 is not a common type."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return datetime.datetime(value.year, value.month, value.day)
    return value


def documents(parquet: Path) -> Iterator[list[dict]]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(parquet) as source:
        for batch in source.iter_batches(ROWS_PER_INSERT):
            yield [
                {name: bson_value(value) for name, value in row.items()}
                for row in batch.to_pylist()
            ]


def load(address: str, port: int, name: str, parquet: Path) -> None:
    import pymongo

    with pymongo.MongoClient(address, port) as client:
        for block in documents(parquet):
            client[DATABASE][name].insert_many(block, ordered=False)


def fetch(way: str, address: str, port: int, name: str) -> Measurement:
    import pymongo

    watch = Stopwatch()
    with pymongo.MongoClient(address, port) as client:
        table = client[DATABASE][name]
        # MongoDB ends a batch at 16 MB, and this server does not.
        batch_size = BATCH_BYTES // len(next(table.find_raw_batches(limit=1)))
        connect_s = watch.lap()
        rows = total = 0
        if way == "documents":
            for document in table.find(batch_size=batch_size):
                rows += 1
                total += document.get(KEY, 0)
        else:
            for batch in table.find_raw_batches(batch_size=batch_size):
                rows += documents_in(batch)
        transfer_s = watch.lap()
        details = {"first_column_sum": total} if way == "documents" and name == "lineitem" else {}
        total_s = watch.total()
        return Measurement(connect_s, None, transfer_s, total_s, rows, None, details=details)


def documents_in(batch: bytes) -> int:
    """How many documents lie behind one another. Each begins with its length."""
    count = offset = 0
    while offset < len(batch):
        offset += int.from_bytes(batch[offset : offset + 4], "little")
        count += 1
    return count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("way", choices=["load", "documents", "raw"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("table")
    parser.add_argument("parquet", type=Path, nargs="?")
    given = parser.parse_args()
    where = given.address, given.port, given.table
    if given.way == "load":
        load(*where, given.parquet)
    else:
        import pymongo  # noqa: F401

        client = Client()
        client.report(with_cpu(lambda: fetch(given.way, *where)))
