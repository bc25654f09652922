"""The laboratory: benchmarks of Dray beside its rivals. Nothing in the product depends on it.

A program is a module and is started in the root of the checkout: `python -m lab.lineitem.bench`.
"""

from pathlib import Path

#: Folder of results, which is not under version control.
RESULTS = Path(__file__).resolve().parent / "results"
