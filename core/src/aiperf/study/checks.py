"""Options of several runs where there is one, or where they have nothing to do (spec: timing §4, rows 33 to 36)."""

from __future__ import annotations

from collections.abc import Iterable

from aiperf.errors import AiperfError, UsageError
from aiperf.planning.kernel_options import KernelOptions
from aiperf.sdk.configuration import OptionValue, SweepSection
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.study import Objective, SlaFilter

_OF_REPEATS = ("run_cooldown_s", "confidence_level", "warmup_first_only", "vary_seed")
_OF_SWEEPS = ("sweep_type", "sweep_order", "sweep_cooldown_s", "sweep_same_seed", "max_cells", "objectives", "sla_filters")
_OF_BOTH = ("consistent_seed", "no_sweep_table", "no_resume", "isolate_runs")
_REPEAT, _SWEEP = "--num-profile-runs of 2 or more", "several values of an option, such as --concurrency 1,2,4"


def of_one_run(given: Iterable[OptionValue]) -> list[AiperfError]:
    """The errors of options that make sense for several runs alone."""
    errors: list[AiperfError] = []
    for value in given:
        field = value.option.spec.field
        if not _says_something(value):
            continue
        if field in _OF_REPEATS or (any(target.owner.startswith("planners:") for target in value.option.targets)):
            errors.append(_refused(value, _REPEAT, "there is one run"))
        elif field in _OF_SWEEPS:
            errors.append(_refused(value, _SWEEP, "there is one run"))
        elif field in _OF_BOTH:
            errors.append(_refused(value, f"{_REPEAT}, or {_SWEEP}", "there is one run"))
    return errors


def of_settings(sweep: SweepSection | None, planner: Descriptor) -> list[AiperfError]:
    """The errors of keys of a file's sweep that its planner doesn't take."""
    from difflib import get_close_matches  # not where no file has a sweep

    known = list(planner.capabilities.get("settings", ()))
    errors: list[AiperfError] = []
    for key in () if sweep is None else sweep.settings:
        near = get_close_matches(key, known, 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known) or 'none of its own'}"
        place = sweep.places.get(key, f"{sweep.typed}: {key}") if sweep is not None else key
        if key not in known:
            errors.append(UsageError(f"{place}: the planner {planner.name} has no such key", hint))
    return errors


def of_study(given: Iterable[OptionValue], kernel: KernelOptions | None, *, sweeps: bool) -> list[AiperfError]:
    """The errors of options that make no sense for these runs."""
    errors: list[AiperfError] = []
    own = (value for value in given if value.option.targets[0].owner == "")
    typed = {value.option.spec.field: value for value in own if _says_something(value)}
    for field, value in typed.items():
        if field in _OF_SWEEPS and not sweeps:
            errors.append(_refused(value, _SWEEP, "all runs have one load"))
        if field in _OF_REPEATS and kernel is not None and kernel.num_profile_runs == 1:
            errors.append(_refused(value, _REPEAT, "each load has one run"))
    if kernel is not None and kernel.sweep_same_seed and kernel.random_seed is None:
        same = typed["sweep_same_seed"].typed
        why = f"{same} needs --random-seed: it is the seed of all cells"
        errors.append(UsageError(why, f"add --random-seed, or drop {same}"))
    for field, parsed in (("objectives", Objective.parsed), ("sla_filters", SlaFilter.parsed)):
        for text in getattr(kernel, field) if kernel is not None else ():
            try:
                parsed(text)
            except ValueError as error:
                errors.append(UsageError(f"{typed[field].typed if field in typed else field}: {text!r} {error}"))
    return errors


def _says_something(value: OptionValue) -> bool:
    """Whether it stands on the line, or in a file with another value than it has anyway."""
    default = value.option.spec.default
    if value.on is not None:
        return value.typed.startswith("-") or value.on != (default == "on")
    return value.typed.startswith("-") or value.values != [default]


def _refused(value: OptionValue, wanted: str, why: str) -> UsageError:
    return UsageError(f"{value.typed} needs {wanted}: {why}", f"drop {value.typed}, or ask for several runs")
