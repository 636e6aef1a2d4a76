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


def install(distribution: str) -> str:
    """A hint."""
    return f"pip install {distribution}"
