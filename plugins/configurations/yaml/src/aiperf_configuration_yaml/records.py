"""Rows of a data set that stand in the configuration, as the file that data sets read."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from aiperf import ConfigError

log = logging.getLogger(__name__)

_MANY = 500
"""Records in a file from which a warning names a faster form."""


def written(records: Any, name: str) -> Path:
    """The file with the records of the configuration called *name*, or the directory with its pools by name.

    It stands in the user's cache (``XDG_CACHE_HOME``, else ``~/.cache``) under a hash of its content, so the same records are
    the same file.

    Raises:
        ConfigError: It can't be written.
        ValueError: They are neither a list of mappings nor such lists by name.
    """
    pools = records if isinstance(records, dict) else {"": records}
    lines = {pool: _lines(rows, pool) for pool, rows in pools.items()}
    if not lines:
        raise ValueError("it has no pools")
    count = sum(text.count("\n") for text in lines.values())
    if count > _MANY:
        log.warning("%s has %d records; a file of them, given by its path, is read faster", name, count)
    digest = hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "aiperf" / "records" / digest
    files = {folder / (f"{pool}.jsonl" if pool else f"{name}.records.jsonl"): text for pool, text in lines.items()}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path, text in files.items():
            _write(path, text)
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"the records of {name} can't be written below {folder}: {why}", "set XDG_CACHE_HOME") from error
    return folder if isinstance(records, dict) else next(iter(files))


def _lines(rows: Any, pool: str) -> str:
    what = f"the pool {pool} " if pool else ""
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{what}must be a list of mappings, one for each row")
    if pool in (".", "..") or "/" in pool:
        raise ValueError(f"{pool!r} can't be the name of a pool")
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write(path: Path, text: str) -> None:
    """Write the file, readable for its owner alone; a run that makes the same one meanwhile makes no difference."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text)
    Path(file.name).replace(path)
