"""Which of a directory's files are results, and whose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiperf import AiperfError, Target
from aiperf.artifacts import MARKER, target_for
from aiperf.earlier import set_aside
from aiperf.exporter import prefix_of
from aiperf.rundir import load_run
from msgspec.structs import replace

_SUMMARY, _TABLE, _RECORDS = "aiperf.json", "aiperf.csv", "jsonl"


class Directory:
    """A run's directory.

    ours: whether this program made it, and not the reference.  target: names its files.  level: the export level, where it is
    known.  marker: what was written behind everything else, None where it isn't there or says nothing.
    """

    def __init__(self, path: Path, target: Target, *, ours: bool, level: str | None) -> None:
        self.path, self.target, self.ours, self.level = path, target, ours, level
        self.marker: dict[str, Any] | None = None
        try:
            found = json.loads((path / MARKER).read_bytes())
            self.marker = found if isinstance(found, dict) else None
        except (OSError, ValueError):
            pass

    @classmethod
    def of(cls, path: Path) -> Directory:
        """The directory's results.

        Raises:
            AiperfError: There are none.
        """
        if not path.is_dir():
            kind = "a file" if path.exists() else "not there"
            raise AiperfError(f"{path} is {kind}; results are a directory", "give the artifact directory of a run")
        if set_aside(path):
            raise AiperfError(
                f"{path} is in the hands of a run that has not begun, or was killed before it did: results of an earlier run"
                " lie aside",
                f"wait for that run; or aiperf report {path} puts them back",
            )
        if (path / "journal" / "run.json").exists():
            plan, clock = load_run(path / "journal")
            target = replace(target_for(plan, clock), directory=path, journal=path / "journal")
            return cls(path, target, ours=True, level=plan.export_level)
        target = Target(path, prefix=prefix_of(path))
        summary = _document(target.file(_SUMMARY))
        if summary is None and not target.file(_RECORDS).exists():
            raise AiperfError(
                f"{path} holds no results: neither {target.file(_SUMMARY).name} nor {target.file(_RECORDS).name}",
                "give the artifact directory of a run",
            )
        ours = summary is not None and "plugins" in summary
        return cls(path, target, ours=ours, level=_level(summary) if summary is not None and ours else None)

    def name(self, kind: str) -> str:
        return self.target.file(kind).name

    def has(self, kind: str) -> bool:
        return self.target.file(kind).is_file()


def _level(summary: dict[str, Any]) -> str | None:
    """The export level, as the configuration in the summary says it; None where it doesn't."""
    written = summary.get("input_config", {}).get("artifacts", {})
    if "records" not in written:
        return None
    return "raw" if written.get("raw") else "records" if written["records"] else "summary"


def _document(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
