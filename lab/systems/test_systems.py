"""The results of several machines, the format of DBMS X, and the verdicts on the paper's claims."""

import argparse
import html
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lab.common.process import Failure
from lab.systems import bench, document, hive_4, report
from lab.systems.catalog import ABSENT
from lab.systems.changes import JUDGES, sentences, verdicts
from lab.systems.client import lines, run
from lab.systems.encoded import ROW_HEADER_BYTES, dbms_x_bytes
from lab.systems.figures import PAPER
from lab.systems.results import load, place_of


MACHINE = {
    "processor": "one",
    "cores": 1,
    "memory_bytes": 2**30,
    "kernel": "6",
    "congestion_control_default": "cubic",
    "versions": {"python": "3"},
}


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


def race_of(clients: list[dict], **others: object) -> dict:
    return {
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
        "ended": "2026-11-27T12:00:00+00:00",
        "load_average": 0.0,
        "machine": 0,
        "clients": clients,
        **others,
    }


def results(clients: list[dict], *others: dict) -> dict:
    return {
        "machines": [MACHINE],
        "commands": ["bench"],
        "systems": {name: {"title": name.title(), "versions": {}} for name in ("all", "other")},
        "absent": [],
        "encoded": {},
        "races": [race_of(clients), *others],
    }


def html_of(found: dict) -> str:
    return document.html("Results", report.blocks(found))


def judged(found: dict) -> dict[str, list[tuple[str, float | None, bool | None, bool]]]:
    return {
        claim["id"]: [(one.where, round(one.now, 2), one.held, one.holds) for one in heard]
        for claim, heard in verdicts(found)
    }


def test_every_claim_has_a_judge_and_is_open_without_numbers() -> None:
    assert {claim["id"] for claim in PAPER["claims"]} == set(JUDGES)
    found = results([])
    assert not any(judged(found).values())
    text = html_of(found)
    assert all(f"<li>{html.escape(claim['text'])}" in text for claim in PAPER["claims"])


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
    here = "lineitem over loopback"
    assert verdict["order-of-magnitude"] == [(here, 4.0, True, False)]
    assert verdict["compression-local"] == [(here, 1.25, True, False)]
    assert verdict["compression-wan"] == []
    assert verdict["columns-local"] == [(here, 2.0, True, False)]
    # The paper's 98.8 s and 10.6 s are less than ten times.
    assert verdict["columns-rivals"] == [(here, 2.0, False, False)]
    assert verdict["postgres-bytes"] == [("lineitem", 1.4, True, True)]
    assert verdict["mongo-bytes"] == [("lineitem", 2.5, True, False)]
    assert verdict["db2-confirmations"] == []


def test_claims_are_judged_wherever_their_systems_ran() -> None:
    wan = race_of(
        [client("(Netcat)", 60.0), client("MySQL", 50.0), client("MySQL+C", 30.0)],
        table="pums",
        network="wan",
    )
    verdict = judged(results([], wan))
    where = "pums over the WAN"
    assert verdict["order-of-magnitude"] == [(where, 0.5, False, False)]
    assert verdict["compression-local"] == []
    # In the paper, 536.0 and 507.6 s.
    assert verdict["compression-wan"] == [(where, 0.6, False, True)]
    assert "holds now, did not then" in html_of(results([], wan))


def test_latency_is_judged_by_the_same_client_on_one_machine() -> None:
    def at(milliseconds: int, db2_s: float, machine: int = 0) -> dict:
        return race_of(
            [client("DB2", db2_s), client("MySQL", 5.0)],
            table="million",
            network=f"latency-{milliseconds}ms",
            figure="latency",
            x=float(milliseconds),
            machine=machine,
        )

    found = results([], at(1, 20.0), at(10, 60.0), at(100, 600.0, machine=1))
    found["machines"].append(MACHINE | {"kernel": "7"})
    assert judged(found)["db2-confirmations"] == [("figure 3, 10 ms ÷ 1 ms", 3.0, None, True)]


def test_each_system_has_a_sentence() -> None:
    late = client("Hive", 0.0) | {"runs": [], "failure": "too late", "timed_out": True}
    found = results(
        [client("(Netcat)", 1.0), client("DB2", 8.5), client("MongoDB", 67.0, 610)],
        race_of([client("DB2", 17.0), client("(Netcat)", 1.0)], network="lan"),
        race_of([late, client("MongoDB", 9.0, 400)], network="wan", table="pums"),
        race_of([late], network="wan"),
    )
    told, silent = sentences(found, "lineitem")
    assert told == [
        "DB2, by DB2 (All): 8.50 over loopback (17.0: 2.0 times closer); 17.0 over the LAN "
        "(9.65: 1.8 times farther); LAN ÷ loopback 2.00 (3.59); bytes ÷ CSV 1.00 (1.02).",
        "Hive: T over the WAN (T).",
        "MongoDB, by MongoDB (All): 67.0 over loopback (67.0: as then); bytes ÷ CSV 6.10 (6.06).",
    ]
    assert "MySQL" in silent and "DB2" not in silent
    assert sentences(found, "pums")[0] == [
        "Hive: T over the WAN (4.31).",
        "MongoDB: bytes ÷ CSV 4.00.",
    ]


def test_a_report_names_failures_and_limits() -> None:
    late = client("DB2", 0.0) | {"runs": [], "failure": "did not finish", "timed_out": True}
    broken = client("Hive", 0.0) | {"runs": [], "failure": "no <server>"}
    text = html_of(results([client("(Netcat)", 1.0), late, broken]))
    assert ">T</td>" in text and ">failed</td>" in text
    assert "no &lt;server&gt;" in text and "<server>" not in text


def test_reports_are_written_beside_the_results(tmp_path: Path) -> None:
    found = results(
        [
            client("(Netcat)", 1.0),
            client("MySQL", 4.0),
            client("Hive", 0.0) | {"runs": [], "failure": "a | b", "timed_out": True},
        ],
        race_of([client("MySQL", 8.0)], network="lan"),
        race_of([client("MySQL", 3.0)], table="million", network="a", figure="latency", x=10.0),
    )
    found["encoded"]["lineitem"] = 85
    report.write(tmp_path / "x", found)
    assert "<svg" in (tmp_path / "x.html").read_text()
    lines = (tmp_path / "x-tables.md").read_text().splitlines()
    assert lines[0] == "# Client protocols of databases, then and now"
    assert "from x.json: not to be edited." in lines[2]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    # Tables 1 and 10, figures 1 and 3: today's numbers, and the paper's beside them.
    assert ["MySQL (MySQL)", "4.00 ×4.00", "101.22 ×9.88", "0.0 ×1.00", "7.44 ×1.03"] in rows
    row = ["MySQL (MySQL)", "4.00 ×4.00", "98.8 ×10.1", "8.00", "108.9 ×1.76", "", "662.8 ×0.95"]
    assert [*row, "0.0 ×1.00", "7.44 ×1.03"] in rows
    assert ["All, MySQL", "1", "1.00", "0.00", "4.00", "5.00", "101.22 ×9.88"] in rows
    assert ["", "10 ms"] in rows and ["MySQL (MySQL)", "3.00"] in rows
    assert ["Hive (Hive)", "T", "657.1 ×67.1"] == [row for row in rows if "T" in row][1][:3]
    # What ran nowhere, DBMS X's bytes, and what could not run.
    assert ["DB2", "", "169.48 ×16.5", "", "7.33 ×1.02"] in rows
    encoded = ["DBMS X bytes of its format alone", "", "189.5 ×18.5", "0.0 ×0.85", "6.35 ×0.88"]
    assert encoded in rows
    assert ["All: Hive", "a \\| b", "lineitem local"] in rows
    assert [ABSENT[0][0], ABSENT[0][1], ""] in rows
    assert "bench" in lines


def test_bytes_of_dbms_x(tmp_path: Path) -> None:
    # The paper's table 2: 100,000,000 is one digit with an exponent.
    table = pa.table({"a": pa.array([100_000_000, None], pa.int32()), "b": ["OK", "DPFKG"]})
    pq.write_table(table, tmp_path / "table.parquet")
    first, second = (1 + 2) + (1 + 2), 1 + (1 + 5)
    assert dbms_x_bytes(tmp_path / "table.parquet") == 2 * ROW_HEADER_BYTES + first + second


def test_netcat_of_another_machine_is_no_measure() -> None:
    fast, slow = client("(Netcat)", 1.0), client("PostgreSQL", 30.0)
    found = results([fast], race_of([slow], system="other", system_title="Other", machine=1))
    found["machines"].append(MACHINE | {"processor": "another"})
    text = html_of(found)
    assert "30.00</td>" in text and "×30" not in text
    assert not judged(found)["order-of-magnitude"]
    # Other versions of packages do not make another machine.
    found["machines"][1] = MACHINE | {"versions": {"python": "4"}}
    assert "30.00 <small>×30.0</small></td>" in html_of(found)
    # What is unknown is like nothing.
    found["races"][1]["machine"] = None
    assert "×30" not in html_of(found) and "machine unknown" in html_of(found)


def test_a_report_shows_machines() -> None:
    text = html_of(results([client("(Netcat)", 1.0)]))
    assert "<td>1</td><td>one</td><td>1</td><td>1 GiB</td><td>6</td><td>python 3</td>" in text
    assert "<td class=system>machine 1</td>" in text


def test_a_machine_is_kept_once() -> None:
    found = results([])
    assert place_of(found, dict(MACHINE)) == 0
    assert place_of(found, MACHINE | {"kernel": "7"}) == 1
    assert place_of(found, MACHINE | {"kernel": "7"}) == 1
    assert len(found["machines"]) == 2


def test_an_older_file_tells_the_machine_of_its_last_run(tmp_path: Path) -> None:
    last = MACHINE | {"date": "2026-11-27T11:00:00+00:00", "command": "first\nlast"}
    races = [race_of([], ended="2026-11-27T10:00:00+00:00"), race_of([])]
    for race in races:
        del race["machine"]
    old = {"machine": last, "systems": {}, "absent": [["x", "y"]], "encoded": {}, "races": races}
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    found = load(path)
    assert found["machines"] == [MACHINE] and found["commands"] == ["first", "last"]
    assert [race["machine"] for race in found["races"]] == [None, 0]
    path.write_text(json.dumps(found))
    assert load(path) == found


def given_for(tmp_path: Path, **others: object) -> argparse.Namespace:
    chosen = {"add": True, "tables": ["lineitem"], "networks": ["local"], "scale_factor": 1.0}
    return argparse.Namespace(output=tmp_path / "systems", **(chosen | others))


def test_a_run_adds_to_earlier_ones(tmp_path: Path) -> None:
    title = "TPC-H lineitem, scale factor 1"
    races = [race_of([], system=system, table_title=title) for system in ("netcat", "derby")]
    earlier = results([]) | {"races": races, "absent": [["netcat, lineitem", "no nc"], ["x", "y"]]}
    (tmp_path / "systems.json").write_text(json.dumps(earlier))
    (netcat,) = (system for system in bench.SYSTEMS if system.name == "netcat")
    found = bench.begin(given_for(tmp_path), [netcat])
    assert [race["system"] for race in found["races"]] == ["derby"]
    assert found["machines"] == [MACHINE] and len(found["commands"]) == 2
    assert found["absent"] == [["x", "y"]]
    with pytest.raises(Failure, match="scale factor 10: choose another --output"):
        bench.begin(given_for(tmp_path, scale_factor=10.0), [netcat])


def test_a_table_larger_than_the_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    usage = shutil.disk_usage(tmp_path)._replace(free=25_000_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _path: usage)
    bench.check_space(given_for(tmp_path))
    large = given_for(tmp_path, scale_factor=10.0)
    with pytest.raises(Failure, match="scale factor 10 needs about 30.0 GB in .* has 25.0 GB free"):
        bench.check_space(large)
    bench.check_space(given_for(tmp_path, scale_factor=10.0, tables=["pums"]))
    # Files that exist need no more space.
    folder = tmp_path / "cache" / "dray" / "lab" / "sf10"
    folder.mkdir(parents=True)
    for form in ("csv", "parquet"):
        (folder / f"lineitem.{form}").touch()
    bench.check_space(large)


def test_rows_of_a_program_count_if_it_ends_well() -> None:
    took = lines("sh", "-c", "seq 3")
    assert (took.rows, took.connect_s, took.total_s) == (3, None, took.transfer_s)
    assert run("sh", "-c", "seq 3").rows is None
    with pytest.raises(SystemExit, match="code 3"):
        lines("sh", "-c", "seq 3; exit 3")


def test_a_table_of_hive_has_the_types_of_its_file(tmp_path: Path) -> None:
    columns = {
        "n": pa.int64(),
        "price": pa.decimal128(15, 2),
        "text": pa.string_view(),
        "day": pa.date32(),
    }
    pq.write_table(pa.schema(columns).empty_table(), tmp_path / "t.parquet")
    assert hive_4.ddl("t", tmp_path / "t.parquet", Path("/t")) == (
        "CREATE EXTERNAL TABLE t (`n` bigint, `price` decimal(15,2), `text` string, `day` date) "
        "STORED AS PARQUET LOCATION '/t'"
    )
