"""What packages of this project have that are not installed: ``packages.json``, which a script makes from their manifests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from aiperf.sdk.descriptor import canonical


class Packages(Struct, frozen=True):
    """plugins: distribution by ``category:name``, aliases too.  flags: distribution of each option of profile."""

    plugins: dict[str, str]
    flags: dict[str, str]


@cache
def packages() -> Packages:
    return msgspec.json.decode((Path(__file__).parent / "packages.json").read_bytes(), type=Packages)


def package_of(category: str, name: str) -> str | None:
    """The distribution with the plugin of that name or alias; None where it is none of ours."""
    return packages().plugins.get(f"{category}:{canonical(name)}")


def is_ours(distribution: str) -> bool:
    """Whether this project makes the distribution, by its normal name."""
    return distribution in {"aiperf-core", *packages().plugins.values(), *packages().flags.values()}


def where_it_is(category: str, name: str) -> list[str]:
    """Hints where a plugin of ours is not installed: its package, and the command that installs it."""
    package = package_of(category, name)
    return [] if package is None else [f"{name} is in the package {package}, which is not installed", install(package)]


def install(distribution: str) -> str:
    """A hint."""
    return f"pip install {distribution}"
