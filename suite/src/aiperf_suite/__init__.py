"""The packages that a new user expects, and where plugins and options are that are not installed."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path

from aiperf import hookimpl


class Suite:
    """Names the package of a plugin or an option that this project has."""

    @cached_property
    def _contents(self) -> dict[str, dict[str, str]]:
        contents: dict[str, dict[str, str]] = json.loads((Path(__file__).parent / "contents.json").read_bytes())
        return contents

    @hookimpl
    def aiperf_where_is(self, category: str, name: str) -> str | None:
        return self._contents["plugins"].get(f"{category}:{name}")

    @hookimpl(tryfirst=True)
    def aiperf_unknown_option(self, flag: str) -> str | None:
        package = self._contents["flags"].get(flag)
        return package and f"it is an option of the package {package}, which is not installed: pip install {package}"


__all__ = ["Suite"]
