"""Where each run of a study lies, and which seed and options it has."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from aiperf.errors import PluginError
from aiperf.planning.kernel_options import KernelOptions
from aiperf.planning.problems import Settings
from aiperf.sdk.planner import PlannedTrial, Space
from aiperf.sdk.study import StudyCell

CONSISTENT_SEED = 42
"""Where no seed is given."""
_MOST_SEEDS = 1 << 64
_TAKEN = ("aggregate", "sweep_aggregate", "profile_runs", "logs", "journal")
"""Names of folders that no cell may have."""


def directory_of(base: Path, space: Space, trial: PlannedTrial, *, sweeps: bool) -> Path:
    """The run's directory (spec: artifacts §15)."""
    name = trial.cell.name
    if not sweeps:
        return base / "profile_runs" / f"run_{trial.trial:04d}"
    if space.trials == 1:
        return base / name
    number = f"trial_{trial.trial:04d}"
    return base / "profile_runs" / number / name if space.order == "repeated" else base / name / "profile_runs" / number


def check_name(cell: StudyCell, planner: object, *, sweeps: bool) -> None:
    """
    Raises:
        PluginError: The planner gave the cell a name that can't be a folder.
    """
    name = cell.name
    wrong = "/" in name or "\0" in name or name in ("", ".", "..", *_TAKEN) or len(os.fsencode(name)) > 200
    if sweeps and wrong:
        raise PluginError(f"{planner} calls a cell {name!r}, which can't be the name of a folder")


def base_seed(kernel: KernelOptions) -> int | None:
    """The seed from which those of the runs are made; None: each run draws its own."""
    if kernel.random_seed is not None:
        return kernel.random_seed
    return CONSISTENT_SEED if kernel.consistent_seed else None


def seed_of(kernel: KernelOptions, trial: PlannedTrial, base: int | None) -> int:
    """The seed of a run (spec: timing §17)."""
    if base is None:
        return int.from_bytes(os.urandom(8), "big")
    seed = base if kernel.sweep_same_seed else (base + trial.cell.index) % _MOST_SEEDS
    if kernel.vary_seed:
        text = f"{seed}:{trial.cell.name}:{trial.trial}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return seed


def warms_up(kernel: KernelOptions, trial: PlannedTrial) -> bool:
    return trial.trial == 1 or not kernel.warmup_first_only


def pause_s(kernel: KernelOptions, last: PlannedTrial, now: PlannedTrial) -> float:
    """The cooldown between two runs: that of repeats between trials, that of sweeps between cells, the longer between both."""
    return max(
        kernel.run_cooldown_s if now.trial != last.trial else 0.0,
        kernel.sweep_cooldown_s if now.cell.index != last.cell.index else 0.0,
    )


def _is_of_warmup(field: str) -> bool:
    return field.startswith("warmup_") and field != "warmup_first_only"


def settings_of(settings: Settings, directory: Path, seed: int, *, warms_up: bool) -> Settings:
    """The settings of a run: those of its cell with its directory and seed, and without a warmup where it has none."""
    kernel = settings.kernel
    values: dict[str, Any] = {field: getattr(kernel, field) for field in kernel.fields_set}
    values |= {"artifact_dir": directory, "random_seed": seed}
    typed: Mapping[str, str] = settings.typed
    if not warms_up:
        values = {field: value for field, value in values.items() if not _is_of_warmup(field)}
        typed = {field: flag for field, flag in typed.items() if not _is_of_warmup(field)}
        if kernel.cache_bust.isolates:
            del values["cache_bust"]  # it marks requests of a warmup alone
    return replace(settings, kernel=KernelOptions(**values), typed=dict(typed))
