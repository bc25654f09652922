"""Makes the input of the study: the objects of TPC-H as nested records, and sparse vectors.

python -m lab.objects.generate FOLDER --scale-factor 0.01
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lab.common.process import Failure
from lab.objects.objects import CUSTOMER, LINE_ITEM, ORDER, PART, SUPPLIER, U32, U64

#: Densities of the vectors in percent, by the names that files have.
DENSITIES = {"0.1": 0.001, "1": 0.01, "10": 0.1}
NODES = 7
SEED = 2016
#: Parts of their own are from a larger scale: there are few beside the line items.
PARTS = 10
#: Columns of TPC-H by our fields' names, where these differ by more than the table's prefix.
COLUMNS = {"supplierKey": "suppkey", "partKey": "partkey"}


def table(folder: Path, name: str, prefix: str, keys: list[str]) -> pa.Table:
    """A table of TPC-H in the order of its keys, with the types of the study."""
    found = pq.read_table(folder / f"{name}.parquet")
    columns = []
    for column in found.columns:
        if pa.types.is_string_view(column.type):
            column = pc.cast(column, pa.string())
        elif pa.types.is_decimal(column.type):
            column = pc.cast(column, pa.float64())
        elif pa.types.is_date(column.type):
            column = pc.cast(pc.cast(column, pa.date32()), pa.int32())
        elif pa.types.is_integer(column.type):
            column = pc.cast(column, pa.int32())
        columns.append(column)
    names = [name.removeprefix(prefix) for name in found.column_names]
    order = [(key.removeprefix(prefix), "ascending") for key in keys]
    return pa.table(columns, names).sort_by(order)


def encoded(found: pa.Table, fields: list) -> list[bytes]:
    """The plain fields of each row; nested ones are left to the caller."""
    plain = [(name, kind) for name, kind in fields if isinstance(kind, str)]
    columns = []
    for name, kind in plain:
        column = found[COLUMNS.get(name, name.lower())]
        # The columns of prices are whole numbers in some versions of the generator.
        if kind == "f64":
            column = pc.cast(column, pa.float64())
        columns.append(column.to_pylist())
    out = []
    for row in zip(*columns, strict=True):
        parts = []
        for (_, kind), value in zip(plain, row, strict=True):
            if kind == "str":
                data = value.encode()
                parts += [U32.pack(len(data)), data]
            else:
                parts.append(struct.pack("<i" if kind == "i32" else "<d", value))
        out.append(b"".join(parts))
    return out


def nested(folder: Path) -> dict[str, list[bytes]]:
    """The records of all line items and customers."""
    parts = table(folder, "part", "p_", ["p_partkey"])
    suppliers = table(folder, "supplier", "s_", ["s_suppkey"])
    items = table(folder, "lineitem", "l_", ["l_orderkey", "l_linenumber"])
    orders = table(folder, "orders", "o_", ["o_orderkey"])
    customers = table(folder, "customer", "c_", ["c_custkey"])
    part_of = dict(zip(parts["partkey"].to_pylist(), encoded(parts, PART), strict=True))
    supplier_of = dict(
        zip(suppliers["suppkey"].to_pylist(), encoded(suppliers, SUPPLIER), strict=True)
    )
    keys = (items[name].to_pylist() for name in ("orderkey", "suppkey", "partkey"))
    items_of, all_items = defaultdict(list), []
    for order, supplier, part, own in zip(*keys, encoded(items, LINE_ITEM), strict=True):
        record = own + supplier_of[supplier] + part_of[part]
        items_of[order].append(record)
        all_items.append(record)
    orders_of = defaultdict(list)
    keys = (orders[name].to_pylist() for name in ("orderkey", "custkey"))
    for order, customer, own in zip(*keys, encoded(orders, ORDER), strict=True):
        orders_of[customer].append(own + packed(items_of[order]))
    own = zip(customers["custkey"].to_pylist(), encoded(customers, CUSTOMER), strict=True)
    return {
        "lineitem": all_items,
        "customer": [record + packed(orders_of[customer]) for customer, record in own],
    }


def packed(items: list[bytes]) -> bytes:
    """A list of records."""
    return U32.pack(len(items)) + b"".join(items)


def write(path: Path, found: list[bytes]) -> None:
    with path.open("wb") as file:
        file.write(U64.pack(len(found)))
        for record in found:
            file.write(U32.pack(len(record)))
            file.write(record)


def drawn(found: list[bytes], size: int, random: np.random.Generator) -> list[bytes]:
    """Records that are drawn with replacement, up to a size in bytes."""
    mean = sum(map(len, found)) / len(found)
    return [found[i] for i in random.integers(0, len(found), max(2, int(size / mean)))]


def vector(dimensions: int, density: float, random: np.random.Generator) -> bytes:
    positions = np.flatnonzero(random.random(dimensions, dtype=np.float32) < density)
    entries = np.empty(len(positions), dtype=np.dtype([("position", "<i4"), ("value", "<f8")]))
    entries["position"] = positions
    entries["value"] = random.integers(1, 1001, len(positions))
    return U32.pack(len(entries)) + entries.tobytes()


def make_tables(folder: Path, tables: str, scale_factor: float) -> None:
    """Write tables of TPC-H as Parquet."""
    generator = Path(sys.executable).parent / "tpchgen-cli"
    command = [generator, "parquet", "-s", f"{scale_factor:g}", "-T", tables, "-o", folder, "-q"]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"cannot generate TPC-H: {error}") from error


def generate(folder: Path, scale_factor: float, sort_bytes: int, dimensions: int) -> None:
    """Write all inputs into a folder, which is complete once it has the file `made`."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as raw:
        make_tables(Path(raw), "part,supplier,lineitem,orders,customer", scale_factor)
        found = nested(Path(raw))
    with tempfile.TemporaryDirectory(dir=folder) as raw:
        make_tables(Path(raw), "part", scale_factor * PARTS)
        parts = table(Path(raw), "part", "p_", ["p_partkey"])
        found["part"] = encoded(parts, PART)
    random = np.random.default_rng(SEED)
    for name, records in found.items():
        write(folder / f"{name}.in", records)
        write(folder / f"sort-{name}.in", drawn(records, sort_bytes, random))
    for name, density in DENSITIES.items():
        for node in range(NODES):
            write(folder / f"vector-{name}-{node}.in", [vector(dimensions, density, random)])
    (folder / "made").write_text(f"{scale_factor:g} {sort_bytes} {dimensions}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale-factor", type=float, default=0.01)
    parser.add_argument("--sort-bytes", type=int, default=8 << 20, help="of each input of the sort")
    parser.add_argument("--dimensions", type=int, default=100_000, help="of the sparse vectors")
    given = parser.parse_args()
    generate(given.folder, given.scale_factor, given.sort_bytes, given.dimensions)


if __name__ == "__main__":
    main()
