"""Why a run finds what it finds: the parts of the two times that a claim compares."""

from __future__ import annotations

from lab.link.direction import rate_bits
from lab.objects.claims import BSON, FACTOR, GZIP, HAND, INPLACE, LEAST, Pair, compared
from lab.objects.claims import median, object_bytes, size, title, wall

#: A term is named from this share on.
SHARE = 0.1
JSON = "C++ json"


def reason(found: dict, claim: dict) -> str:
    """What makes the difference that a claim is about, and why it is another one today."""
    pair = compared(found, claim["id"])
    if pair is None:
        return ""
    if claim["part"] == "sizes":
        return sizes(found)
    sentences = [described(found, pair.slow), described(found, pair.fast)]
    if claim["part"] in ("reads", "sorts"):
        sentences.append(difference(found, pair))
    sentences.append(common(found, pair, claim["value"]))
    if claim["part"] == "reads":
        sentences.append(otherwise(pair))
    return " ".join(sentence for sentence in sentences if sentence)


def shown(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def figure(case: dict, name: str) -> float:
    return median(case, name) or 0.0


def terms(found: dict, case: dict) -> dict[str, float]:
    """The parts of a time. Those of reads, which are sums over threads, and of sorts add up; the
    link and the processors can be busy at once.
    """
    cores = found["machine"]["cores"]
    machine = {
        "collecting garbage": figure(case, "gc_s"),
        "compiling": figure(case, "jit_s"),
    }
    match case["experiment"]:
        case "reads":
            parts = {
                "read calls": figure(case, "io_s"),
                "making objects ready": figure(case, "ready_s"),
                "touching every field": figure(case, "touch_s"),
            }
            return {**parts, "the rest": max(0.0, wall(case) - sum(parts.values()))}
        case "sorts":
            rest = wall(case) - figure(case, "io_s") - sum(machine.values())
            return {"reads and writes": figure(case, "io_s"), **machine, "work on objects": rest}
        case "requests":
            seconds = figure(case, "cpu_s") + figure(case, "client_cpu_s")
            link = 8 * figure(case, "bytes") / rate_bits(found["scale"]["rate"])
            return {"the link": link, "the processors": seconds / cores}
        case _:
            return {"the processors": figure(case, "cpu_s") / cores, **machine}


def described(found: dict, case: dict) -> str:
    """A case's time and its largest terms."""
    parts = terms(found, case)
    total = sum(parts.values()) if case["experiment"] == "reads" else wall(case)
    named = [
        f"{name} {min(1.0, value / total):.0%}"
        for name, value in sorted(parts.items(), key=lambda term: -term[1])
        if value >= SHARE * total
    ]
    shares = f": {', '.join(named)}" if named else ""
    machine = figure(case, "gc_s") + figure(case, "jit_s")
    if case["experiment"] == "reads" and machine >= SHARE * wall(case):
        shares += f"; {machine / wall(case):.0%} of it are compiling and collecting garbage"
    return f"{title(case)} takes {shown(wall(case) * 1e3)} ms{shares}."


def difference(found: dict, pair: Pair) -> str:
    """The term that makes most of the difference."""
    slow, fast = terms(found, pair.slow), terms(found, pair.fast)
    more = {name: value - fast.get(name, 0.0) for name, value in slow.items()}
    name = max(more, key=more.__getitem__)
    share = more[name] / max(sum(more.values()), more[name])
    return f"Of the difference, {share:.0%} is {name}." if more[name] > 0 else ""


def common(found: dict, pair: Pair, thesis: float) -> str:
    """What hides a difference that the thesis found: the largest term, if both have it."""
    if pair.ratio > LEAST and pair.ratio * FACTOR >= thesis:
        return ""
    slow, fast = terms(found, pair.slow), terms(found, pair.fast)
    name = max(fast, key=fast.__getitem__)
    if slow.get(name, 0.0) > FACTOR * fast[name]:
        return ""
    return f"The ratio is smaller because both spend about as much on {name}."


def otherwise(pair: Pair) -> str:
    """Ratios of parts of the times of reads."""

    def ratio(*names: str) -> float:
        slow, fast = (sum(figure(case, name) for name in names) for case in (pair.slow, pair.fast))
        return slow / fast if fast else float("inf")

    return (
        f"Without read calls the ratio is {shown(ratio('ready_s', 'touch_s'))}; up to objects that "
        f"are ready, where the thesis stopped its clock, {shown(ratio('io_s', 'ready_s'))}."
    )


def sizes(found: dict) -> str:
    """What forms of customers take, beside plain ones."""
    sentences = []
    for name, other in ((BSON, JSON), (JSON, GZIP), (INPLACE, HAND)):
        try:
            ratio = object_bytes(size(found, name)) / object_bytes(size(found, other))
        except KeyError:
            continue
        sentences.append(f"{name} takes {shown(ratio)} times the bytes of {other}.")
    return " ".join(sentences)
