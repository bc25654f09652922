from __future__ import annotations

from typing import NamedTuple

__all__ = ["Interval"]


class Interval(NamedTuple):
    """An SQL interval in a row. Its parts do not convert into each other: months and days differ in
    length.
    """

    months: int
    days: int
    nanoseconds: int
