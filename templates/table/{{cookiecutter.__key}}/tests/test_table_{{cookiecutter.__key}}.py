"""The {{ cookiecutter.name }} table."""

from __future__ import annotations

import numpy as np
from aiperf.testing import TablesContract, sample_evidence

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}

SHARDS = {"shard": np.array([0.0, 1.0, 1.0, 1.0])}
GOOD = sample_evidence(read_column=SHARDS.__getitem__)


class TestItKeepsTheContract(TablesContract):
    tables = {{ cookiecutter.__class }}
    cases = ((GOOD, ("{{ cookiecutter.__key }}",)), (sample_evidence(valid=0), ()))


def test_each_worker_has_a_row() -> None:
    table = {{ cookiecutter.__class }}().tables(GOOD)
    assert table is not None and table.rows == ((0, 1, 25.0), (1, 3, 75.0))
