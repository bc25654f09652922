"""The validation suite's cases in PostgreSQL's words: binary strings are `bytea`, and times have
microseconds. What is not named here stays as the suite has it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

#: Units of times in Arrow's C format strings, and how many microseconds each has.
MICROSECONDS = {"s": 1_000_000, "m": 1000}
PART = re.compile(r"^// part: (\w+)$(.*?)(?=^// part: |\Z)", re.DOTALL | re.MULTILINE)
TIME = re.compile(r'"(tt|ts)([smun])(:?)')


def override(case: str) -> str | None:
    """The parts of a case that PostgreSQL has in another form; None if it has none."""
    parts = dict(PART.findall(case))
    changed = {}
    for name in ("setup_query", "query"):
        if name in parts and (text := sql(parts[name])) != parts[name]:
            changed[name] = text
    units = set(TIME.findall(parts.get("expected_schema", parts.get("input_schema", ""))))
    for _, unit, _ in units:
        if unit == "n":
            skip = '\nskip = "PostgreSQL\'s times have microseconds"\n'
            changed["metadata"] = skip + parts.get("metadata", "")
        elif unit in MICROSECONDS:
            source = "expected" if "expected" in parts else "input"
            changed["expected_schema"] = TIME.sub(microseconds, parts[f"{source}_schema"])
            changed["expected"] = scaled(parts[source], MICROSECONDS[unit])
    if not changed:
        return None
    return "".join(f"// part: {name}\n{text}\n" for name, text in changed.items())


def sql(text: str) -> str:
    text = re.sub(r"VARBINARY\(\d+\)|BLOB", "BYTEA", text)
    text = re.sub(r"from_hex\('(\w*)'\)", r"'\\x\1'::bytea", text)
    return re.sub(r"\bX'(\w*)'", r"'\\x\1'", text)


def microseconds(match: re.Match[str]) -> str:
    kind, _, colon = match.groups()
    return f'"{kind}u{colon}'


def scaled(rows: str, factor: int) -> str:
    """The rows with their times in microseconds: numbers in columns like `res` and `value`."""
    lines = []
    for line in filter(str.strip, rows.splitlines()):
        if line.startswith("//"):
            continue
        row = json.loads(line)
        times = {
            name: value * factor
            for name, value in row.items()
            if name.startswith(("res", "value")) and isinstance(value, int)
        }
        lines.append(json.dumps(row | times))
    return "\n" + "\n".join(lines) + "\n"


def write_overrides(queries: Path, folder: Path) -> None:
    """Writes a case for each of the suite's that PostgreSQL has in another form."""
    for path in queries.rglob("*.txtcase"):
        if (text := override(path.read_text())) is not None:
            target = folder / path.relative_to(queries)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
