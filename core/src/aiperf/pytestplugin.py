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
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from aiperf.descriptor import Descriptor

_FLAG = "--aiperf-plugins"


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
    if not wanted or hasattr(config, "workerinput"):  # a process of pytest-xdist gets its parent's arguments
        return
    from aiperf.conformance import Subjects, write_subjects
    from aiperf.registry import Registry

    registry = Registry.discover()
    known = tuple(one for category in registry.categories() for one in registry.all(category))
    folder = Path(tempfile.mkdtemp(prefix="aiperf-contracts-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    for distribution in wanted:
        tried = _of(distribution, known)
        place = folder / _identifier(distribution)
        place.mkdir()
        names = [f"Test_{one.category}_{_identifier(one.name)}" for one in tried]
        config.args.append(str(write_subjects(place, Subjects(tried, known), f"test_{place.name}", names)))


def _of(distribution: str, known: Sequence[Descriptor]) -> tuple[Descriptor, ...]:
    there = {_identifier(one.distribution): one.distribution for one in known}
    tried = tuple(one for one in known if _identifier(one.distribution) == _identifier(distribution))
    if not tried:
        from difflib import get_close_matches

        close = get_close_matches(_identifier(distribution), there, n=3)
        meant = f"; did you mean {' or '.join(there[key] for key in close)}?" if close else ""
        raise pytest.UsageError(f"{_FLAG}: no installed package {distribution!r} has usable plugins{meant}")
    return tried


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).lower()
