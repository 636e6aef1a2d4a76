"""Fixtures of whole-program tests: the simulator and the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program

if TYPE_CHECKING:
    from dist import Wheel

QUICK = {"first_token_ms": 5, "decode_ms": 1, "decode_batch_us": 0}
LONGEST = (
    "test_strangers.py", "test_shards.py", "test_directory.py", "test_templates.py", "test_timing.py", "test_kill_table.py",
    "test_validate_plugins.py", "test_recipes.py", "test_metrics.py", "test_signals.py",
)  # fmt: skip
"""Files that take longest, in this order: they begin first, so that no process is left alone with one of them at the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


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


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wheel]:
    """The wheels of all packages."""
    import dist
    from environments import projects

    made = dist.distributions(tmp_path_factory.mktemp("dist"), projects().values())
    return {wheel.name: wheel for wheel in made}
