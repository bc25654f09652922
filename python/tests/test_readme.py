"""The examples of the README files run as they are written."""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from server import Server, binary

import dray

ROOT = Path(__file__).parents[2]
READMES = [ROOT / "README.md", ROOT / "python" / "README.md"]
SOCKET = "/tmp/dray.sock"


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("tpch"), "--tpch", "0.01")
    yield server
    server.stop()


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)


def placed(text: str, server: Server) -> str:
    """The text with the address of this test's server."""
    return text.replace(f"dray+unix://{SOCKET}", server.unix).replace(
        "dray://localhost", f"dray://{server.address}"
    )


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python(path: Path, tpch: Server, tmp_path: Path) -> None:
    blocks = [block for block in python_blocks(path) if "postgresql://" not in block]
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-c", placed(block, tpch)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_are_defined(path: Path) -> None:
    for block in python_blocks(path):
        names = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Name)]
        defined = {name.id for name in names if isinstance(name.ctx, ast.Store)} | set(
            dir(builtins)
        )
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                defined |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                defined.add(node.name)
        assert {name.id for name in names if isinstance(name.ctx, ast.Load)} <= defined, block


def test_commands(tpch: Server, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    commands = re.findall(
        r"^    (dray (?:query|export|explain|sort) .*)$",
        text.split("## From PostgreSQL")[0],
        re.MULTILINE,
    )
    assert len(commands) >= 4
    for command in commands:
        script = f"dray() {{ '{binary()}' \"$@\"; }}; {placed(command, tpch)}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (script, done.stderr)


def test_version() -> None:
    done = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["dray", dray.__version__]
