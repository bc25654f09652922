"""The laboratory's programs: modules of the package `lab`, started by `python -m` in the root of
the checkout.
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import sys
from pathlib import Path

from lab.common.process import Failure
from lab.data.table import cache_folder

#: Folder of the headers that programs in C share.
HEADERS = Path(__file__).resolve().parent


def program_name() -> str:
    """How a user starts this program."""
    spec = sys.modules["__main__"].__spec__
    module = "" if spec is None else spec.name.removesuffix(".__main__")
    return f"python -m {module}"


def command_line() -> str:
    """This program with its arguments, for a report: absolute paths by their last parts."""
    arguments = (Path(it).name if it.startswith("/") else it for it in sys.argv[1:])
    return shlex.join([*program_name().split(), *arguments])


def python(module: str, *arguments: object) -> list[str]:
    """The command line of a module, for a child process in the same folder."""
    return [sys.executable, "-m", module, *map(str, arguments)]


def compiled(source: Path, *flags: str) -> Path:
    """Compile a program in C of the laboratory, once for each version of it, and return its path.

    Raises
    ------
    Failure
        If it cannot be compiled, for instance because a library is missing.
    """
    texts = [source.read_bytes(), *(file.read_bytes() for file in HEADERS.glob("*.h"))]
    version = hashlib.sha256(b"".join(texts) + repr(flags).encode()).hexdigest()[:16]
    program = cache_folder() / "programs" / f"{source.stem}-{version}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        words = ["cc", "-O2", "-Wall", str(source), "-I", str(HEADERS), "-o", str(program), *flags]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"cannot compile {source.name}: {done.stderr.splitlines()[0]}")
    return program


def output_of(*command: str) -> str:
    """The output of a program that tells how something is installed, such as `mariadb_config`."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"cannot run {command[0]}: {error}") from error
