"""A default installation stays small: the packages that it needs take at most 250 MB."""

from __future__ import annotations

import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

from environments import suite
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
MOST_BYTES = 250_000_000
PATTERNS = ("core/pyproject.toml", "templates/pyproject.toml", "libraries/*/pyproject.toml", "plugins/*/*/pyproject.toml")
PROJECTS = [path.parent for pattern in PATTERNS for path in ROOT.glob(pattern)]
OF_EXTRAS = {"pyarrow", "soundfile", "av", "transformers", "matplotlib", "cookiecutter"}


def project(folder: Path) -> dict[str, object]:
    declared: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return declared


def needed(requirements: list[str]) -> dict[str, Distribution]:
    """The distributions by name that the requirements bring, and what these bring."""
    found: dict[str, Distribution] = {}
    visited: set[tuple[str, frozenset[str]]] = set()
    waiting = [(Requirement(text), {""}) for text in requirements]
    while waiting:
        wanted, asked = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in visited:
            continue
        if wanted.marker is None or any(wanted.marker.evaluate({"extra": extra}) for extra in asked):
            visited.add((name, frozenset(wanted.extras)))
            found[name] = distribution(name)
            waiting += [(Requirement(text), {"", *wanted.extras}) for text in found[name].requires or ()]
    return found


def size(name: str, package: Distribution, homes: dict[str, Path]) -> int:
    """Bytes of its files on the disk; of our own packages, which are installed in place, of their sources."""
    if name in homes:
        paths = list((homes[name] / "src").rglob("*"))
    else:
        paths = [Path(str(package.locate_file(file))) for file in package.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file())


def test_a_default_installation_takes_at_most_250_mb() -> None:
    homes = {str(project(folder)["name"]): folder for folder in PROJECTS}
    sizes = {name: size(name, package, homes) for name, package in needed(suite()).items()}
    assert sizes["numpy"] > 10_000_000, "files are counted"
    assert not OF_EXTRAS & sizes.keys()
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:8]
    told = ", ".join(f"{name} {bytes_ / 1e6:.0f} MB" for name, bytes_ in largest)
    assert sum(sizes.values()) <= MOST_BYTES, f"{sum(sizes.values()) / 1e6:.0f} MB; the largest: {told}"
