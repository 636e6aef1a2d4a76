"""A pytest plugin: ``pytest --aiperf-plugins DISTRIBUTION`` puts what a package has installed to its contracts, beside a
project's own tests.

pytest imports this wherever the kernel is installed, so nothing else is imported until the option is given.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from aiperf.sdk.descriptor import Descriptor

_FLAG = "--aiperf-plugins"
_FILES = "aiperf_contracts"
"""Under which pytest-xdist hands the files of tests to its workers, which must all collect the same."""
_MADE = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("aiperf").addoption(
        _FLAG,
        action="append",
        default=[],
        metavar="DISTRIBUTION",
        help="put the aiperf plugins of this installed package to the contracts of their categories, too; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    wanted: list[str] = config.getoption(_FLAG)
    if not wanted:
        return
    if hasattr(config, "workerinput"):
        config.args += config.workerinput[_FILES]
        return
    from aiperf.registry.registry import Registry

    from aiperf_testing.trials import Subjects, write_subjects

    registry = Registry.discover()
    known = tuple(one for category in registry.categories() for one in registry.all(category))
    installed = (*known, *registry.broken)
    files = []
    folder = Path(tempfile.mkdtemp(prefix="aiperf-contracts-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    for distribution in {_identifier(name): name for name in wanted}.values():
        tried = _of(distribution, installed)
        place = folder / _identifier(distribution)
        place.mkdir()
        names = [f"Test_{one.category}_{_identifier(one.name)}" for one in tried]
        files.append(str(write_subjects(place, Subjects(tried, known), f"test_{place.name}", names)))
    config.args += files
    config.stash[_MADE] = files


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A worker of pytest-xdist is about to be started."""
    node.workerinput[_FILES] = node.config.stash.get(_MADE, [])


def _of(distribution: str, installed: Sequence[Descriptor]) -> tuple[Descriptor, ...]:
    """Its plugins, broken ones too, which fail their tests."""
    there = {_identifier(one.distribution): one.distribution for one in installed}
    tried = tuple(one for one in installed if _identifier(one.distribution) == _identifier(distribution))
    if not tried:
        from difflib import get_close_matches

        close = get_close_matches(_identifier(distribution), there, 1, 0.6)
        meant = f"; did you mean {there[close[0]]}?" if close else ""
        raise pytest.UsageError(f"{_FLAG}: no installed package {distribution!r} has plugins{meant}")
    return tried


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).lower()
