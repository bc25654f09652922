"""Runs a sorting client, measures its processes, and kills them at a memory limit."""

from __future__ import annotations

import json
import mmap
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.common.process import Failure, last_line, reset_peak

#: Interval between two samples of memory.
SAMPLE_S = 0.005
#: Samples between two searches for new processes and measurements of the spill folder.
SEARCH_EVERY = 10
MESSAGE_CHARACTERS = 300
#: From linux/mman.h; Python has no name for it.
MADV_POPULATE_WRITE = 23


@dataclass
class Run:
    """The measurements of one sort, summed over all processes of the client."""

    seconds: float
    rows: int | None
    cpu_s: float
    #: Anonymous memory at the start of the clock, its peak, and the peak of all resident memory
    #: including pages of files.
    anonymous_before_bytes: int
    anonymous_peak_bytes: int
    resident_peak_bytes: int
    #: Bytes written to the file system, without the file of the sorted rows.
    spilled_bytes: int
    #: Largest size of the spill folder. Unlinked files do not count.
    spill_folder_bytes: int

    @property
    def growth_bytes(self) -> int:
        return max(0, self.anonymous_peak_bytes - self.anonymous_before_bytes)


class Watch:
    """Runs a client. See `client.py` for the protocol.

    Parameters
    ----------
    command, environment, processors
        The client's command line, additional environment, and processors.
    spill, log : Path
        The client's spill folder, which is removed with it, and the file of its error output.
    touched_bytes : int
        Free memory to touch before the clock starts.
    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        processors: set[int],
        spill: Path,
        log: Path,
        touched_bytes: int,
    ) -> None:
        self.touched_bytes = touched_bytes
        self.spill = spill
        self.log = log
        with log.open("wb") as errors:
            self.client = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **environment},
                preexec_fn=lambda: os.sched_setaffinity(0, processors),
                start_new_session=True,
            )
        self.pids = [self.client.pid]
        self.looks = 0
        self.folder_bytes = 0

    def run(self, limit_bytes: int, timeout_s: float, output: Path) -> Run:
        """Sort once, with a limit of anonymous memory above that at the start of the clock.

        Raises
        ------
        Failure
            If the client fails, times out, or exceeds the limit.
        """
        try:
            self.await_line(timeout_s, None)
            touch(self.touched_bytes)
            self.search()
            for pid in self.pids:
                reset_peak(pid)
            before, _ = self.memory()
            written, cpu_s = self.total(written_bytes), self.total(used_s)
            self.client.stdin.write(b"go\n")
            self.client.stdin.flush()
            line, anonymous, resident = self.await_line(timeout_s, before + limit_bytes)
            self.search()
            last_anonymous, last_resident = self.memory()
            own_peak = status(self.client.pid)["VmHWM"] if len(self.pids) == 1 else 0
            output_bytes = output.stat().st_size if output.exists() else 0
            return Run(
                **json.loads(line),
                cpu_s=self.total(used_s) - cpu_s,
                anonymous_before_bytes=before,
                anonymous_peak_bytes=max(anonymous, last_anonymous),
                resident_peak_bytes=max(resident, last_resident, own_peak),
                spilled_bytes=max(0, int(self.total(written_bytes) - written) - output_bytes),
                spill_folder_bytes=self.folder_bytes,
            )
        finally:
            self.stop()

    def await_line(self, timeout_s: float, limit_bytes: int | None) -> tuple[str, int, int]:
        """The client's next line, and the peaks of anonymous and resident memory until then."""
        deadline = time.monotonic() + timeout_s
        anonymous_peak = resident_peak = 0
        while not select.select([self.client.stdout], [], [], SAMPLE_S)[0]:
            self.looks += 1
            if self.looks % SEARCH_EVERY == 0:
                self.search()
                self.folder_bytes = max(self.folder_bytes, folder_bytes(self.spill))
            anonymous, resident = self.memory()
            anonymous_peak, resident_peak = (
                max(anonymous_peak, anonymous),
                max(resident_peak, resident),
            )
            if limit_bytes is not None and anonymous > limit_bytes:
                raise Failure(
                    f"out of memory: more than {limit_bytes / 2**20:,.0f} MiB of anonymous memory"
                )
            if time.monotonic() > deadline:
                raise Failure(f"not finished within {timeout_s:.0f} s")
        line = self.client.stdout.readline()
        if not line:
            code = self.client.wait()
            said = last_line(self.log.read_text(errors="replace"))
            raise Failure(f"ended with code {code}: {said}"[:MESSAGE_CHARACTERS])
        if line.startswith(b'{"error"'):
            raise Failure(json.loads(line)["error"][:MESSAGE_CHARACTERS])
        return line.decode(), anonymous_peak, resident_peak

    def search(self) -> None:
        """Find the client's processes."""
        found = [self.client.pid]
        for pid in found:
            for listed in Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    found += [int(child) for child in listed.read_text().split()]
                except OSError:
                    continue
        self.pids = found

    def memory(self) -> tuple[int, int]:
        """Anonymous memory, including shared memory without a file, and resident memory."""
        known = [status(pid) for pid in self.pids]
        anonymous = sum(one.get("RssAnon", 0) + one.get("RssShmem", 0) for one in known)
        return anonymous, sum(one.get("VmRSS", 0) for one in known)

    def total(self, of: Callable[[int], float]) -> float:
        return sum(of(pid) for pid in self.pids)

    def stop(self) -> None:
        """Let the client end by itself, then kill its remaining processes."""
        self.search()
        pids = self.pids
        self.client.stdin.close()
        try:
            self.client.wait(5)
        except subprocess.TimeoutExpired:
            pass
        for pid in reversed(pids):
            if is_of(pid, self.client.pid):
                os.kill(pid, signal.SIGKILL)
        self.client.wait()
        self.client.stdout.close()
        shutil.rmtree(self.spill, ignore_errors=True)


def touch(bytes_max: int) -> None:
    """Allocate and free memory, as small pages and as huge pages, which the kernel keeps apart.

    A virtual machine may have returned free memory to its host, and getting it back can take
    longer than a sort.
    """
    lines = Path("/proc/meminfo").read_text().splitlines()
    free_bytes = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemFree:"))
    size = min(bytes_max, free_bytes * 7 // 20)
    if size:
        with (
            mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE),
            mmap.mmap(-1, size) as huge,
        ):
            huge.madvise(mmap.MADV_HUGEPAGE)
            huge.madvise(MADV_POPULATE_WRITE)


def status(pid: int) -> dict[str, int]:
    """Memory fields of /proc/PID/status in bytes; empty once the process has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {
        name: int(rest.split()[0]) * 1024
        for name, _, rest in (line.partition(":") for line in lines)
        if rest.endswith("kB")
    }


def written_bytes(pid: int) -> int:
    """Bytes that a process and its ended children have written to the file system."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))


def used_s(pid: int) -> float:
    """CPU seconds of a process and its ended children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def folder_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_blocks * 512
        except OSError:
            continue
    return total


def is_of(pid: int, session: int) -> bool:
    """Whether a process still runs in the client's session."""
    try:
        return os.getsid(pid) == session
    except ProcessLookupError:
        return False
