"""Several Dray servers over the same files, which read the parts of each other's plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import failure, load, partitions
from relay_server import Relay, relay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 4
ROWS = 40_000


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Relay, Relay]]:
    data = tmp_path / "data"
    data.mkdir()
    of_file = ROWS // FILES
    for i in range(FILES):
        table = pa.table({"id": range(i * of_file, (i + 1) * of_file)})
        pq.write_table(table, data / f"{i}.parquet")
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef0123456789abcdef")
    arguments = (f"t={data}", "--plan-secret", str(secret))
    with relay(*arguments) as first, relay(*arguments) as second:
        yield first, second


def test_parts_come_from_all_servers(spark: SparkSession, both: tuple[Relay, Relay]) -> None:
    first, second = both
    given = {"dbtable": "t", "servers": f"{first.address}, {second.address}"}
    frame = load(spark, first.uri(), numPartitions=FILES, **given).select("id")
    assert partitions(frame) == FILES
    assert second.counter("statements_total") == 0
    assert sorted(row.id for row in frame.collect()) == list(range(ROWS))
    second.wait_for("statements_total", FILES // 2)
    assert second.counter("statements_total") == FILES // 2
    # Its parts are read by the other one.
    second.stop()
    assert sorted(row.id for row in frame.collect()) == list(range(ROWS))


def test_a_server_without_the_secret(
    spark: SparkSession, both: tuple[Relay, Relay], tmp_path: Path
) -> None:
    first, _ = both
    with relay(f"t={tmp_path / 'data'}") as other:
        given = {"dbtable": "t", "servers": other.address, "numPartitions": FILES}
        assert "another run" in failure(load(spark, first.uri(), **given).collect)
