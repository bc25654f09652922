"""Measure how fast a process gets at a table in another process's sealed memory.

    python -m lab.lineitem.sealed --megabytes 1010 --checked 400

Sealed memory (memfd_create) can't change any more, so a client could map a server's table instead
of copying it. Each process that maps it has to enter its pages into its own page table, and to
check the bytes that are strings. This program measures both, without a table: `--checked` bytes
stand for the strings.
"""

from __future__ import annotations

import argparse
import fcntl
import mmap
import multiprocessing
import os
import statistics
import time

import numpy

from lab.common.program import program_name

# Not in the fcntl module of Python 3.10: linux/fcntl.h.
F_ADD_SEALS = 1033
F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE = 1, 2, 4, 8
#: Of mmap: enters all pages at once. Not in the mmap module.
MAP_POPULATE = 0x8000
BLOCK_BYTES = 1 << 24


def sealed_memory(total: int) -> int:
    """A descriptor of sealed memory with this many bytes."""
    descriptor = os.memfd_create("table", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, total)
    for at in range(0, total, BLOCK_BYTES):
        os.pwrite(descriptor, b"a" * min(BLOCK_BYTES, total - at), at)
    fcntl.fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
    return descriptor


def read(values: numpy.ndarray) -> float:
    """The seconds that it takes to read all values."""
    began = time.perf_counter()
    values.max()
    return time.perf_counter() - began


def client(
    descriptor: int, total: int, checked: int, flags: int, times: multiprocessing.SimpleQueue
) -> None:
    """Map the memory as a client would, and put what each step took into `times`."""
    began = time.perf_counter()
    memory = mmap.mmap(descriptor, total, flags=mmap.MAP_SHARED | flags, prot=mmap.PROT_READ)
    mapped = time.perf_counter() - began
    values = numpy.frombuffer(memory, numpy.uint64)
    strings = values[: checked // values.itemsize]
    times.put((mapped, read(strings), read(strings), read(values), read(values)))


def main() -> None:
    parser = argparse.ArgumentParser(prog=program_name(), description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1010)
    parser.add_argument("--checked", type=int, default=400, help="megabytes of strings")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    total, checked = given.megabytes * 1_000_000 // 8 * 8, given.checked * 1_000_000 // 8 * 8
    descriptor = sealed_memory(total)
    context = multiprocessing.get_context("fork")
    print("medians of seconds: map | strings, first | again | all, first | again")
    for name, flags in (("pages entered as they are read", 0), ("at once", MAP_POPULATE)):
        rounds = []
        for _ in range(given.rounds):
            times = context.SimpleQueue()
            process = context.Process(
                target=client, args=(descriptor, total, checked, flags, times)
            )
            process.start()
            rounds.append(times.get())
            process.join()
        medians = [statistics.median(step) for step in zip(*rounds, strict=True)]
        print(f"{name}: " + " | ".join(f"{median:.4f}" for median in medians))


if __name__ == "__main__":
    main()
