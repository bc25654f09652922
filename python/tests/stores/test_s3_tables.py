"""Tables of an object store: every kind of file, names, versions and failures."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from server import Server, binary
from store_servers import BUCKET, S3, Serve

import dray


def rows(count: int = 1000) -> pa.Table:
    ids = pa.array(range(count), pa.int64())
    return pa.table({"id": ids, "name": [f"name {i % 7}" for i in range(count)]})


def parquet(table: pa.Table, **options: int) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(table, out, **options)
    return out.getvalue()


def lines(table: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


def csv(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pyarrow.csv.write_csv(table, out)
    return out.getvalue()


def arrow(table: pa.Table, *, stream: bool) -> bytes:
    out = io.BytesIO()
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    with make(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    return out.getvalue()


def query(server: Server, sql: str) -> list[tuple[object, ...]]:
    with dray.connect(server.unix) as connection:
        table = connection.query(sql).to_arrow()
    return [tuple(row.values()) for row in table.to_pylist()]


def refused(s3: S3, *arguments: str, **changes: str | None) -> str:
    """What a server says that does not start."""
    done = subprocess.run(
        [binary(), "serve", "--listen", "tcp://127.0.0.1:0", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=s3.environment(**changes),
    )
    assert done.returncode == 2, done.stderr
    assert "hidden" not in done.stdout + done.stderr
    return done.stderr


def test_a_folder_of_parquet(s3: S3, serve: Serve) -> None:
    for i in range(3):
        s3.put(f"orders/part{i}.parquet", parquet(rows().slice(i * 300, 300)))
    server = serve(f"s3://{BUCKET}/orders/", f"all=s3://{BUCKET}/orders")
    assert query(server, 'SELECT count(*), sum(id) FROM "all"') == [(900, 900 * 899 // 2)]
    assert query(server, "SELECT min(id), max(id) FROM part1") == [(300, 599)]


@pytest.mark.parametrize("in_memory", [False, True])
def test_every_kind_of_file(s3: S3, serve: Serve, tmp_path: Path, in_memory: bool) -> None:
    table = rows()
    files = {
        "pq.parquet": parquet(table),
        "text.csv": csv(table),
        "zipped.csv.gz": gzip.compress(csv(table)),
        "lines.json": lines(table),
        "whole.json": json.dumps(table.to_pylist()).encode(),
        "file.arrow": arrow(table, stream=False),
        "stream.arrows": arrow(table, stream=True),
        "sub/a.csv": csv(table.slice(0, 500)),
        "sub/b.csv": csv(table.slice(500)),
        "notes.txt": b"no table",
        "empty.parquet": b"",
        "_hidden.csv": b"x",
        "sub/.hidden/c.csv": b"x",
    }
    local = tmp_path / "kinds"
    for name, body in files.items():
        s3.put(f"kinds/{name}", body)
        (local / name).parent.mkdir(parents=True, exist_ok=True)
        (local / name).write_bytes(body)
    # What some tools put into the place of a folder.
    s3.put("kinds/marked.csv/", b"")
    more = ["--in-memory"] if in_memory else []
    stored, here = serve(f"s3://{BUCKET}/kinds", *more), serve(str(local), *more)
    # The same tables, columns and numbers of rows as from a local folder.
    listing = "SELECT table_name, rows, bytes, files, columns FROM dray.tables"
    assert query(stored, listing) == query(here, listing)
    names = [name for (name,) in query(stored, "SELECT table_name FROM dray.tables")]
    assert sorted(names) == [
        "file", "lines", "pq", "stream", "sub", "text", "whole", "zipped"
    ]  # fmt: skip
    for name in names:
        sql = f"SELECT id, name FROM {name} WHERE id % 3 = 0 ORDER BY id"
        assert query(stored, sql) == query(here, sql), name


def test_pages_of_a_listing_and_odd_keys(s3: S3, serve: Serve) -> None:
    body = parquet(rows(10))
    keys = [f"many/{i:04}.txt" for i in range(1500)]
    data = ["many/0500 é [x]+&%41=.parquet", "many/z last.parquet"]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: s3.put(key, b"-"), keys))
    for key in data:
        s3.put(key, body)
    # What consoles make for an empty folder.
    s3.put("many/", b"")
    server = serve(f"many=s3://{BUCKET}/many")
    assert query(server, "SELECT count(*) FROM many") == [(20,)]
    one = serve(f"one=s3://{BUCKET}/many/z%20last.parquet")
    assert query(one, "SELECT count(*) FROM one") == [(10,)]


def test_only_the_needed_ranges_are_read(s3: S3, serve: Serve) -> None:
    wide = pa.table({f"c{i}": pa.array(range(i, 200_000 + i)) for i in range(20)})
    body = parquet(wide, row_group_size=20_000)
    s3.put("wide.parquet", body)
    server = serve(f"s3://{BUCKET}/wide.parquet")
    before = len(s3.requests())
    assert query(server, "SELECT max(c3) FROM wide WHERE c3 < 10") == [(9,)]
    asked = [each for each in s3.requests()[before:] if each.startswith("GET /lake/wide")]
    assert 1 <= len(asked) <= 3 and all(each.endswith(" 206") for each in asked), asked


def test_a_replaced_object_is_an_error(s3: S3, serve: Serve) -> None:
    same_size = [csv(pa.table({"a": [1, 2, 3]})), csv(pa.table({"a": [4, 5, 6]}))]
    for kind, first, second in (
        ("csv", *same_size),
        ("parquet", parquet(rows(500)), parquet(rows(500).slice(1))),
        ("arrow", arrow(rows(9), stream=False), arrow(rows(8), stream=False)),
    ):
        s3.put(f"changed.{kind}", first)
        server = serve(f"s3://{BUCKET}/changed.{kind}")
        whole = query(server, "SELECT * FROM changed")
        s3.put(f"changed.{kind}", second)
        for sql in ("SELECT * FROM changed", "SELECT count(*) FROM changed"):
            with pytest.raises(dray.Error, match="was replaced by another one after its table"):
                query(server, sql)
        s3.put(f"changed.{kind}", first)
        assert query(server, "SELECT * FROM changed") == whole
        s3.client.delete_object(Bucket=BUCKET, Key=f"changed.{kind}")
        with pytest.raises(dray.Error, match="was removed or renamed"):
            query(server, "SELECT * FROM changed")


def test_a_replaced_object_among_many(s3: S3, serve: Serve) -> None:
    """Many objects are checked by a listing."""
    for i in range(12):
        s3.put(f"dozen/{i:02}.parquet", parquet(rows(10)))
    server = serve(f"dozen=s3://{BUCKET}/dozen")
    assert query(server, "SELECT count(*) FROM dozen") == [(120,)]
    s3.put("dozen/07.parquet", parquet(rows(11)))
    # A count needs no file, but it is not that of the new ones.
    for sql in ("SELECT count(*) FROM dozen", "SELECT max(id) FROM dozen"):
        with pytest.raises(dray.Error, match="dozen/07.parquet' was replaced"):
            query(server, sql)
    s3.client.delete_object(Bucket=BUCKET, Key="dozen/07.parquet")
    with pytest.raises(dray.Error, match="dozen/07.parquet' was removed"):
        query(server, "SELECT min(id) FROM dozen")


def test_a_store_that_stops_answering(own_s3: S3, serve: Serve) -> None:
    """An error and no short result, in the middle of a file."""
    body = b"id,text\n" + b"".join(b"%d,%s\n" % (i, b"x" * 100) for i in range(400_000))
    own_s3.put("long.csv", body)
    server = serve(f"s3://{BUCKET}/long.csv", environment=own_s3.environment())
    with dray.connect(server.unix) as connection:
        result = connection.query("SELECT * FROM long")
        batches = result.batches()
        received = next(batches).num_rows
        own_s3.stop()
        with pytest.raises(dray.Error, match="'long/long.csv' can't be read: .*can't be reached"):
            for batch in batches:
                received += batch.num_rows
        assert 0 < received < 400_000


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"s3://{BUCKET}/nothing.parquet", "no file or folder 's3://lake/nothing.parquet'"),
        ("s3://absent/x.parquet", "no such bucket"),
        ("s3://absent/", "no such bucket"),
        (f"s3://{BUCKET}/only.pages", "none of the known endings"),
        (f"s3://me:hidden@{BUCKET}/x", "credentials are read from the environment"),
        (f"s3://{BUCKET}/x.csv?token=hidden", "credentials are read from the environment"),
        ("ftp://host/x.csv", "expected s3://"),
        (f"s3://{BUCKET}/broken.parquet", "Parquet"),
    ],
)
def test_what_can_not_be_served(s3: S3, path: str, expected: str) -> None:
    s3.put("only.pages", b"DRYF")
    s3.put("broken.parquet", b"PAR1 no footer PAR1")
    assert expected in refused(s3, path)


def test_wrong_and_missing_credentials(s3: S3, tmp_path: Path) -> None:
    s3.put("guarded.csv", b"a\n1\n")
    table = f"s3://{BUCKET}/guarded.csv"
    missing = refused(s3, table, AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None)
    assert "no credentials: set AWS_ACCESS_KEY_ID" in missing
    assert "AWS_PROFILE has no aws_access_key_id" in refused(
        s3, table, AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None, AWS_PROFILE="other"
    )
    s3.check_access_from_now_on(True)
    try:
        denied = refused(s3, table)
        assert "denies access (403" in denied and "AWS_ACCESS_KEY_ID" in denied
    finally:
        s3.check_access_from_now_on(False)
    # Nothing listens there.
    unreachable = refused(s3, table, AWS_ENDPOINT_URL="http://127.0.0.1:1")
    assert "can't be reached" in unreachable and "refused" in unreachable


def test_credentials_of_a_profile(s3: S3, serve: Serve, tmp_path: Path) -> None:
    s3.put("profile.csv", b"a\n1\n")
    keys = "aws_access_key_id = reader\naws_secret_access_key = hidden\n"
    (tmp_path / "credentials").write_text(f"[work]\n{keys}[wrong]\n{keys}")
    (tmp_path / "config").write_text(
        f"[profile work]\nendpoint_url = {s3.url}\n"
        "[profile wrong]\nendpoint_url = http://127.0.0.1:1\n"
    )
    files = {
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
    }
    missing = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_ENDPOINT_URL": None}
    # Variables win.
    for chosen in (
        {"AWS_PROFILE": "work"},
        {"AWS_PROFILE": "wrong", "AWS_ENDPOINT": s3.url},
        {"AWS_PROFILE": "wrong", "AWS_ENDPOINT_URL": s3.url},
    ):
        environment = s3.environment(**{**files, **missing, **chosen})
        server = serve(f"s3://{BUCKET}/profile.csv", environment=environment)
        assert query(server, "SELECT a FROM profile") == [(1,)]


@pytest.mark.parametrize("compression", [None, "lz4"])
@pytest.mark.parametrize("stream", [False, True])
def test_large_record_batches_wait_for_memory(
    s3: S3, serve: Serve, tmp_path: Path, compression: str | None, stream: bool
) -> None:
    """A batch is read as a whole. What the store sends is in memory twice."""
    table = pa.table({"id": pa.array(range(2_000_000), pa.int64())})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    path = tmp_path / "large.arrow"
    with make(path, table.schema, options=options) as writer:
        writer.write_table(table)
    s3.put("large.arrow", path.read_bytes())
    size = path.stat().st_size + (table.nbytes if compression else 0)
    # Three quarters are for reading.
    memory = ["--memory", str(size * 3 // 2)]
    assert query(serve(str(path), *memory), "SELECT max(id) FROM large") == [(1_999_999,)]
    stored = serve(f"s3://{BUCKET}/large.arrow", *memory)
    with dray.connect(stored.unix) as connection, pytest.raises(dray.Error) as refused:
        connection.query("SELECT max(id) FROM large").to_arrow()
    assert refused.value.sqlstate == "53200"
    assert "record batches need" in str(refused.value)
    stored = serve(f"s3://{BUCKET}/large.arrow", "--memory", str(size * 4))
    assert query(stored, "SELECT max(id) FROM large") == [(1_999_999,)]
