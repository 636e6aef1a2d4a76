"""Data sets that read a file, for tests of how one is chosen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiperf import ConfigError, Dataset, hookimpl
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.recognition import Recognition


class Traces(Dataset):
    """Rows with a time."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and "timestamp" in first_row


class Turns(Dataset):
    """Rows with turns."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict) and "turns" in first_row


class Failing(Dataset):
    """Can't look at a file."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return bool(first_row["rows"])


class Anything(Dataset):
    """Knows every file."""

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return True


class Copies:
    """Has a copy of files of one address."""

    @hookimpl
    def aiperf_local_copy(self, url: str) -> Path | None:
        if url.endswith("gone.jsonl"):
            raise ConfigError(f"there is no file {url}")
        return Path("copy.jsonl") if url.startswith("far://") else None


class Looks:
    """Tells the first line of a file, and the first format with one of its keys; a format without keys has times."""

    @hookimpl
    def aiperf_recognise_file(self, path: Path, formats: Sequence[Descriptor] | None, option: str) -> Recognition:
        first = path.read_text().strip().partition("\n")[0] if path.is_file() else ""
        row = json.loads(first) if first.startswith("{") else {}
        for plugin in formats or ():
            if any(key in row for key in plugin.capabilities.get("keys", ["timestamp"])):
                warnings = (f"{path} was seen in a hurry",)
                return Recognition(row, plugin.name, f"{path} is read as {plugin.name}", warnings=warnings)
        return Recognition(row or None, refusal=f"nothing knows {path}", hints=(f"name it with {option}",))


class LooksAway:
    """Sees nothing of any file."""

    @hookimpl
    def aiperf_recognise_file(self, path: Path) -> Recognition | None:
        return None
