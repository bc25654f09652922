"""Builds and runs the harnesses: with how many cores, how much memory, and a cold cache."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab.common.process import Failure, last_line

HERE = Path(__file__).resolve().parent
#: Languages as reports write them.
LANGUAGES = {"c++": "C++", "cpp": "C++", "java": "Java", "rust": "Rust"}
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")


@dataclass(frozen=True)
class Implementation:
    """One implementation of a harness, as `--list` describes it."""

    program: Path
    name: str
    language: str
    version: str
    validates: str
    objects: tuple[str, ...]
    phases: tuple[str, ...]
    #: Experiments of the harness that it has; all if empty.
    experiments: tuple[str, ...] = ()
    #: Parts where `--validate no` is possible, if validation is a step of its own; all if None.
    trusts: tuple[str, ...] | None = None
    note: str = ""

    @property
    def title(self) -> str:
        return f"{self.language} {self.name}"

    @property
    def folder(self) -> str:
        """The name of its folder of stored objects."""
        return f"{self.language}-{self.name}".replace("+", "p").lower()

    def validations(self, part: str) -> tuple[str, ...]:
        """The values of `--validate` that make a difference."""
        if self.validates != "apart":
            return ("no",)
        return ("no", "yes") if self.trusts is None or part in self.trusts else ("yes",)

    def has(self, experiment: str) -> bool:
        return not self.experiments or experiment in self.experiments

    def command(self, experiment: str, **options: object) -> list[str]:
        words = [str(self.program), "--experiment", experiment, "--implementation", self.name]
        return words + option_words(options)

    def run(self, experiment: str, setting: Setting, **options: object) -> dict:
        """Run an experiment in a process of its own and return what it prints."""
        return run(self.command(experiment, **options), setting)


@dataclass(frozen=True)
class Setting:
    """What a process may use."""

    #: Processors; all if 0.
    cores: int = 1
    #: Bytes of memory with the page cache, unlimited if 0.
    memory_bytes: int = 0
    timeout_s: float = 600.0
    environment: dict[str, str] = field(default_factory=dict)

    def prefix(self) -> list[str]:
        cores = min(self.cores, os.cpu_count() or 1)
        return ["taskset", "-c", f"0-{cores - 1}"] if cores else []


def option_words(options: dict[str, object]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def run(command: list[str], setting: Setting) -> dict:
    """Run a harness. Its last line is JSON."""
    with limited(setting.memory_bytes) as group:
        words = setting.prefix() + command
        if group is not None:
            words = ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh", *words]
        try:
            done = subprocess.run(
                words,
                capture_output=True,
                text=True,
                timeout=setting.timeout_s,
                env={**os.environ, **setting.environment},
                check=False,
            )
        except subprocess.TimeoutExpired as expired:
            raise Failure(f"took more than {setting.timeout_s:.0f} s") from expired
    return answer(done.returncode, done.stdout, done.stderr)


def answer(code: int, output: str, errors: str) -> dict:
    if code != 0:
        raise Failure(f"ended with code {code}: {first_line(errors or output)}")
    try:
        return json.loads(output.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise Failure(f"expected a line of JSON, found {last_line(output)}") from error


def first_line(text: str) -> str:
    """A stack trace begins with what happened."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")


@contextmanager
def limited(memory_bytes: int) -> Iterator[Path | None]:
    """A group of processes with a limit on memory, for one run."""
    if not memory_bytes:
        yield None
        return
    if not (MEMORY_GROUPS / "memory.limit_in_bytes").exists():
        raise Failure(f"no memory controller at {MEMORY_GROUPS}: mount cgroup v1's as root")
    group = MEMORY_GROUPS / f"dray-objects-{os.getpid()}"
    try:
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(memory_bytes))
    except OSError as error:
        raise Failure(f"cannot limit memory: {error}: run it as root") from error
    try:
        yield group
    finally:
        group.rmdir()


def evict(*paths: Path) -> None:
    """Remove files from the page cache, and only these: others use the machine, too."""
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def drop_caches() -> None:
    """Drop the whole page cache, as the thesis did."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def build(languages: list[str], target: Path) -> dict[str, Path]:
    """Build harnesses, and return their programs."""
    programs = {}
    for language in languages:
        if language == "cpp":
            folder = target / "cpp"
            call(["make", "-s", "-C", HERE / "cpp", f"BUILD={folder}"])
            programs[language] = folder / "objects"
        elif language == "java":
            call(["mvn", "-q", "-f", HERE / "java" / "pom.xml", "-DskipTests", "package"])
            programs[language] = HERE / "java" / "harness"
        elif language == "rust":
            manifest = HERE / "rust" / "Cargo.toml"
            options = ["--release", "--locked", "--target-dir", target]
            call(["cargo", "build", "-q", "--manifest-path", manifest, *options])
            programs[language] = target / "release" / "objects"
    return programs


def call(words: list[object]) -> None:
    try:
        subprocess.run([str(word) for word in words], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"cannot build: {error}") from error


def implementations(program: Path) -> list[Implementation]:
    """What a harness lists."""
    done = subprocess.run([program, "--list"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{program} --list ended with code {done.returncode}: {done.stderr}")
    found = []
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        found.append(
            Implementation(
                program,
                entry["implementation"],
                LANGUAGES.get(entry["language"].lower(), entry["language"]),
                entry["version"],
                entry["validates"],
                tuple(entry["objects"]),
                tuple(entry["phases"]),
                tuple(entry.get("experiments", ())),
                tuple(entry["trusts"]) if "trusts" in entry else None,
                entry.get("note", ""),
            )
        )
    return found
