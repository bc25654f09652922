"""What the ADBC validation suite has to know of Dray's driver on PostgreSQL."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from adbc_drivers_validation import model
from adbc_drivers_validation.tests.conftest import (  # noqa: F401
    conn,
    conn_factory,
    db_kwargs,
    manual_test,
    noci,
    pytest_addoption,
    pytest_collection_modifyitems,
)

sys.path.insert(0, str(Path(__file__).parent))
from dialect import write_overrides  # noqa: E402

OVERRIDES = Path(tempfile.mkdtemp(prefix="dray-suite-queries-"))
write_overrides(model.ROOT / "queries", OVERRIDES)


class Dray(model.DriverQuirks):
    name = "dray"
    driver = "adbc_driver_dray"
    driver_name = "Dray ADBC driver"
    vendor_name = "PostgreSQL"
    vendor_version = re.compile(r"\d+\.\d+.*")
    short_version = "postgresql"
    setup = model.DriverSetup(database={"uri": model.FromEnv("DRAY_URI")})
    features = model.DriverFeatures(
        connection_get_table_schema=True,
        connection_get_statistics=True,
        connection_set_current_schema=True,
        connection_transactions=True,
        get_objects=True,
        get_objects_constraints_check=True,
        get_objects_constraints_foreign=True,
        get_objects_constraints_primary=True,
        get_objects_constraints_unique=True,
        statement_bind=True,
        statement_bulk_ingest=True,
        statement_bulk_ingest_schema=True,
        statement_bulk_ingest_temporary=True,
        statement_execute_schema=True,
        statement_get_parameter_schema=True,
        statement_prepare=True,
        statement_rows_affected=True,
        quirk_foundry=False,
        current_catalog="postgres",
        current_schema="public",
        secondary_schema="second",
    )

    @property
    def queries_paths(self) -> tuple[Path]:
        return (OVERRIDES,)

    def bind_parameter(self, index: int) -> str:
        return f"${index}"

    def is_table_not_found(self, table_name: str | None, error: Exception) -> bool:
        return "does not exist" in str(error) and (table_name is None or table_name in str(error))

    def qualify_temp_table(self, cursor: object, name: str) -> str:
        return f"pg_temp.{self.quote_one_identifier(name)}"

    def drop_table(self, *, temporary: bool = False, **names: object) -> str:
        if temporary:
            names["schema_name"] = "pg_temp"
        return super().drop_table(**names)

    def split_statement(self, statement: str) -> list[str]:
        """A prepared statement of PostgreSQL is a single one."""
        without_comments = re.sub(r"--[^\n]*", "", statement)
        parts = re.findall(r"(?:'[^']*'|[^;'])+", without_comments)
        return [part for part in parts if part.strip()]

    @property
    def sample_ddl_constraints(self) -> list[str]:
        return [
            "CREATE TABLE constraint_primary (z INT, a INT, b VARCHAR, PRIMARY KEY (a))",
            "CREATE TABLE constraint_primary_multi (z INT, a INT, b VARCHAR, PRIMARY KEY (b, a))",
            "CREATE TABLE constraint_primary_multi2 (z INT, a VARCHAR, b INT, PRIMARY KEY (a, b))",
            "CREATE TABLE constraint_foreign (z INT, a INT, b INT, "
            "FOREIGN KEY (b) REFERENCES constraint_primary (a))",
            "CREATE TABLE constraint_foreign_multi (z INT, a INT, b INT, c VARCHAR, "
            "FOREIGN KEY (c, b) REFERENCES constraint_primary_multi2 (a, b))",
            "CREATE TABLE constraint_unique (z INT, a INT, b INT, c INT, "
            "UNIQUE (a), UNIQUE (c, b))",
            "CREATE TABLE constraint_check (z INT, a INT CHECK (a > 10), b INT, CHECK (a > b))",
        ]


QUIRKS = [Dray()]


@pytest.fixture(scope="session")
def driver(request: pytest.FixtureRequest) -> model.DriverQuirks:
    return QUIRKS[0]


@pytest.fixture(scope="session")
def driver_path() -> str:
    return os.environ["DRAY_DRIVER"]


def pytest_unconfigure() -> None:
    shutil.rmtree(OVERRIDES)
