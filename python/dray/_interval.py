"""SQL intervals as Python values."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Interval"]


class Interval(NamedTuple):
    """An SQL interval in a row.

    The three parts are independent of each other, because months and days have no fixed length.

    Attributes
    ----------
    months, days, nanoseconds : int
        Each may be negative.
    """

    months: int
    days: int
    nanoseconds: int
