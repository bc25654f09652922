"""`dray adbc`: drivers that managers find by name and by uri."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from adbc_client import library
from server import Server, binary

READ = """
import sys
from adbc_driver_manager import dbapi
for driver, uri in zip(sys.argv[1::2], sys.argv[2::2]):
    with dbapi.connect(driver, uri or None, autocommit=True) as connection:
        with connection.cursor() as cursor:
            assert cursor.execute("SELECT 1").fetchone() == (1,)
"""


def run(*arguments: str, home: Path) -> str:
    environment = {**os.environ, "HOME": str(home), "VIRTUAL_ENV": str(home / "venv")}
    environment.pop("XDG_CONFIG_HOME", None)
    done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_managers_find_what_was_installed(server: Server, tmp_path: Path) -> None:
    said = run(str(binary()), "adbc", "install", home=tmp_path)
    folder = tmp_path / ".config" / "adbc" / "drivers"
    assert str(folder) in said and str(library().resolve()) in said
    assert {path.name for path in folder.iterdir()} == {
        "dray.toml",
        "drays.toml",
        "dray+unix.toml",
    }
    places = ["dray", server.unix, server.unix, "", f"dray:{server.unix}", ""]
    run(sys.executable, "-c", READ, *places, home=tmp_path)


def test_install_for_a_virtual_environment(tmp_path: Path) -> None:
    run(str(binary()), "adbc", "install", "--venv", home=tmp_path)
    assert (tmp_path / "venv" / "etc" / "adbc" / "drivers" / "dray.toml").exists()


def test_check(tmp_path: Path) -> None:
    assert "works as an ADBC 1.1 driver" in run(str(binary()), "adbc", "check", home=tmp_path)
