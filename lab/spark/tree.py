"""Add up sparse vectors over a tree in Spark: what travels as objects, arrays, Arrow or pages.

    python -m lab.spark.tree --entries 1000000 --rounds 5

It is the fourth experiment of the thesis in lab/objects, in Spark's own `treeReduce`. Each form has
an application of its own in one cluster; all sums must have the same checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.common import machine, race
from lab.common.process import Failure, last_line
from lab.common.program import command_line
from lab.common.tables import table
from lab.data.table import cache_folder
from lab.spark import standalone
from lab.spark.bench import ADDRESS, cluster, settings, write

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = (
    HERE / "java",
    ROOT / "lab/objects/java/src/main/java",
    ROOT / "java/page/src/main/java",
)
#: Vectors, and the levels of the tree.
VECTORS, DEPTH = 8, 3
WARM_UPS = 3
JAVA, KRYO = "JavaSerializer", "KryoSerializer"
#: The form, Spark's serializer, and a label.
FORMS = (
    ("objects", JAVA, "a list of objects, Java's serialization"),
    ("objects", KRYO, "a list of objects, Kryo"),
    ("arrays", JAVA, "two arrays, Java's serialization"),
    ("arrays", KRYO, "two arrays, Kryo"),
    ("arrow", KRYO, "Arrow's stream"),
    ("dray", KRYO, "Dray's page"),
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cache = cache_folder().parent
    parser.add_argument("--entries", type=int, default=1_000_000, help="of each vector")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spark", type=Path, default=cache / "spark" / "pyspark")
    parser.add_argument("--timeout", type=float, default=900.0)
    parser.add_argument("--note", default="", help="a sentence for the report")
    return parser.parse_args()


def compiled(spark: Path) -> Path:
    """The program as a jar, which is compiled once for each state of its sources."""
    files = sorted(path for folder in SOURCES for path in folder.rglob("*.java"))
    state = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    jar = cache_folder() / "programs" / f"tree-{state}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=jar.parent))
        try:
            sources = ":".join(map(str, SOURCES))
            own = sorted((HERE / "java").rglob("*.java"))
            words = ["javac", "-nowarn", "-proc:none", "-d", folder, "-sourcepath", sources]
            run([*words, "-cp", f"{spark}/jars/*", *own])
            run(["jar", "--create", "--file", folder / "made.jar", "-C", folder, "study"]
                + ["-C", folder, "dray"])  # fmt: skip
            (folder / "made.jar").rename(jar)
        finally:
            shutil.rmtree(folder)
    return jar


def run(words: list[object], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode != 0:
        raise Failure(f"{words[0]} ended with {done.returncode}: {last_line(done.stderr)}")
    return done.stdout


def measure(
    given: argparse.Namespace, jar: Path, form: str, serializer: str, common: dict[str, object]
) -> dict[str, object]:
    """Run one form, without the rounds that do not count."""
    chosen = common | {
        "spark.serializer": f"org.apache.spark.serializer.{serializer}",
        "spark.kryoserializer.buffer.max": "1g",
        "spark.kryo.classesToRegister": "study.model.SparseVector,study.model.Entry",
        "spark.driver.maxResultSize": "0",
        "spark.driver.host": ADDRESS,
        "spark.driver.bindAddress": ADDRESS,
    }
    words: list[object] = [given.spark / "bin" / "spark-submit", "--class", "study.spark.TreeSum"]
    for name, value in chosen.items():
        words += ["--conf", f"{name}={value}"]
    words += [jar, form, VECTORS, given.entries, DEPTH, WARM_UPS + given.rounds]
    output = run(words, os.environ | standalone.environment(given.spark, ADDRESS))
    found = json.loads(output.splitlines()[-1])
    found["seconds"] = found["seconds"][WARM_UPS:]
    return found


def main() -> int:
    given = options()
    try:
        described = machine.description(Path("dray")) | {"command": command_line()}
        jar = compiled(given.spark)
        runs: dict[str, dict[str, object]] = {}
        with tempfile.TemporaryDirectory(prefix="dray-lab-") as name:
            folder = Path(name)
            with cluster(given.spark, folder, given.timeout) as (url, _):
                common = settings(url, [jar], folder)
                for form, serializer, label in FORMS:
                    runs[label] = measure(given, jar, form, serializer, common)
                    print(f"# {label}: {runs[label]}", file=sys.stderr, flush=True)
        if len({str(found["checksum"]) for found in runs.values()}) != 1:
            raise Failure(f"the sums differ: {runs}")
    except Failure as failure:
        return race.fail(failure)
    content = [["what travels", "", "s", "fastest–slowest", "MB moved"]]
    for label, found in runs.items():
        times = found["seconds"]
        assert isinstance(times, list) and isinstance(found["moved_bytes"], int)
        content.append(
            [
                label,
                "",
                f"{statistics.median(times):.3f}",
                f"{min(times):.3f}–{max(times):.3f}",
                f"{found['moved_bytes'] / 1e6:.1f}",
            ]
        )
    lines = [
        f"# {VECTORS} sparse vectors of {given.entries:,} entries, a tree of depth {DEPTH}",
        "",
        f"Medians of {given.rounds} rounds, two executors of one core. {given.note}".strip(),
        *("", *table(content), "", f"`{described['command']}`"),
    ]
    write("spark-tree", described, runs, "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
