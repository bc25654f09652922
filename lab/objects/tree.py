"""Experiment 4: seven processes add up sparse vectors over a tree."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from lab.common.process import Failure, free_port
from lab.objects.generate import NODES
from lab.objects.harness import Implementation, answer

TIMEOUT_S = 120.0


def free_ports(number: int) -> int:
    """The first of several ports that follow each other and are free."""
    for _ in range(100):
        first = free_port()
        with ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return first
    raise Failure(f"found no {number} free ports that follow each other")


def aggregate(one: Implementation, inputs: Path, density: str) -> dict:
    """Run the seven processes, and return the root's result with the CPU time of all."""
    port = free_ports(NODES)
    environment = {**os.environ, "JAVA_HEAP": "1g"}
    with ExitStack() as stack:
        nodes = []
        for node in range(NODES):
            path = inputs / f"vector-{density}-{node}.in"
            command = one.command("aggregate", object="vector", input=path, node=node, port=port)
            nodes.append(start(stack, command, environment))
        for process in nodes:
            await_ready(process)
        for process in nodes:
            process.stdin.write("go\n")
            process.stdin.flush()
        found = [finish(process) for process in nodes]
    return {**found[0], "cpu_s": sum(one["cpu_s"] for one in found)}


def start(
    stack: ExitStack, command: list[str], environment: dict[str, str]
) -> subprocess.Popen[str]:
    """A harness that is ended with the stack."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    stack.callback(end, process)
    return process


def end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def await_ready(process: subprocess.Popen[str]) -> None:
    """Wait for the line `ready`."""
    line = process.stdout.readline()
    if line.strip() != "ready":
        raise Failure(f"expected ready, found {line.strip()}: {process.stderr.read().strip()}")


def finish(process: subprocess.Popen[str]) -> dict:
    try:
        output, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired as expired:
        raise Failure(f"took more than {TIMEOUT_S:.0f} s") from expired
    return answer(process.returncode, output, errors)
