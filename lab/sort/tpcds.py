"""Write the tables of TPC-DS that are sorted as Parquet.

    python -m lab.sort.tpcds SCALE_FACTOR FOLDER

Runs in the environment that has DuckDB's TPC-DS extension.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import duckdb_extension_tpcds

extension = next(Path(duckdb_extension_tpcds.__file__).parent.rglob("*.duckdb_extension"))
scale_factor, folder = float(sys.argv[1]), Path(sys.argv[2])
# The extension makes all tables at once, of which others are larger, so the database is on disk.
database = folder / "tpcds.duckdb"
database.unlink(missing_ok=True)
with duckdb.connect(str(database), config={"allow_unsigned_extensions": "true"}) as connection:
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"CALL dsdgen(sf = {scale_factor:g})")
    for table in ("catalog_sales", "customer"):
        partial = folder / f"{table}.partial"
        connection.execute(f"COPY {table} TO '{partial}' (FORMAT parquet)")
        partial.rename(folder / f"{table}.parquet")
database.unlink()
