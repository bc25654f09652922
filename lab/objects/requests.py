"""Experiment 2: ten servers at the far end of a shaped link, and one client at the near end."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from lab.link.link import Link
from lab.objects.cases import Case, Study
from lab.objects.harness import Implementation, Setting, answer, evict, option_words, run
from lab.objects.objects import U64, count, records
from lab.objects.tree import await_ready, start

FIRST_PORT = 20_000
INDEX = struct.Struct("<QII")
#: Each server of Java has a heap of its own.
ENVIRONMENT = {"JAVA_HEAP": "1g"}


def requests(study: Study) -> Iterator[list[Case]]:
    """Each server has the same objects, and the client asks each for another range of them."""
    scale = study.scale
    with Link.veth(rate=scale.rate) as link:
        for name, numbers in scale.requests.items():
            for number in numbers:
                number = min(number, count(study.input(name)) // scale.servers)
                made = head(study, name, number * scale.servers)
                for source in ("ram", "disk"):
                    yield [
                        request(study, one, link, made, source)
                        for one in study.entrants(name, "serve")
                    ]


class Made:
    """The first objects of an input, which all servers have."""

    def __init__(self, study: Study, name: str, path: Path, number: int) -> None:
        self.study, self.name, self.path, self.number = study, name, path, number

    def store(self, one: Implementation) -> Path:
        folder = self.study.folder(one, f"requests-{self.number}")
        if not (folder / f"{self.name}.index").exists():
            one.run("store", Setting(), object=self.name, input=self.path, folder=folder)
        return folder


def head(study: Study, name: str, number: int) -> Made:
    path = study.stored / f"head-{number}-{name}.in"
    with path.open("wb") as file:
        file.write(U64.pack(number))
        for i, record in enumerate(records(study.input(name))):
            if i == number:
                break
            file.write(struct.pack("<I", len(record)) + record)
    return Made(study, name, path, number)


def request(study: Study, one: Implementation, link: Link, made: Made, source: str) -> Case:
    servers = study.scale.servers
    each = made.number // servers
    options = {"object": made.name, "source": source, "count": each, "servers": servers}

    def measure() -> dict:
        folder = made.store(one)
        if source == "disk":
            evict(folder / f"{made.name}.pages")
        with ExitStack() as stack, tempfile.TemporaryDirectory(dir=study.stored) as output:
            client = study.reference.parent / "client"
            found = fetch(stack, one, link, folder, output, options, client)
            return {**found, "checksum": judged(one, made, folder, Path(output), options)}

    return Case("requests", one, options, measure, "right")


def fetch(
    stack: ExitStack,
    one: Implementation,
    link: Link,
    folder: Path,
    output: str,
    options: dict,
    program: Path,
) -> dict:
    """Start the servers, and run the client."""
    running = []
    for i in range(options["servers"]):
        command = one.command(
            "serve",
            object=options["object"],
            folder=folder,
            address=link.far_address,
            port=FIRST_PORT + i,
            source=options["source"],
        )
        running.append(start(stack, [*link.far, *command], {**os.environ, **ENVIRONMENT}))
    for server in running:
        await_ready(server)
    client = ask(program, options, link, output)
    served = [answer(server.wait(30), *server.communicate()) for server in running]
    return {
        **client,
        "client_cpu_s": client["cpu_s"],
        "cpu_s": sum(server["cpu_s"] for server in served),
        "io_s": sum(server["io_s"] for server in served),
    }


def ask(program: Path, options: dict, link: Link, output: str) -> dict:
    """Run the client."""
    words = {
        "address": link.far_address,
        "port": FIRST_PORT,
        "servers": options["servers"],
        "count": options["count"],
        "output": output,
    }
    return run([*link.near, str(program), *option_words(words)], Setting(cores=0))


def judged(one: Implementation, made: Made, folder: Path, output: Path, options: dict) -> str:
    """Whether each server sent its range. From the disk, whole pages come."""
    with (folder / f"{made.name}.index").open("rb") as file:
        offsets = [entry[0] for entry in INDEX.iter_unpack(file.read())]
    for i in range(options["servers"]):
        first, after = i * options["count"], (i + 1) * options["count"]
        if options["source"] == "disk":
            while first > 0 and offsets[first - 1] == offsets[first]:
                first -= 1
            while after < len(offsets) and offsets[after] == offsets[after - 1]:
                after += 1
        truth = made.study.truth(made.name, start=first, count=after - first)
        path = output / f"{i}.pages"
        found = one.run("received", Setting(), object=made.name, file=path)
        if (found["objects"], found["checksum"]) != (truth["objects"], truth["checksum"]):
            return f"wrong from server {i}: {found['objects']} objects, {truth['objects']} expected"
    return "right"
