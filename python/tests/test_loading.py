"""Libraries that are loaded by a thread that ends before others use them, as in pools."""

from __future__ import annotations

import subprocess
import sys

import pytest
from adbc_client import library

PACKAGE = """
import dray
def use():
    with contextlib.suppress(dray.ConnectionError):
        dray.connect("dray://127.0.0.1:1")
"""
DRIVER = f"""
import adbc_driver_manager as manager
def use():
    options = {{"driver": {str(library())!r}, "entrypoint": "AdbcDriverDrayInit"}}
    with contextlib.suppress(manager.Error):
        manager.AdbcConnection(manager.AdbcDatabase(uri="dray://127.0.0.1:1", **options))
"""
THREADS = """
def run(target):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
"""


@pytest.mark.parametrize("use", [PACKAGE, DRIVER], ids=["package", "driver"])
def test_the_thread_that_loaded_it_has_ended(use: str) -> None:
    text = f"""
import contextlib, threading
{THREADS}
def load():
    global use
    exec({use!r}, globals())
    use()
run(load)
for _ in range(4):
    run(use)
print("ended", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    # A crash has a negative code: the signal's.
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
