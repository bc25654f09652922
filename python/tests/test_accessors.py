"""Code that `dray accessors` generates from a page file."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

import dray

BINARY = os.environ["DRAY_BINARY"]


def accessors(*arguments: object, code: int = 0) -> str:
    """What the program prints; on failure what it prints as its error."""
    command = [BINARY, "accessors", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    return ran.stderr if code else ran.stdout


def customers() -> pa.Table:
    fields = [("date", pa.date32()), ("str", pa.string()), ("int", pa.int32())]
    item = pa.field("item", pa.struct(fields), nullable=False)
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("date", pa.date32()),
            ("class", pa.string()),
            ("first name", pa.string()),
            pa.field("items", pa.list_(item), nullable=False),
            ("pairs", pa.map_(pa.string(), pa.int16())),
        ]
    )
    columns = [
        [1, 2],
        [3, None],
        ["a", "b"],
        ["Ann", "Bob"],
        [[{"date": 1, "str": "x", "int": 2}], []],
        [[("k", 1)], None],
    ]
    return pa.table(columns, schema=schema)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    dray.write_pages(tmp_path / "customers.pages", customers(), key="id")
    return tmp_path / "customers.pages"


def generated(path: Path, *options: str) -> tuple[ModuleType, Path]:
    source = Path(accessors(path, "--language", "python", "-o", path.parent, *options).strip())
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, source


def test_a_module_for_python(path: Path):
    module, source = generated(path, "--name", "Customer")
    assert source == path.parent / "customers.py"
    file = module.CustomerFile(path)
    assert [*file] == customers().to_pylist() and len(file) == 2
    assert file[0].items[0].str == "x"
    [found] = file.find(2)
    assert found["first name"] == "Bob"


def test_type_checkers_know_the_fields(path: Path, tmp_path: Path):
    _, source = generated(path, "--name", "Customer")
    (tmp_path / "use.py").write_text(
        "from customers import CustomerFile\n"
        "file = CustomerFile('x')\n"
        "reveal_type(file[0].items[0].str)\n"
        "reveal_type(file.find(1)[0].date)\n"
        "reveal_type(file[0].pairs)\n"
        "file[0].price\n"
    )
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", source.name, "use.py"]
    ran = subprocess.run(
        mypy,
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(Path(dray.__file__).parent.parent)},
        capture_output=True,
        text=True,
    )
    revealed = [line.split('"')[1] for line in ran.stdout.splitlines() if "Revealed" in line]
    pairs = "list[tuple[str, int | None]] | None"
    assert revealed == ["str | None", "datetime.date | None", pairs], ran.stdout
    errors = [line for line in ran.stdout.splitlines() if "error:" in line]
    assert len(errors) == 1 and '"Customer" has no attribute "price"' in errors[0], ran.stdout


def test_another_schema_is_refused(path: Path, tmp_path: Path):
    module, _ = generated(path)
    dray.write_pages(tmp_path / "other.pages", customers().drop_columns("class"))
    with pytest.raises(dray.UsageError, match=r"other\.pages has another schema.*dray accessors"):
        module.CustomersFile(tmp_path / "other.pages")


@pytest.mark.parametrize("language", ["c++", "java", "rust"])
def test_other_languages(path: Path, tmp_path: Path, language: str):
    """Their code is compiled and run by tests of their own."""
    options = ("--language", language, "--namespace", "shop.data", "-o", tmp_path / "new" / "src")
    written = [Path(line) for line in accessors(path, *options).splitlines()]
    assert written and all(path.stat().st_size > 100 for path in written)
    again = accessors(path, *options)
    assert [*map(Path, again.splitlines())] == written, "files are replaced"


def test_what_is_refused(path: Path, tmp_path: Path):
    assert "possible values: " in accessors(path, "--language", "cobol", code=2)
    assert "no digit first" in accessors(path, "-l", "java", "--name", "1st", code=2)
    assert "letters" in accessors(path, "-l", "java", "--namespace", "a..b", code=2)
    (tmp_path / "x.csv").write_text("1,2\n")
    assert "not a page file" in accessors(tmp_path / "x.csv", "-l", "java", code=2)
    (tmp_path / "file").touch()
    assert "can't write" in accessors(path, "-l", "rust", "-o", tmp_path / "file", code=4)
