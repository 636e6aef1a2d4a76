"""The kernel's options of studies: repeats of a load, and sweeps over several loads.

Who reads them is the room ``study``; a run by itself refuses them by name.
"""

from __future__ import annotations

from enum import StrEnum

from aiperf.foreign import PLANNER
from aiperf.sdk.options import Finite, Options, Word, option

_MOST_COOLDOWN_S = 86400


class SweepOrder(StrEnum):
    REPEATED = "repeated"
    INDEPENDENT = "independent"


class StudyOptions(Options):
    """Options of ``aiperf profile`` that make several runs of it, or say how these are made."""

    # Repeats
    num_profile_runs: int = option("--num-profile-runs", default=1, ge=1, le=10, group="Repeats", metavar="INT",
        place="multi_run.num_runs", help="Runs of each load, one after the other; their results are reported with confidence.")
    run_cooldown_s: Finite = option("--profile-run-cooldown-seconds", default=0.0, ge=0, le=_MOST_COOLDOWN_S, group="Repeats",
        metavar="SECONDS", place="multi_run.cooldown_seconds", help="Pause between the runs of a load.")
    confidence_level: Finite = option("--confidence-level", default=0.95, gt=0, lt=1, group="Repeats", metavar="LEVEL",
        place="multi_run.confidence_level", help="Level of the confidence intervals over the runs of a load.")
    warmup_first_only: bool = option("--profile-run-disable-warmup-after-first", default=True,
        negative="--no-profile-run-disable-warmup-after-first", group="Repeats", place="multi_run.disable_warmup_after_first",
        help="Warm up before the first run of a load alone.")
    consistent_seed: bool = option("--set-consistent-seed", default=True, negative="--no-set-consistent-seed", group="Repeats",
        place="multi_run.set_consistent_seed", help="Use seed 42 where --random-seed gives none; else each run has its own.")
    vary_seed: bool = option("--vary-seed-per-trial", default=False, negative="--no-vary-seed-per-trial", group="Repeats",
        place="multi_run.vary_seed_per_trial", help="Give each run of a load another seed, so that it sends other prompts.")

    # Sweeps
    sweep_type: Word | None = option("--sweep-type", group="Sweeps", metavar="NAME", shown=PLANNER, place="sweep.type",
        help="What plans the runs of several lists: grid, zip, or the name of an installed planner.")
    variants: list[str] = option("--variant", "--sweep-variant", default=[], group="Sweeps", metavar="[NAME:]KEY=VALUE,…",
        commas=False, help="A cell of a sweep, by name, with options of its own: \"small: concurrency=4, isl=128\"; repeat it.")
    sweep_order: SweepOrder = option("--parameter-sweep-mode", default=SweepOrder.REPEATED, group="Sweeps",
        place="sweep.iteration_order",
        help="With several runs of each cell: all cells, then all again; or all runs of a cell, then the next cell.")
    sweep_cooldown_s: Finite = option("--parameter-sweep-cooldown-seconds", default=0.0, ge=0, le=_MOST_COOLDOWN_S,
        group="Sweeps", metavar="SECONDS", place="sweep.cooldown_seconds", help="Pause between the cells of a sweep.")
    sweep_same_seed: bool = option("--parameter-sweep-same-seed", default=False, negative="--no-parameter-sweep-same-seed",
        group="Sweeps", place="sweep.same_seed",
        help="Use --random-seed for every cell; else a cell's seed is that plus its number.")
    no_sweep_table: bool = option("--no-sweep-table", default=False, group="Sweeps", place="no_sweep_table",
        help="Print no table of the runs at the end.")
    max_cells: int = option("--max-cells", default=200, ge=1, group="Sweeps", metavar="INT", place="sweep.max_cells",
        help="Most cells that a sweep may have.")
    objectives: list[str] = option("--objective", default=[], group="Sweeps", metavar="TAG:STAT:max|min",
        place="sweep.objectives", help="What a better cell has more or less of, such as time_to_first_token:p99:min.")
    sla_filters: list[str] = option("--search-sla", default=[], group="Sweeps", metavar="TAG:STAT:OP:NUMBER",
        place="sweep.sla_filters", commas=False,
        help="Only cells whose mean holds this count as best, such as time_to_first_token:p95:lt:200.")

    # Both
    no_resume: bool = option("--no-resume", default=False, group="Repeats",
        help="Set aside what the directory has of these runs, and begin anew.")
    isolate_runs: bool = option("--isolate-runs", default=False, group="Repeats", place="multi_run.isolate_runs",
        help="Start new processes for each run.")
