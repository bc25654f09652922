"""Tables 3, 5, 6 and 7: sections that depend on links.

Each sentence is computed from the numbers.
"""

from __future__ import annotations

from lab.common.svg import Line, lines
from lab.study.links import chunk_means, geometric_means
from lab.study.results import (
    LINKS,
    NONE,
    TABLES,
    TITLES,
    Heading,
    Results,
    both_seconds,
    core_seconds,
    listing,
    number,
    paper,
    ratio,
    sentences,
    size_name,
    table,
)

#: Bytes of the paper's chunk sizes by name.
PAPER_SIZES = {
    "2KB": 2 << 10,
    "10KB": 10 << 10,
    "100KB": 100 << 10,
    "1MB": 1 << 20,
    "10MB": 10 << 20,
    "100MB": 100 << 20,
}
#: Dray's formats, and the rival that each is compared with.
RIVALS = (
    ("Dray none", "Arrow IPC"),
    ("Dray none", "Protobuf"),
    ("Dray light", "Arrow IPC LZ4"),
    ("Dray light", "Arrow IPC zstd"),
    ("Dray light", "Protobuf+C"),
)
#: What `auto` sends over each link, and what the chunk size is tuned with.
CHOSEN = {"local": "Dray none", "1gbit": "Dray light", "100mbit": "Dray light"}


def chunk_size(results: Results, published: dict) -> str:
    """Table 3."""
    theirs = {(row[0], PAPER_SIZES[row[1]]): row for row in published["3"]["rows"]}
    parts = [
        "<p>The size of a chunk is that of its rows before encoding. Times are seconds per "
        "gigabyte of Arrow data: on one core to encode and decode it, and over a link from the "
        "request to the last decoded row, with the factor over the best size of the column. "
        "Ratios are of the sample in file order. * The whole sample is one chunk, so larger chunks "
        "have the same ratio. † The transferred rows are drawn, because the sample is smaller than "
        "the chunk. “Snappy” is the paper's format, columns under Snappy, for comparison with its "
        "ratio.</p>"
    ]
    for data in TABLES:
        parts.append(f"<h3>{TITLES[data]}{unseen(results, data)}</h3>")
        parts.append(chunk_size_table(results, data, theirs))
        parts.append(chunk_size_plot(results, data, theirs))
        parts.append(sentences(best_sizes(results, data, theirs)))
    means = chunk_means(results.raw["transfers"], tuple(results.raw["tuned_on"]))
    core_means = core_time_means(results)
    rows = [
        [
            size_name(size),
            number(mean),
            number(core_means.get(size)),
            "←" if size == results.chunk_bytes else "",
        ]
        for size, mean in means.items()
    ]
    least, core_least = (min(of, key=of.__getitem__) for of in (means, core_means))
    parts.append("<h3>The default</h3><p>Geometric mean of the time relative to the best size:</p>")
    parts.append(table(["chunk", "over links", "on one core", "chosen"], rows))
    parts.append(
        sentences(
            [
                f"With {listing(results.raw['tuned_on'])} over "
                f"{listing(LINKS[name] for name in CHOSEN)} (raw on loopback, light otherwise), "
                f"chunks of {size_name(least)} take the least mean time. The smallest chunks that "
                f"take at most {results.raw['nearly'] - 1:.0%} longer have "
                f"<b>{size_name(results.chunk_bytes)}</b>. They need less memory, and the other "
                "experiments use them. ontime did not influence the choice.",
                "By processor time alone, raw and light, chunks of "
                f"{size_name(core_least)} take the least.",
            ]
        )
    )
    return "".join(parts)


def core_time_means(results: Results) -> dict[int, float]:
    """Like `chunk_means`, for the processor time to encode and decode, raw and light."""
    curves = {}
    for data in results.raw["tuned_on"]:
        for case in ("Dray none", "Dray light"):
            figures = {
                size: results.figure("chunk-size", data, case, size) for size in results.sizes()
            }
            curves[data, case] = {
                size: both_seconds(figure) for size, figure in figures.items() if figure is not None
            }
    return geometric_means(curves)


def chunk_size_table(results: Results, data: str, theirs: dict) -> str:
    headings: list[Heading | str] = [
        "chunk",
        paper("paper: rows"),
        paper("time s"),
        paper("Snappy ratio"),
    ]
    headings += ["rows", "Snappy ratio", "light ratio", "core s: none", "core s: light"]
    links = [
        (link, case)
        for link in ("local", "1gbit", "100mbit")
        for case in ("Dray none", "Dray light")
    ]
    headings += [f"{LINKS[link]}: {case.removeprefix('Dray ')}" for link, case in links]
    bests = {pair: best(results, data, *pair) for pair in links}
    rows = []
    for size in results.sizes():
        light = results.figure("chunk-size", data, "Dray light", size)
        raw = results.figure("chunk-size", data, "Dray none", size)
        snappy = results.figure("chunk-size", data, "Columns+Snappy", size)
        if light is None or raw is None or snappy is None:
            continue
        row = theirs.get((data, size))
        whole = "*" if light["sample_chunks"] == 1 else ""
        drawn = "†" if whole and data != "lineitem" else ""
        cells = [
            size_name(size) + drawn,
            *([f"{row[2]:,}", number(row[3]), f"{row[5]:.2f}"] if row else [NONE] * 3),
        ]
        cells += [
            f"{light['rows'] / light['chunks']:,.0f}",
            f"{ratio(snappy):.2f}{whole}",
            f"{ratio(light):.2f}{whole}",
        ]
        cells += [number(both_seconds(raw)), number(both_seconds(light))]
        for link, case in links:
            took = results.seconds(link, "chunk-size", data, case, size)
            spread = results.spread(link, "chunk-size", data, case, size)
            cells.append(number(took, took / bests[link, case][1] if took else None, spread))
        rows.append(cells)
    return table(headings, rows)


def best(results: Results, data: str, link: str, case: str) -> tuple[int, float]:
    """The chunk size with the least time over a link, and that time."""
    curve = {
        size: results.seconds(link, "chunk-size", data, case, size) for size in results.sizes()
    }
    measured = {size: took for size, took in curve.items() if took is not None}
    return min(measured.items(), key=lambda item: item[1]) if measured else (0, 1.0)


def chunk_size_plot(results: Results, data: str, theirs: dict) -> str:
    published = sorted((size, row[3]) for (name, size), row in theirs.items() if name == data)
    series = [Line("the paper, Local", relative(published), dashed=True)]
    for link, case in CHOSEN.items():
        curve = [
            (size, results.seconds(link, "chunk-size", data, case, size))
            for size in results.sizes()
        ]
        points = relative([(size, took) for size, took in curve if took is not None])
        series.append(Line(f"{LINKS[link]}, {case.removeprefix('Dray ')}", points))
    names = {float(size): name for name, size in PAPER_SIZES.items()}
    return lines(
        f"{data}: time by chunk size, as a multiple of the best", "bytes of a chunk", series, names
    )


def relative(curve: list[tuple[int, float]]) -> list[tuple[float, float]]:
    least = min((took for _, took in curve), default=1.0)
    return [(float(size), took / least) for size, took in curve]


def best_sizes(results: Results, data: str, theirs: dict) -> list[str]:
    published = {size: row[3] for (name, size), row in theirs.items() if name == data}
    found = [
        "In the paper, the fastest chunk size was "
        f"{size_name(min(published, key=published.__getitem__))}."
    ]
    for link, case in CHOSEN.items():
        size, took = best(results, data, link, case)
        if size:
            paper_size = results.seconds(link, "chunk-size", data, case, 1 << 20)
            longer = (
                f"; chunks of 1MB take {paper_size / took:.2f}× as long"
                if paper_size and size != 1 << 20
                else ""
            )
            where = f"Over {LINKS[link]}, {case.removeprefix('Dray ')}"
            found.append(f"{where}: {size_name(size)}, {number(took)} s per gigabyte{longer}.")
    return found


def unseen(results: Results, data: str) -> str:
    return "" if data in results.raw["tuned_on"] else " <small>(no default was tuned on it)</small>"


def compressors(results: Results, published: dict) -> str:
    """Table 5."""
    theirs = {row[0]: row[1:5] for row in published["5"]["rows"]}
    links = list(LINKS)
    intro = (
        "<p>The paper's columns under each compressor of whole chunks, and Dray's format. The "
        f"paper's seconds are for {published['5']['rows'][0][5]:,} MB, ours are per gigabyte of "
        "Arrow data. Both have the speed-up over None in the same column. GZIP is Deflate of level "
        "6 by zlib-rs, and XZ has preset 6.</p>"
    )
    parts = [intro]
    for data in TABLES:
        parts.append(f"<h3>{TITLES[data]}{unseen(results, data)}</h3>")
        parts.append(
            link_table(
                results, "compressors", data, "None", links, theirs if data == "lineitem" else {}
            )
        )
        parts.append(
            sentences(
                winners(results, "compressors", data, links, theirs if data == "lineitem" else {})
            )
        )
    regrets = []
    for data in TABLES:
        for link in links:
            choice = "Dray none" if link == "local" else "Dray light"
            took = results.seconds(link, "compressors", data, choice)
            least = least_case(results, "compressors", data, link)
            if took and least:
                where = (
                    f"{data} over {LINKS[link]} ({choice} {number(took)} s, "
                    f"{least[0]} {number(least[1])} s)"
                )
                regrets.append((took / least[1], where))
    if regrets:
        worst = max(regrets)
        right = sum(regret < 1.02 for regret, _ in regrets)
        parts.append("<h3>The paper's rule: none on one host, light elsewhere</h3>")
        parts.append(
            sentences(
                [
                    f"The rule is within 2% of the best in {right} of {len(regrets)} cases. "
                    f"It loses most on {worst[1]}: {worst[0]:.2f}× the least time."
                ]
            )
        )
    return "".join(parts)


def integers(results: Results, published: dict) -> str:
    """Table 6."""
    return by_table(
        results,
        "integers",
        {(row[0], row[1]): row[2:5] for row in published["6"]["rows"]},
        {(row[0], row[1]): row[5] for row in published["6"]["rows"]},
        "None",
        "<p>Only the columns of 32-bit integers, including lineitem's decimals, as in the paper. "
        "The least integer stands for a missing value, except in Dray's format. The paper's LAN "
        "has 1 Gbit/s and 0.3 ms, its WAN 100 Mbit/s, 25 ms and 1 % loss. Our links have the same "
        "rates, without delay or loss.</p>",
    )


def serialization(results: Results, published: dict) -> str:
    """Table 7."""
    content = by_table(
        results,
        "serialization",
        {(row[0], row[1]): row[2:5] for row in published["7"]["rows"]},
        {(row[0], row[1]): row[5] for row in published["7"]["rows"]},
        "Custom",
        "<p>Custom is the paper's format: columns, zero-terminated strings, 64-bit decimals; +C is "
        "Snappy. Arrow IPC and Dray's none send 128-bit decimals, which the reader gets. Protocol "
        "Buffers are encoded by hand, without an object for each row. Every decoder builds Arrow "
        "arrays and checks that text is UTF-8. The links are those above.</p>",
    )
    found = []
    for data in TABLES:
        for mine, rival in RIVALS:
            ours, others = (results.figure("serialization", data, case) for case in (mine, rival))
            if ours and others:
                size = ours["sample_encoded_bytes"] / others["sample_encoded_bytes"]
                found.append(
                    f"{data}: {mine} takes {number(both_seconds(ours))} s of one core per gigabyte "
                    f"to encode and decode, {rival} {number(both_seconds(others))} s. Its messages "
                    f"are {size:.2f}× as large."
                )
    return content + "<h3>Comparison with rivals</h3>" + sentences(found)


def by_table(
    results: Results, experiment: str, times: dict, sizes: dict, base: str, intro: str
) -> str:
    links = ["local", "1gbit", "100mbit"]
    parts = [intro]
    for data in TABLES:
        theirs = {method: row for (name, method), row in times.items() if name == data}
        their_sizes = {method: size for (name, method), size in sizes.items() if name == data}
        parts.append(f"<h3>{TITLES[data]}{unseen(results, data)}</h3>")
        parts.append(link_table(results, experiment, data, base, links, theirs, their_sizes))
        parts.append(sentences(winners(results, experiment, data, links, theirs)))
    return "".join(parts)


def link_table(
    results: Results,
    experiment: str,
    data: str,
    base: str,
    links: list[str],
    theirs: dict[str, list],
    their_sizes: dict[str, float] | None = None,
) -> str:
    """A row for each format: seconds over each link, in the paper and here, and the speed-up over
    the base case.
    """
    headings: list[Heading | str] = ["format"]
    if theirs:
        names = ("Local", "1000", "100", "10") if len(links) == 4 else ("Local", "LAN", "WAN")
        headings += [paper(f"paper: {name}") for name in names]
        headings += [paper("MB")] if their_sizes else []
    headings += [LINKS[link] for link in links]
    headings += ["bytes per row", f"× {base}", "× Arrow", "encode s", "decode s"]
    reference = results.figure(experiment, data, base)
    rows = []
    for case in results.cases(experiment, data):
        figure = results.figure(experiment, data, case)
        if figure is None or reference is None:
            continue
        cells = [case]
        if theirs:
            row = theirs.get(case)
            for i in range(len(links)):
                cells.append(number(row[i], theirs[base][i] / row[i]) if row else NONE)
            if their_sizes:
                cells.append(f"{their_sizes[case]:,.1f}" if case in their_sizes else NONE)
        for link in links:
            took, basis = (results.seconds(link, experiment, data, name) for name in (case, base))
            faster = basis / took if took and basis else None
            cells.append(number(took, faster, results.spread(link, experiment, data, case)))
        cells.append(number(figure["sample_encoded_bytes"] / figure["rows"]))
        cells += [f"{ratio(figure, reference):.2f}", f"{ratio(figure):.2f}"]
        cells += [number(core_seconds(figure, name)) for name in ("encode_ns", "decode_ns")]
        rows.append(cells)
    return table(headings, rows)


def least_case(
    results: Results, experiment: str, data: str, link: str, but: str = ""
) -> tuple[str, float] | None:
    """The format with the least time over a link, and that time."""
    taken = {
        case: results.seconds(link, experiment, data, case)
        for case in results.cases(experiment, data)
    }
    measured = {
        case: took
        for case, took in taken.items()
        if took is not None and not (but and case.startswith(but))
    }
    return min(measured.items(), key=lambda item: item[1]) if measured else None


def winners(
    results: Results, experiment: str, data: str, links: list[str], theirs: dict
) -> list[str]:
    """The fastest format over each link: in the paper, without Dray's format, and with it."""
    found = []
    for link in links:
        general = least_case(results, experiment, data, link, but="Dray")
        of_all = least_case(results, experiment, data, link)
        if general is None or of_all is None:
            continue
        sentence = f"{LINKS[link]}: the fastest format is "
        if theirs:
            fastest = min(theirs, key=lambda case: theirs[case][links.index(link)])
            sentence += f"{fastest} in the paper, "
        sentence += f"{general[0]} ({number(general[1])} s) here"
        if of_all[0] != general[0]:
            sentence += (
                f" without Dray, and {of_all[0]} ({number(of_all[1])} s, "
                f"{general[1] / of_all[1]:.2g}× faster) with it"
            )
        else:
            sentence += ", with or without Dray"
        found.append(sentence + ".")
    return found
