"""Files as a ZIP, the same bytes for the same files."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from urllib.parse import urlencode

_FIRST = (1980, 1, 1, 0, 0, 0)
"""The earliest time of a ZIP."""


def packed(files: Mapping[str, bytes]) -> bytes:
    """A ZIP of the files by their names."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _FIRST), content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def address(runs: list[str], state: str) -> str:
    """The page's address with the runs and the rest of its choice, *state*, a query."""
    return "/?" + "&".join(filter(None, (urlencode({"runs": ",".join(runs)}), state.lstrip("?&"))))


__all__ = ["address", "packed"]
