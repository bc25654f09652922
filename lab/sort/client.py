"""Sorts once in a process of its own.

It prepares the data, prints `ready`, waits for a line, sorts, and prints its time. It ends at the
end of its standard input, so that its memory can be measured before.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lab.common.measurement import Stopwatch
from lab.common.program import program_name
from lab.data.table import plain_strings
from lab.sort.data import from_plain

#: Rows that are fetched from SQLite at a time.
FETCH_ROWS = 10_000


@dataclass(frozen=True)
class Task:
    """The data to sort, and the limits."""

    source: str
    keys: list[str]
    #: File of the sorted rows. If None, they are dropped. From memory, they are written only to be
    #: checked.
    output: str | None
    spill: str
    memory_bytes: int
    headroom_bytes: int
    #: Size of the rows in Arrow.
    data_bytes: int
    threads: int
    row_group_rows: int
    dray: str

    @property
    def by(self) -> str:
        """The ORDER BY clause in SQL."""
        return ", ".join(f"{key} ASC NULLS LAST" for key in self.keys)


#: The timed function. A sort to a file returns nothing, and one in memory returns batches.
Sort = Callable[[], Iterable[pa.RecordBatch] | None]


def dray_memory(task: Task) -> Sort:
    import dray

    table = pq.read_table(task.source)
    options = {"memory": task.memory_bytes, "spill": task.spill, "threads": task.threads}
    return lambda: pa.RecordBatchReader.from_stream(dray.sort(table, task.keys, **options))


def dray_parquet(task: Task) -> Sort:
    command = [
        task.dray,
        "sort",
        task.source,
        "--by",
        ",".join(task.keys),
        "--output",
        task.output,
        "--quiet",
    ]
    command += [
        "--memory",
        str(task.memory_bytes),
        "--spill",
        task.spill,
        "--threads",
        str(task.threads),
    ]
    command += ["--file-compression", "snappy", "--row-group-rows", str(task.row_group_rows)]

    def sort() -> None:
        subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)

    return sort


def duckdb_memory(task: Task) -> Sort:
    connection = duckdb_connection(task, task.memory_bytes + 4 * task.data_bytes)
    connection.execute(f"CREATE TABLE t AS FROM '{task.source}'")
    # The table in the engine's memory counts towards its limit, so the limit is raised by its size.
    used_bytes = connection.execute(
        "SELECT sum(memory_usage_bytes) FROM duckdb_memory()"
    ).fetchone()[0]
    connection.execute(f"SET memory_limit = '{task.memory_bytes + used_bytes}B'")
    return lambda: connection.sql(f"FROM t ORDER BY {task.by}").to_arrow_reader(task.row_group_rows)


def duckdb_parquet(task: Task) -> Sort:
    connection = duckdb_connection(task, task.memory_bytes)
    options = f"FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {task.row_group_rows}"

    def sort() -> None:
        connection.execute(
            f"COPY (FROM '{task.source}' ORDER BY {task.by}) TO '{task.output}' ({options})"
        )

    return sort


def duckdb_connection(task: Task, memory_bytes: int) -> object:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{memory_bytes}B'")
    connection.execute(f"SET temp_directory = '{task.spill}'")
    connection.execute(f"SET threads = {task.threads}")
    return connection


def datafusion_memory(task: Task, partitions: int | None = None) -> Sort:
    context = datafusion_context(task, partitions)
    context.sql(f"CREATE TABLE t AS SELECT * FROM '{task.source}'").collect()

    def sort() -> Iterator[pa.RecordBatch]:
        return (
            batch.to_pyarrow()
            for batch in context.sql(f"SELECT * FROM t ORDER BY {task.by}").execute_stream()
        )

    return sort


def datafusion_parquet(task: Task, partitions: int | None = None) -> Sort:
    context = datafusion_context(task, partitions)
    query = f"SELECT * FROM '{task.source}' ORDER BY {task.by}"

    def sort() -> None:
        context.sql(f"COPY ({query}) TO '{task.output}' STORED AS PARQUET").collect()

    return sort


def datafusion_context(task: Task, partitions: int | None) -> object:
    from datafusion import RuntimeEnvBuilder, SessionConfig, SessionContext

    settings = {
        "datafusion.execution.target_partitions": partitions or task.threads,
        # The default of 10 MB exceeds the whole limit at the end of the curve.
        "datafusion.execution.sort_spill_reservation_bytes": min(10 << 20, task.memory_bytes // 32),
        "datafusion.execution.parquet.compression": "snappy",
        "datafusion.execution.parquet.max_row_group_size": task.row_group_rows,
    }
    config = SessionConfig({name: str(value) for name, value in settings.items()})
    runtime = (
        RuntimeEnvBuilder()
        .with_disk_manager_specified(task.spill)
        .with_fair_spill_pool(task.memory_bytes)
    )
    return SessionContext(config, runtime).enable_url_table()


def clickhouse_memory(task: Task) -> Sort:
    session = clickhouse_session(task)
    session.query(
        f"CREATE TABLE lab.t ENGINE = Memory AS SELECT * FROM file('{task.source}', Parquet)"
    )
    settings = clickhouse_settings(task)

    def sort() -> Iterable[pa.RecordBatch]:
        return session.send_query(
            f"SELECT * FROM lab.t ORDER BY {task.by} SETTINGS {settings}", "Arrow"
        ).record_batch()

    return sort


def clickhouse_parquet(task: Task) -> Sort:
    session = clickhouse_session(task)
    target = f"FUNCTION file('{task.output}', Parquet)"
    query = f"SELECT * FROM file('{task.source}', Parquet) ORDER BY {task.by}"
    settings = clickhouse_settings(task)

    def sort() -> None:
        session.query(f"INSERT INTO {target} {query} SETTINGS {settings}")

    return sort


def clickhouse_session(task: Task) -> object:
    from chdb import session

    # Temporary files are stored below the data folder.
    opened = session.Session(str(Path(task.spill, "clickhouse")))
    opened.query("CREATE DATABASE IF NOT EXISTS lab")
    return opened


def clickhouse_settings(task: Task) -> str:
    settings = {
        "max_threads": task.threads,
        "max_memory_usage": task.memory_bytes + task.headroom_bytes,
        # As the manual advises, because the merge takes about as much again.
        "max_bytes_before_external_sort": task.memory_bytes // 2,
        "max_bytes_ratio_before_external_sort": 0,
        # Sizes of reading, gathering and merging: the defaults, but small if memory is.
        "input_format_parquet_memory_high_watermark": min(4 << 30, task.memory_bytes // 4),
        "min_external_sort_block_bytes": min(100 << 20, task.memory_bytes // 8),
        "prefer_external_sort_block_bytes": min(16 << 20, task.memory_bytes // 16),
        "output_format_parquet_row_group_size": task.row_group_rows,
        "output_format_parquet_compression_method": "'snappy'",
        "output_format_arrow_string_as_string": 1,
        "engine_file_truncate_on_insert": 1,
    }
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def hyper_memory(task: Task) -> Sort:
    connection = hyper_connection(task)
    connection.execute_command(
        f"CREATE TEMPORARY TABLE t AS SELECT * FROM external('{task.source}', FORMAT => 'parquet')"
    )
    # It writes only to files. This one is in memory.
    result = Path(tempfile.mkdtemp(dir="/dev/shm"), "sorted.arrows")
    resources.append(contextlib.ExitStack())
    resources[-1].callback(shutil.rmtree, result.parent)

    def sort() -> Iterator[pa.RecordBatch]:
        connection.execute_command(
            f"COPY (SELECT * FROM t ORDER BY {task.by}) TO '{result}' "
            "WITH (FORMAT => 'arrowstream')"
        )
        yield from pa.ipc.open_stream(pa.memory_map(str(result)))

    return sort


def hyper_parquet(task: Task) -> Sort:
    connection = hyper_connection(task)
    query = f"SELECT * FROM external('{task.source}', FORMAT => 'parquet') ORDER BY {task.by}"

    def sort() -> None:
        connection.execute_command(f"COPY ({query}) TO '{task.output}' WITH (FORMAT => 'parquet')")

    return sort


def hyper_connection(task: Task) -> object:
    from tableauhyperapi import Connection, CreateMode, HyperProcess, Telemetry

    parameters = {
        "log_config": "",
        "hard_concurrent_query_thread_limit": str(task.threads),
        "memory_limit": f"{(task.memory_bytes + task.data_bytes) >> 20}m",
    }
    process = HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=parameters)
    connection = Connection(
        process.endpoint, str(Path(task.spill, "lab.hyper")), CreateMode.CREATE_AND_REPLACE
    )
    resources.extend([connection, process])
    return connection


def polars_memory(task: Task) -> Sort:
    import polars

    frame = polars.read_parquet(task.source)
    return lambda: frame.sort(task.keys, nulls_last=True).to_arrow().to_batches()


def polars_streaming_memory(task: Task) -> Sort:
    polars = polars_that_spills(task)
    frame = polars.read_parquet(task.source)

    def sort() -> Iterator[pa.RecordBatch]:
        for part in (
            frame.lazy().sort(task.keys, nulls_last=True).collect_batches(engine="streaming")
        ):
            yield from part.to_arrow().to_batches()

    return sort


def polars_streaming_parquet(task: Task) -> Sort:
    polars = polars_that_spills(task)

    def sort() -> None:
        rows = polars.scan_parquet(task.source).sort(task.keys, nulls_last=True)
        rows.sink_parquet(
            task.output,
            compression="snappy",
            row_group_size=task.row_group_rows,
            engine="streaming",
        )

    return sort


def polars_that_spills(task: Task) -> object:
    """Import Polars with its settings, which it reads from the environment."""
    os.environ["POLARS_OOC_SPILL_DIR"] = task.spill
    os.environ["POLARS_OOC_MEMORY_BUDGET_MB"] = str(max(1, task.memory_bytes // 1_000_000))
    import polars

    return polars


def pandas_memory(task: Task) -> Sort:
    import pandas

    frame = pq.read_table(task.source).to_pandas(types_mapper=pandas.ArrowDtype)
    return lambda: pa.Table.from_pandas(
        frame.sort_values(task.keys), preserve_index=False
    ).to_batches()


def pandas_parquet(task: Task) -> Sort:
    import pandas

    def sort() -> None:
        rows = pandas.read_parquet(task.source, dtype_backend="pyarrow").sort_values(task.keys)
        rows.to_parquet(
            task.output, index=False, compression="snappy", row_group_size=task.row_group_rows
        )

    return sort


def pyarrow_memory(task: Task) -> Sort:
    table = pq.read_table(task.source)
    return lambda: table.sort_by([(key, "ascending") for key in task.keys]).to_batches()


def pyarrow_parquet(task: Task) -> Sort:
    def sort() -> None:
        rows = pq.read_table(task.source).sort_by([(key, "ascending") for key in task.keys])
        pq.write_table(rows, task.output, compression="snappy", row_group_size=task.row_group_rows)

    return sort


def sqlite_memory(task: Task) -> Sort:
    connection = sqlite3.connect(":memory:")
    with sqlite3.connect(Path(task.source).with_suffix(".sqlite")) as stored:
        stored.backup(connection)
    sqlite_settings(connection, task)
    schema = pq.read_schema(task.source)

    def sort() -> Iterator[pa.RecordBatch | int]:
        cursor = connection.execute(f"SELECT * FROM t ORDER BY {task.by}")
        while rows := cursor.fetchmany(FETCH_ROWS):
            yield rows_to_batch(rows, schema) if task.output else len(rows)

    return sort


def sqlite_parquet(task: Task) -> Sort:
    """Sort from and to SQLite files instead of Parquet."""
    connection = sqlite3.connect(Path(task.source).with_suffix(".sqlite"))
    sqlite_settings(connection, task)
    connection.execute(f"ATTACH '{task.output}' AS sink")
    connection.execute("PRAGMA sink.journal_mode = OFF")
    connection.execute("PRAGMA sink.synchronous = OFF")

    def sort() -> None:
        connection.execute(f"CREATE TABLE sink.t AS SELECT * FROM t ORDER BY {task.by}")
        connection.commit()

    return sort


def sqlite_settings(connection: sqlite3.Connection, task: Task) -> None:
    # The sorter may use as much memory as the page cache.
    connection.execute(f"PRAGMA cache_size = -{task.memory_bytes // 1024}")
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute(f"PRAGMA threads = {task.threads}")


def rows_to_batch(rows: list[tuple], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [
        from_plain(
            pa.array(column, pa.string() if pa.types.is_string(field.type) else pa.int64()),
            field.type,
        )
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.record_batch(arrays, schema=schema)


#: Objects that must live until the process ends.
resources: list[object] = []
ENGINES: dict[str, dict[str, Callable[[Task], Sort]]] = {
    "dray": {"memory": dray_memory, "parquet": dray_parquet},
    "duckdb": {"memory": duckdb_memory, "parquet": duckdb_parquet},
    "datafusion": {"memory": datafusion_memory, "parquet": datafusion_parquet},
    "datafusion-1": {"parquet": functools.partial(datafusion_parquet, partitions=1)},
    "clickhouse": {"memory": clickhouse_memory, "parquet": clickhouse_parquet},
    "hyper": {"memory": hyper_memory, "parquet": hyper_parquet},
    "polars": {"memory": polars_memory},
    "polars-streaming": {"memory": polars_streaming_memory, "parquet": polars_streaming_parquet},
    "pandas": {"memory": pandas_memory, "parquet": pandas_parquet},
    "pyarrow": {"memory": pyarrow_memory, "parquet": pyarrow_parquet},
    "sqlite": {"memory": sqlite_memory, "parquet": sqlite_parquet},
}


def consume(batches: Iterable[pa.RecordBatch | int], output: str | None) -> int:
    """Count the rows, and write them to `output` or drop them."""
    rows, writer = 0, None
    for batch in batches:
        rows += batch if isinstance(batch, int) else len(batch)
        if output is not None:
            # A sliced view would be written with all of its buffers.
            plain = pa.table(batch).cast(plain_strings(batch.schema)).combine_chunks()
            writer = writer or pa.ipc.new_file(output, plain.schema)
            writer.write_table(plain)
    if writer is not None:
        writer.close()
    return rows


def message(error: Exception) -> str:
    said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    return " ".join(said.split()) or type(error).__name__


def main() -> None:
    parser = argparse.ArgumentParser(prog=program_name())
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("form", choices=["memory", "parquet"])
    parser.add_argument("task", help="JSON")
    given = parser.parse_args()
    task = Task(**json.loads(given.task))
    # Output of an engine must not be mistaken for the report.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        sort = ENGINES[given.engine][given.form](task)
        print("ready", file=report, flush=True)
        sys.stdin.readline()
        watch = Stopwatch()
        batches = sort()
        rows = None if batches is None else consume(batches, task.output)
        print(json.dumps({"seconds": watch.lap(), "rows": rows}), file=report, flush=True)
    except Exception as error:
        # Any exception of an engine is its result.
        print(json.dumps({"error": message(error)}), file=report, flush=True)
    sys.stdin.read()
    for resource in resources:
        resource.close()
    # Skips the clean-up of engines, because the kernel frees the memory faster.
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
