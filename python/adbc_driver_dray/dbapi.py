""":mod:`dray.dbapi` under the name by which Polars looks for ``dray://`` and ``dray:…``."""

from dray.dbapi import *
from dray.dbapi import __all__ as __all__
