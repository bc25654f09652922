"""The format of DBMS X, and the verdicts on the paper's claims."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lab.systems import report
from lab.systems.changes import JUDGES, verdicts
from lab.systems.encoded import ROW_HEADER_BYTES, dbms_x_bytes
from lab.systems.figures import PAPER


def client(paper: str, seconds: float, carried: int = 100) -> dict:
    phases = {"connect_s": 1.0, "execute_s": 0.0, "transfer_s": seconds, "total_s": seconds + 1}
    return {
        "name": paper,
        "label": paper,
        "paper": paper,
        "in_figures": True,
        "congestion": "cubic",
        "failure": None,
        "timed_out": False,
        "carried_bytes": carried,
        "runs": [{"client": phases}],
    }


def results(clients: list[dict]) -> dict:
    race = {
        "system": "all",
        "system_title": "All",
        "table": "lineitem",
        "table_title": "lineitem",
        "rows": 1,
        "csv_bytes": 100,
        "network": "local",
        "network_title": "Local",
        "figure": "",
        "link": "",
        "rounds": 1,
        "timeout_s": 1.0,
        "load_average": 0.0,
        "clients": clients,
    }
    machine = {
        "date": "a day",
        "processor": "one",
        "cores": 1,
        "memory_bytes": 2**30,
        "kernel": "6",
        "scale_factor": 1.0,
        "load_average": 0.0,
        "versions": {},
        "command": "bench",
    }
    return {
        "machine": machine,
        "systems": {"all": {"title": "All", "versions": {}}},
        "absent": [],
        "encoded": {},
        "races": [race],
    }


def judged(found: dict) -> dict[str, tuple[float | None, bool | None]]:
    return {claim["id"]: (verdict.now, verdict.holds) for claim, verdict in verdicts(found)}


def test_every_claim_has_a_judge_and_is_open_without_numbers() -> None:
    assert {claim["id"] for claim in PAPER["claims"]} == set(JUDGES)
    assert all(now is None and holds is None for now, holds in judged(results([])).values())


def test_claims_are_judged_by_times_without_the_connection() -> None:
    found = results(
        [
            client("(Netcat)", 1.0),
            client("MySQL", 4.0),
            client("MySQL+C", 5.0),
            client("MonetDB++", 2.0),
            client("PostgreSQL", 20.0, 140),
            client("MongoDB", 30.0, 250),
        ]
    )
    verdict = judged(found)
    assert verdict["order-of-magnitude"] == (4.0, False)
    assert verdict["compression-local"] == (1.25, False)
    assert verdict["compression-wan"] == (None, None)
    assert verdict["columns-local"] == (2.0, False)
    assert verdict["columns-rivals"] == (2.0, False)
    assert verdict["postgres-bytes"] == (1.4, True)
    assert verdict["mongo-bytes"] == (2.5, False)


def test_a_report_names_failures_and_limits() -> None:
    late = client("DB2", 0.0) | {"runs": [], "failure": "did not finish", "timed_out": True}
    broken = client("Hive", 0.0) | {"runs": [], "failure": "no <server>"}
    text = report.html(results([client("(Netcat)", 1.0), late, broken]))
    assert ">T</td>" in text and ">failed</td>" in text
    assert "no &lt;server&gt;" in text and "<server>" not in text


def test_bytes_of_dbms_x(tmp_path: Path) -> None:
    # The paper's table 2: 100,000,000 is one digit with an exponent.
    table = pa.table({"a": pa.array([100_000_000, None], pa.int32()), "b": ["OK", "DPFKG"]})
    pq.write_table(table, tmp_path / "table.parquet")
    first, second = (1 + 2) + (1 + 2), 1 + (1 + 5)
    assert dbms_x_bytes(tmp_path / "table.parquet") == 2 * ROW_HEADER_BYTES + first + second
