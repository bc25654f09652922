"""The study as a self-contained HTML file."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from lab.common.style import BUSY_LOAD, STYLE
from lab.study import layouts, sections
from lab.study.results import Results, size_name

SECTIONS: list[tuple[str, Callable[[Results, dict], str]]] = [
    ("1. Chunk size (table 3)", sections.chunk_size),
    ("2. Rows and columns under compression (table 4)", layouts.row_major),
    ("3. Compressors and links (table 5)", sections.compressors),
    ("4. Integer columns (table 6)", sections.integers),
    ("5. Protocol Buffers and Arrow IPC (table 7)", sections.serialization),
    ("6. Strings (tables 8 and 9)", layouts.strings),
    ("7. Missing values", layouts.nulls),
]


def html(measured: dict, published: dict) -> str:
    """The document."""
    results = Results(measured)
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width'>",
        f"<title>The study</title><style>{STYLE}</style>",
        "<h1>The study: formats and sizes of chunks</h1>",
        introduction(measured, published),
    ]
    parts += [
        f"<h2>{escape(title)}</h2>{section(results, published['tables'])}"
        for title, section in SECTIONS
    ]
    parts.append(appendix(measured))
    return "\n".join(parts) + "\n"


def introduction(measured: dict, published: dict) -> str:
    machine = measured["machine"]
    quick = (
        '<p class="warning">A quick run with little data and one round. It is a test of the '
        "program, and its numbers are no results.</p>"
    )
    busy = (
        '<p class="warning">Other programs ran at the start '
        f"(load average {machine['load_average']:.1f}). They affect times over links, most of all "
        "over loopback, and processor times less. The spread is given.</p>"
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in published["notes"])
    memory = f"{machine['memory_bytes'] / 2**30:.0f} GiB"
    congestion = escape(str(machine["congestion_control_default"]))
    return f"""
{quick if measured["quick"] else ""}{busy if machine["load_average"] > BUSY_LOAD else ""}
<p>Tables 3 to 9 of {escape(published["source"])}, measured again with today's compressors and
rivals and with Dray's format, beside the <span class=paper>paper's numbers</span>. The paper had
other machines, sizes and systems: compare factors and orders, not seconds.</p>
<ul>
<li><b>Data.</b> TPC-H lineitem with 32-bit keys, and samples of two of the paper's data sets: PUMS
(189 columns; the paper's ACS) and ontime (109 columns, half of the values missing). Ratios and
bytes are of the sample in file order. Transfers repeat the chunks of the sample. Chunks larger than
the sample, and processor times by chunk size, use rows drawn from it in contiguous runs of 50 to
500. Such rows repeat, which favours compressors with a large window.</li>
<li><b>Tuning.</b> Defaults are chosen on lineitem and PUMS, not on ontime.</li>
<li><b>One core.</b> Processor time of one thread: medians over {measured["rounds"]} rounds in which
the cases alternate, after one that warms up and compares every decoded value with its source. Cases
that take seconds have three rounds. A gigabyte is 10⁹ bytes in Arrow's layout with utf8 strings and
128-bit decimals. Every decoder builds Arrow arrays.</li>
<li><b>Links.</b> TCP between two processes, over loopback or over a veth pair between two network
namespaces with token buckets of Ethernet frames and without delay or loss. Encoder, writer, reader
and decoder are threads with queues of two chunks between them. Time runs from the request to the
last decoded row: medians over {measured["link_rounds"]} alternating transfers of about
{measured["seconds"]:g} s, ± half of their range. Congestion control: {congestion}.</li>
<li><b>Chunks</b> have {size_name(measured["chunk_bytes"])} of rows before encoding, unless stated
otherwise.</li>
</ul>
<p>{escape(str(machine["processor"]))}, {machine["cores"]} cores, {memory},
Linux {escape(str(machine["kernel"]))}.</p>
<p>Notes on the paper:</p><ul>{notes}</ul>"""


def appendix(measured: dict) -> str:
    machine = measured["machine"]
    versions = {**machine["versions"], **machine["crates"], "commit": machine["commit"]}
    listed = ", ".join(f"{name} {value}" for name, value in versions.items())
    commands = "\n".join([measured["command"], *measured["commands"]])
    return f"<h2>Versions and commands</h2><p>{escape(listed)}</p><pre>{escape(commands)}</pre>"
