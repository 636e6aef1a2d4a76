"""Where results go: the artifact directory and the base name of exports, checked before anything is made."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from aiperf.errors import ConfigError
from aiperf.plan import PhasePlan

_ENDINGS = re.compile(
    r"(_server_metrics\.(parquet|jsonl|json|csv)|_network_latency\.jsonl|_gpu_telemetry\.jsonl|_timeslices\.(csv|json)"
    r"|_console\.txt|_raw\.jsonl|_arrivals\.jsonl|_chunks\.parquet|\.parquet|\.csv|\.json|\.jsonl)$"
)
_TAKEN = ("inputs",)
"""Base names whose ``.json`` is another artifact."""
_LONGEST = 200


def automatic_name(models: Sequence[str], service_kind: str, endpoint_type: str, phase: PhasePlan) -> str:
    """``<model>-<service kind>-<endpoint type>-<stimulus>``."""
    model = models[0].replace("/", "_").replace("\0", "_") + ("_multi" if len(models) > 1 else "")
    rest = "-".join((service_kind, endpoint_type, *_stimulus(phase)))
    return f"{model[: max(1, _LONGEST - 1 - len(rest))]}-{rest}"


def _stimulus(phase: PhasePlan) -> list[str]:
    if phase.users is not None and phase.rate is not None:
        return ["user_centric", f"users{phase.users}", f"qps{float(phase.rate)}"]
    if phase.replay is not None:
        return ["fixed_schedule"]
    parts = []
    if phase.concurrency is not None:
        parts.append(f"concurrency{phase.concurrency}")
    if phase.rate is not None:
        parts.append(f"request_rate{float(phase.rate)}")
    if phase.rate_series is not None:
        parts.append("request_rate_series")
    return parts


def check_directory(directory: Path) -> None:
    """Whether results can be written to it, or to it once it is made.

    Raises:
        ConfigError: They can't; says which part of the path is in the way.
    """
    existing = directory
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            directory.stat()
        while not os.path.lexists(existing) and existing != existing.parent:
            existing = existing.parent
        is_directory = existing.is_dir()
    except (OSError, ValueError) as error:  # a name too long, or a NUL in it
        raise ConfigError(f"{directory} can't be a directory: {getattr(error, 'strerror', None) or error}") from error
    if not is_directory:
        kind = "a link to nothing" if existing.is_symlink() and not existing.exists() else "a file"
        where = "it" if existing == directory else str(existing)
        raise ConfigError(f"{directory} can't be a directory: {where} is {kind}", "choose another one")
    for part in (existing, directory / "logs", directory / "journal"):
        if part.exists() and not os.access(part, os.W_OK | os.X_OK):
            raise ConfigError(f"{directory} can't be written to: no permission in {part}", "choose another one")
    journal = directory / "journal"
    if journal.is_dir() and not (journal / "run.json").exists() and any(journal.iterdir()):
        raise ConfigError(f"{journal} is there, and is not the journal of a run; it would be replaced", "choose another one")


def export_base(given: str) -> str:
    """The base name of exports: the last component of a path, without the ending of any export.

    Raises:
        ConfigError: Nothing is left of it, or it is another artifact's.
    """
    base = _ENDINGS.sub("", Path(given).name)
    if base in ("", ".", ".."):
        raise ConfigError(f"{given!r} names no file", "give a name such as run1")
    if base in _TAKEN:
        raise ConfigError(f"{given!r} would put the summary in the place of {base}.json", "give another name, such as run1")
    return base
