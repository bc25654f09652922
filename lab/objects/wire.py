"""Customers over a slow link: columns that Dray sends, beside gzipped JSON.

`python -m lab.objects.wire URI SQL FILE` is the client of Dray.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lab.common.program import python
from lab.link.link import Link
from lab.objects import objects
from lab.objects.cases import Case, Study
from lab.objects.claims import GZIP
from lab.objects.harness import Implementation, Setting, run
from lab.objects.requests import Made, fetch, head, judged
from lab.objects.tree import end

RATE = "100mbit"
PORT = 20_100
NAME = "customer"
SQL = f"SELECT * FROM {NAME}"


def wire(study: Study) -> Iterator[list[Case]]:
    """Both send the same customers from memory."""
    made = head(study, NAME, min(study.scale.wire, objects.count(study.input(NAME))))
    options = {"object": NAME, "count": made.number, "rate": RATE}
    with Link.shaped(RATE) as link:
        yield [
            *(
                text(study, one, link, made, options)
                for one in study.implementations
                if one.title == GZIP
            ),
            columns(study, link, made, options),
        ]


def text(study: Study, one: Implementation, link: Link, made: Made, options: dict) -> Case:
    """Objects that a server encodes and a client decodes."""
    asked = {**options, "source": "ram", "servers": 1}

    def measure() -> dict:
        folder = made.store(one)
        with ExitStack() as stack, tempfile.TemporaryDirectory(dir=study.stored) as output:
            before = received_bytes(link)
            client = study.reference.parent / "client"
            found = fetch(stack, one, link, folder, output, asked, client)
            wire_bytes = received_bytes(link) - before
            checksum = judged(one, made, folder, Path(output), asked)
        decoded = one.run(
            "phases", Setting(), object=NAME, folder=folder, phase="open", count=made.number
        )
        cpu_s = found["client_cpu_s"] + decoded["cpu_s"]
        return {**found, "client_cpu_s": cpu_s, "wire_bytes": wire_bytes, "checksum": checksum}

    return Case("wire", one, options, measure, "right")


def columns(study: Study, link: Link, made: Made, options: dict) -> Case:
    """Lists of structs, which a client gets as Arrow's arrays."""
    version = run_text([str(study.dray), "--version"]).split()[-1] if study.dray.exists() else ""
    one = Implementation(study.dray, "columns", "Dray", version, "always", (NAME,), ())

    def measure() -> dict:
        with ExitStack() as stack, tempfile.TemporaryDirectory(dir=study.stored) as folder:
            parquet, token, answer = (
                Path(folder) / name for name in ("customer.parquet", "token", "answer.arrow")
            )
            pq.write_table(table(made.path), parquet)
            token.touch(0o600)
            token.write_text(secrets.token_hex(16))
            listen = f"{link.far_address}:{PORT}"
            serve = [study.dray, "serve", f"{NAME}={parquet}", "--in-memory"]
            serve += ["--listen", f"tcp://{listen}", "--token-file", token]
            server = subprocess.Popen(
                [*link.far, *map(str, serve)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            stack.callback(end, server)
            link.await_listening(server)
            uri = f"dray://{token.read_text()}@{listen}?local_socket=false&plain_token=true"
            # The first statement reads the file into memory.
            load = python(__spec__.name, uri, f"{SQL} LIMIT 1", answer)
            run([*link.near, *load], Setting(cores=0))
            before, server_cpu_s = received_bytes(link), cpu_s(server.pid)
            command = [*link.near, *python(__spec__.name, uri, SQL, answer)]
            found = run(command, Setting(cores=0))
            wire_bytes = received_bytes(link) - before
            server_cpu_s = cpu_s(server.pid) - server_cpu_s
            with pa.ipc.open_file(answer) as reader:
                seen = f"{checksum(reader.read_all()):016x}"
        judgement = "right" if seen == truth["checksum"] else f"wrong: {seen}"
        return {**found, "cpu_s": server_cpu_s, "wire_bytes": wire_bytes, "checksum": judgement}

    truth = study.truth(NAME, count=made.number)
    return Case("wire", one, options, measure, "right")


def received_bytes(link: Link) -> int:
    return link.counters()["to_near"]["passed_bytes"]


def cpu_s(pid: int) -> float:
    """The CPU time of all threads of a process, by its clock (clock_getcpuclockid)."""
    return time.clock_gettime((~pid << 3) | 2)


def run_text(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def table(path: Path) -> pa.Table:
    """The objects of an input as one column for each field."""
    rows = []
    for record in objects.records(path):
        row, _ = row_of(objects.CUSTOMER, record, 0)
        rows.append(row)
    return pa.Table.from_pylist(rows, pa.schema(list(struct_of(objects.CUSTOMER))))


def struct_of(fields: list) -> pa.StructType:
    """The type of records."""
    plain = {"i32": pa.int32(), "f64": pa.float64(), "str": pa.string()}
    out = []
    for name, kind in fields:
        if isinstance(kind, tuple):
            found = pa.list_(pa.field("item", struct_of(kind[1]), nullable=False))
        elif isinstance(kind, list):
            found = struct_of(kind)
        else:
            found = plain[kind]
        out.append(pa.field(name, found, nullable=False))
    return pa.struct(out)


def row_of(fields: list, data: bytes, at: int) -> tuple[dict, int]:
    """The fields of a record, and where it ends."""
    row = {}
    for name, kind in fields:
        if kind == "i32":
            row[name], at = objects.I32.unpack_from(data, at)[0], at + 4
        elif kind == "f64":
            row[name], at = objects.F64.unpack_from(data, at)[0], at + 8
        elif kind == "str":
            after = at + 4 + objects.U32.unpack_from(data, at)[0]
            row[name], at = data[at + 4 : after].decode(), after
        elif isinstance(kind, tuple):
            count, at = objects.U32.unpack_from(data, at)[0], at + 4
            row[name] = []
            for _ in range(count):
                item, at = row_of(kind[1], data, at)
                row[name].append(item)
        else:
            row[name], at = row_of(kind, data, at)
    return row, at


def checksum(found: pa.Table) -> int:
    """The checksum of rows as a set."""
    rows = (add_row(0, objects.CUSTOMER, row) for row in found.to_pylist())
    return sum(rows) & objects.MASK


def add_row(h: int, fields: list, row: dict) -> int:
    for name, kind in fields:
        value = row[name]
        if kind == "i32":
            h = objects.add(h, value)
        elif kind == "f64":
            h = objects.add(h, objects.U64.unpack(objects.F64.pack(value))[0])
        elif kind == "str":
            h = objects.add_bytes(h, value.encode())
        elif isinstance(kind, tuple):
            h = objects.add(h, len(value))
            for item in value:
                h = add_row(h, kind[1], item)
        else:
            h = add_row(h, kind, value)
    return h


def client(uri: str, sql: str, path: str) -> None:
    """Fetch a result, print what it took, and keep it."""
    import dray

    start, start_cpu = time.perf_counter(), time.process_time()
    with dray.connect(uri) as connection:
        result = connection.query(sql)
        found = result.to_arrow()
    wall_s, used_s = time.perf_counter() - start, time.process_time() - start_cpu
    with pa.ipc.new_file(path, found.schema) as writer:
        writer.write_table(found)
    print(json.dumps({"wall_s": wall_s, "client_cpu_s": used_s, "bytes": found.nbytes}))


if __name__ == "__main__":
    client(*sys.argv[1:])
