"""Batches of results whose rows are large, or that fail."""

from __future__ import annotations

import pytest
from postgres_server import PostgresServer

import dray


def test_batches_end_at_their_bytes(postgres: PostgresServer, extension: bool) -> None:
    sql = "SELECT i, repeat('x', 100000) AS s FROM generate_series(1, 1000) i"
    with dray.connect(postgres.uri()) as connection:
        result = connection.query(sql, decoded_bytes_max=8 << 20, extension=extension)
        batches = list(result.batches())
        # Sizes are checked at least every 64 rows.
        assert max(batch.nbytes for batch in batches) < (8 << 20) + 64 * 100_100
        assert [i for batch in batches for i in batch["i"].to_pylist()] == list(range(1, 1001))
        # No row fits this limit, but rows are returned nevertheless.
        table = connection.query(
            "SELECT repeat('x', 5000) AS s", decoded_bytes_max=4096, extension=extension
        ).arrow()
        assert table["s"].to_pylist() == ["x" * 5000]


def test_reading_on_after_an_error_fails(postgres: PostgresServer, extension: bool) -> None:
    sql = "SELECT 1 / (70000 - i) AS a FROM generate_series(1, 100000) i"
    with dray.connect(postgres.uri()) as connection:
        batches = connection.query(sql, extension=extension).batches()
        with pytest.raises(dray.Error, match="division by zero"):
            list(batches)
        with pytest.raises(dray.UsageError, match="failed before"):
            next(batches)
        assert connection.query("SELECT 1 AS a", extension=extension).arrow()["a"].to_pylist() == [
            1
        ]
