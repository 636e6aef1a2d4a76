"""Fixtures of whole-program tests: the simulator and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program

QUICK = {"first_token_ms": 5, "decode_ms": 1, "decode_batch_us": 0}


@pytest.fixture(scope="session")
def shared_simulator() -> Iterator[Simulator]:
    with running(**QUICK) as simulator:
        yield simulator


@pytest.fixture
def simulator(shared_simulator: Simulator) -> Simulator:
    """A quick server without requests of other tests."""
    shared_simulator.reset()
    return shared_simulator


@pytest.fixture
def aiperf(tmp_path: Path) -> Program:
    return Program(tmp_path)
