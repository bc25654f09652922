"""The laboratory's programs: modules of the package `lab`, started by `python -m` in the root of
the checkout.
"""

from __future__ import annotations

import shlex
import sys


def program_name() -> str:
    """How a user starts this program."""
    spec = sys.modules["__main__"].__spec__
    module = "" if spec is None else spec.name.removesuffix(".__main__")
    return f"python -m {module}"


def command_line() -> str:
    """This program with its arguments, for a report."""
    return shlex.join([*program_name().split(), *sys.argv[1:]])


def python(module: str, *arguments: object) -> list[str]:
    """The command line of a module, for a child process in the same folder."""
    return [sys.executable, "-m", module, *map(str, arguments)]
