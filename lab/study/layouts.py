"""Tables 4, 8 and 9, and missing values: sections that do not depend on links.

Each sentence is computed from the numbers.
"""

from __future__ import annotations

from lab.study.results import (
    NONE,
    TABLES,
    TITLES,
    Heading,
    Results,
    core_seconds,
    listing,
    number,
    paper,
    ratio,
    sentences,
    table,
    value_ns,
)

ORDERS = ("Column", "Row")
COMPRESSED = " +C"
REPRESENTATIONS = ("Reserved value", "Bitmap, dense", "Bitmap, left out")


def row_major(results: Results, published: dict) -> str:
    """Table 4."""
    theirs = {(row[0], row[1]): row[2:] for row in published["4"]["rows"]}
    parts = [
        "<p>All rows as one message, row by row or column by column. Ratios are relative to the "
        "message without compression, as in the paper. GB/s are of Arrow data on one core, and "
        "include the time to write and read the message itself.</p>"
    ]
    for data in TABLES:
        first = results.figure("row-major", data, "None, Column", None)
        if first is None:
            continue
        parts.append(f"<h3>{TITLES[data]}, {first['rows']:,} rows</h3>")
        with_paper = data == "lineitem"
        headings: list[Heading | str] = ["compressor"]
        headings += [paper(f"paper: {order.lower()}s") for order in ORDERS] if with_paper else []
        headings += ["columns", "rows", "rows ÷ columns", "columns MB", "rows MB"]
        headings += [
            f"{what}, {order.lower()}s"
            for what in ("encode GB/s", "decode GB/s")
            for order in ORDERS
        ]
        rows, gains = [], {}
        for method in dict.fromkeys(
            case.split(", ")[0] for case in results.cases("row-major", data)
        ):
            figures = [
                results.measured("row-major", data, f"{method}, {order}", None) for order in ORDERS
            ]
            plain = [
                results.measured("row-major", data, f"None, {order}", None) for order in ORDERS
            ]
            bytes_ = [figure["sample_encoded_bytes"] for figure in figures]
            if method != "None":
                gains[method] = bytes_[1] / bytes_[0]
            cells = [method]
            if with_paper:
                cells += [
                    f"{theirs[method, order][1]:.2f}" if (method, order) in theirs else NONE
                    for order in ORDERS
                ]
            cells += [
                f"{ratio(figure, base):.2f}" for figure, base in zip(figures, plain, strict=True)
            ]
            cells += [f"{bytes_[1] / bytes_[0]:.2f}", *(f"{size / 1e6:.2f}" for size in bytes_)]
            cells += [
                number(1 / core_seconds(figure, name))
                for name in ("encode_ns", "decode_ns")
                for figure in figures
            ]
            rows.append(cells)
        parts.append(table(headings, rows))
        parts.append(sentences(orders(data, gains, theirs if with_paper else {})))
    return "".join(parts)


def orders(data: str, gains: dict[str, float], theirs: dict) -> list[str]:
    smaller = [method for method, gain in gains.items() if gain > 1]
    larger = [method for method, gain in gains.items() if gain <= 1]
    most = max(gains, key=gains.__getitem__)
    found = [f"{data}: columns are smaller than rows under {listing(smaller)}"]
    found[0] += (
        f"; rows are no larger under {listing(larger)}." if larger else ", all compressors tried."
    )
    found.append(f"Rows take up to {gains[most]:.2f}× the bytes of columns ({most}).")
    if theirs:
        paper_gains = {
            method: theirs[method, "Row"][0] / theirs[method, "Column"][0] for method, _ in theirs
        }
        paper_most = max(paper_gains, key=paper_gains.__getitem__)
        found[1] += f" In the paper: up to {paper_gains[paper_most]:.2f}× ({paper_most})."
    return found


def strings(results: Results, published: dict) -> str:
    """Tables 8 and 9."""
    parts = [
        "<p>One column of strings without missing values, plain and under Snappy (+C). Ratios are "
        "relative to the same layout without Snappy, as in the paper. Times are nanoseconds per "
        "value on one core. The paper's seconds are for 60 million rows. Packed lengths are "
        "bit-packed before the text. The dictionary has the distinct strings of the chunk and "
        "bit-packed indices. “Arrow offsets” is Dray's raw column.</p>"
    ]
    for column, number_of_table, unit in (("l_returnflag", "8", "MB"), ("l_comment", "9", "GB")):
        theirs = {row[0]: row[1:] for row in published[number_of_table]["rows"]}
        headings: list[Heading | str] = [
            "layout",
            *(paper(name) for name in ("paper: time s", "time+C s", unit, "ratio")),
        ]
        headings += [
            "bytes per value",
            "+C",
            "ratio",
            "encode ns",
            "decode ns",
            "encode+C ns",
            "decode+C ns",
        ]
        rows, plain, compressed, fastest = [], {}, {}, {}
        for case in results.cases("strings", column):
            if case.endswith(COMPRESSED):
                continue
            figure, with_snappy = (
                results.figure("strings", column, case + suffix) for suffix in ("", COMPRESSED)
            )
            if figure is None:
                continue
            sample_rows = figure["rows"]
            row = theirs.get(case)
            cells = [
                case,
                *(
                    [number(row[0]), number(row[1]), f"{row[2]:,}", f"{row[3]:.2f}"]
                    if row
                    else [NONE] * 4
                ),
            ]
            plain[case] = figure["encoded_bytes"] / figure["rows"]
            fastest[case] = value_ns(figure, "encode_ns") + value_ns(figure, "decode_ns")
            cells.append(number(plain[case]))
            if with_snappy:
                compressed[case] = with_snappy["encoded_bytes"] / with_snappy["rows"]
                cells += [number(compressed[case]), f"{ratio(with_snappy, figure):.2f}"]
            else:
                cells += [NONE, NONE]
            for measured in (figure, with_snappy):
                cells += [
                    number(value_ns(measured, name)) if measured else NONE
                    for name in ("encode_ns", "decode_ns")
                ]
            rows.append(cells)
        if not rows:
            continue
        parts += [f"<h3>{column}, {sample_rows:,} rows</h3>", table(headings, rows)]
        smallest, least, quickest = (
            min(of, key=of.__getitem__) for of in (plain, compressed, fastest)
        )
        paper_quickest = min(theirs, key=lambda case: theirs[case][0])
        light = "Dray light"
        parts.append(
            sentences(
                [
                    f"{column}: {smallest} has the fewest bytes per value "
                    f"({number(plain[smallest])}), and {least} under Snappy "
                    f"({number(compressed[least])}). {quickest} has the least time to write and "
                    f"read ({number(fastest[quickest])} ns per value), and {paper_quickest} in the "
                    "paper.",
                    f"Dray's light has {number(plain[light])} bytes per value, "
                    f"{plain[light] / compressed[least]:.2f}× the smallest under Snappy, and takes "
                    f"{number(fastest[light])} ns.",
                ]
            )
        )
    return "".join(parts)


def nulls(results: Results, published: dict) -> str:
    """Missing values, which have no table in the paper."""
    shares = [
        data
        for data in dict.fromkeys(key[1] for key in results.figures if key[0] == "nulls")
        if data not in TABLES
    ]
    parts = [
        "<p>Bytes per value, including missing ones, and below them nanoseconds per value on one "
        "core to encode and decode: two integer columns of lineitem (l_partkey, l_linenumber) with "
        "values missing at random. +C is Snappy. Dray's compact leaves missing values out if most "
        "are missing.</p>"
    ]
    cases = results.cases("nulls", shares[0]) if shares else []
    rows = []
    for case in cases:
        cells = [case]
        for share in shares:
            figure = results.measured("nulls", share, case)
            value_bytes = figure["encoded_bytes"] / figure["rows"] / figure["columns"]
            cells.append(f"{value_bytes:.2f}<br><small>{spent(figure)} ns</small>")
        rows.append(cells)
    parts.append(table(["representation", *(f"{share} missing" for share in shares)], rows))
    parts.append(sentences(smallest_at(results, share) for share in shares))
    theirs = {(row[0], row[1]): row[2] for row in published["11 and 12"]["rows"]}
    parts.append("<h3>Whole tables</h3>")
    headings: list[Heading | str] = ["representation"]
    for data in ("pums", "ontime"):
        headings += [
            paper(f"paper, {data}: GB"),
            f"{data}: bytes per row",
            f"{data}: × reserved",
            f"{data}: encode s",
            "decode s",
        ]
    rows = []
    for case in cases:
        cells = [case]
        for data in ("pums", "ontime"):
            figure, reserved = (
                results.measured("nulls", data, name) for name in (case, REPRESENTATIONS[0])
            )
            cells.append(f"{theirs[data, case]:.2f}" if (data, case) in theirs else NONE)
            cells += [
                number(figure["encoded_bytes"] / figure["rows"]),
                f"{ratio(figure, reserved):.2f}",
            ]
            cells += [number(core_seconds(figure, name)) for name in ("encode_ns", "decode_ns")]
        rows.append(cells)
    parts.append(table(headings, rows))
    parts.append(sentences(reserved_against_left_out(results, theirs)))
    return "".join(parts)


def spent(figure: dict) -> str:
    return number(value_ns(figure, "encode_ns") + value_ns(figure, "decode_ns"))


def smallest_at(results: Results, share: str) -> str:
    """The smallest and the fastest representation at a share of missing values."""
    winners = []
    for suffix in ("", COMPRESSED):
        sizes = {
            name: results.measured("nulls", share, name + suffix)["encoded_bytes"]
            for name in REPRESENTATIONS
        }
        least = min(sizes.values())
        winners.append(
            listing(name.lower() for name, size in sizes.items() if size <= 1.001 * least)
        )
    figures = {name: results.measured("nulls", share, name) for name in REPRESENTATIONS}
    quickest = min(
        figures,
        key=lambda name: (
            value_ns(figures[name], "encode_ns") + value_ns(figures[name], "decode_ns")
        ),
    )
    return (
        f"{share} missing: the smallest is {winners[0]}, and {winners[1]} under Snappy. "
        f"The fastest is {quickest.lower()}."
    )


def reserved_against_left_out(results: Results, theirs: dict) -> list[str]:
    found = []
    for data in ("pums", "ontime"):
        for suffix in ("", COMPRESSED):
            reserved, left_out = (
                results.measured("nulls", data, REPRESENTATIONS[i] + suffix)["encoded_bytes"]
                for i in (0, 2)
            )
            published = (
                theirs[data, REPRESENTATIONS[2] + suffix]
                / theirs[data, REPRESENTATIONS[0] + suffix]
            )
            found.append(
                f"{data}{', under Snappy' if suffix else ''}: leaving missing values out gives "
                f"{left_out / reserved:.2f}× the bytes of a reserved value, and "
                f"{published:.2f}× in the paper."
            )
    return found
