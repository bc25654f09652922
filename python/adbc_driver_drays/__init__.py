""":mod:`adbc_driver_dray` under the name by which Polars looks for ``drays://``."""

from adbc_driver_dray import *
from adbc_driver_dray import __all__ as __all__
