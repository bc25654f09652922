"""Judges all vectors of pages and page files with the C++ headers."""

import json
import os
import subprocess
from pathlib import Path

import pytest

VECTORS = Path(__file__).resolve().parent.parent.parent / "spec/vectors"
JUDGE = Path(os.environ["DRAY_CPP_TESTS"]) / "judge"


def paths(folder: str) -> list[str]:
    found = (VECTORS / folder).iterdir()
    return sorted(str(path) for path in found if path.suffix in (".page", ".pages"))


@pytest.fixture(scope="module")
def judged() -> dict[str, dict]:
    every = paths("accept") + paths("reject")
    lines = subprocess.run([JUDGE, *every], check=True, capture_output=True).stdout.splitlines()
    assert len(lines) == len(every)
    return {words["path"]: words for words in map(json.loads, lines)}


@pytest.mark.parametrize("path", paths("accept"))
def test_accepts(path: str, judged: dict[str, dict]):
    expected = json.loads(Path(path + ".json").read_text())
    found = judged[path]
    assert "refused" not in found, found
    members = ("pages", "key") if path.endswith(".pages") else ("sequence", "rows")
    assert {name: found[name] for name in members} == {name: expected[name] for name in members}


@pytest.mark.parametrize("path", paths("reject"))
def test_refuses(path: str, judged: dict[str, dict]):
    assert judged[path].get("refused") == Path(path).name.split("-")[0].split(".")[0], judged[path]
