"""The {{ cookiecutter.name }} engine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aiperf import ShardStart
from aiperf.testing import ShardEngineContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(ShardEngineContract):
    engine = {{ cookiecutter.__class }}


def test_a_shard_has_a_lower_priority(tmp_path: Path) -> None:
    words = (sys.executable, "-c", "import os; print(os.nice(0))")
    shard = {{ cookiecutter.__class }}().start(ShardStart(0, words, (), tmp_path / "log"))
    assert shard.wait(60.0) == 0
    assert int((tmp_path / "log").read_text()) == min(19, os.nice(0) + 5)
