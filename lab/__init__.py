"""The laboratory: benchmarks of Dray beside its rivals. Nothing in the product depends on it.

Each program is a module that is started in the root of the checkout: `python -m lab.lineitem.bench`.
"""

from pathlib import Path

#: Where benchmarks write, which is no part of the repository.
RESULTS = Path(__file__).resolve().parent / "results"
