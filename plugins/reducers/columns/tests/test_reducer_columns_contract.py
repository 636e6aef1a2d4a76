"""The reducer keeps the contract of its category."""

from __future__ import annotations

from aiperf.testing import ReducerContract
from aiperf_reducer_columns import Columns


class TestColumnsKeepTheContract(ReducerContract):
    reducer = Columns
