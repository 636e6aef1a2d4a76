"""From a command line that asks for several runs to a study: its own options, its space, and the options of each cell."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs

from aiperf.cli.commandline import Scan
from aiperf.cli.settings import FIRST_FIELDS, owned_by_planners, raise_all, run_settings, shown_command, validated
from aiperf.errors import AiperfError, UsageError
from aiperf.foreign import PLANNER, SCENARIOS
from aiperf.planning.kernel_options import KernelOptions
from aiperf.planning.problems import Settings
from aiperf.redaction import redact
from aiperf.registry.option_specs import conflicts, validate
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.planner import Space
from aiperf.sdk.study import Dimension, Objective, Scenario, Setting, SlaFilter, StudyCell
from aiperf.study import checks, lists, trials
from aiperf.study.request import StudyRequest

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry

_WITHOUT_EFFECT = frozenset((
    "artifact_dir", "verbose", "extra_verbose", "quiet", "log_level", "ui", "stats_interval_s", "dry_run", "as_json",
    "no_resume", "no_sweep_table", "max_cells", "isolate_runs", "confidence_level", "objectives", "sla_filters", "variants",
    "sweep_type",
))  # fmt: skip
"""Options that change nothing of what is measured: a study that is continued may have others."""


def call(request: StudyRequest) -> int:
    """Make the study, or say what it would be; returns the exit code."""
    from aiperf.run.start import Interruption, Signals

    if request.base.kernel.dry_run:
        from aiperf.study.dry_run import dry_run

        return dry_run(request)
    from aiperf.study.loop import run

    with Signals().caught() as signals:
        try:
            return run(request, signals, console=True)[1]
        except Interruption:
            return signals.code


def requested(registry: Registry, scan: Scan, options: Sequence[Option]) -> StudyRequest:
    """What the line asks for.

    Raises:
        UsageError, ConfigErrors: All faults of what is not a cell's own.
    """
    return _Line(registry, scan, options).request()


class _Line:
    """A command line whose options have lists, variants or repeats, or whose file has cells."""

    def __init__(self, registry: Registry, scan: Scan, options: Sequence[Option]) -> None:
        self._registry, self._scan, self._options = registry, scan, options
        self._errors: list[AiperfError] = []
        self._lists = [value for value in scan.given if lists.is_list(value)]
        self._variants = next((value for value in scan.given if value.option.spec.field == "variants"), None)
        listed = {value.option.spec for value in self._lists}
        self._given = [value for value in scan.given if value.option.spec not in listed]
        self._by_path = {lists.path_of(option): option for option in options}
        self._paths: dict[str, str] = {}

    def request(self) -> StudyRequest:
        dimensions, scenarios = self._cells()
        sweeps = bool(dimensions or scenarios)
        base = self._base_scan()
        kernel, errors = self._kernel(base)
        self._errors += errors
        self._errors += checks.of_study(base.given, kernel, sweeps=sweeps)
        name = self._planner(kernel)
        planner, options = None, None
        try:
            descriptor = self._registry.descriptor("planners", name)
        except AiperfError as error:
            given = next((value.typed for value in base.given if value.option.spec.field == "sweep_type"), "")
            error.message = f"{given}: {error.message}" if given else error.message
            self._errors.append(error)
        else:
            planner = descriptor.ref
            self._errors += checks.of_settings(self._scan.sweep, descriptor)
            options = validated(self._registry, [descriptor], base, self._errors).get(descriptor.key)
            if options is not None:
                self._errors += conflicts(descriptor.key, options, base.typed_of(descriptor.key))
        raise_all(self._errors)
        assert kernel is not None and planner is not None  # their errors are raised above
        sweep = self._scan.sweep
        seed = trials.base_seed(kernel)
        space = Space(
            dimensions, scenarios, kernel.num_profile_runs, str(kernel.sweep_order),
            int.from_bytes(os.urandom(8), "big") if seed is None else seed,
            tuple(map(Objective.parsed, kernel.objectives)), kernel.confidence_level, str(kernel.export_level),
            {} if sweep is None else sweep.settings, tuple(map(SlaFilter.parsed, kernel.sla_filters)),
        )  # fmt: skip
        settings = Settings(kernel, {}, base.typed(), shown_command(self._scan), self._scan.configuration)
        typed = {lists.path_of(value.option): value.typed for value in self._lists}
        return StudyRequest(
            self._registry, settings, space, planner, options, self._settings_of, self._texts(base), typed,
        )  # fmt: skip

    def _cells(self) -> tuple[tuple[Dimension, ...], tuple[Scenario, ...]]:
        """What makes cells: lists, variants, or the file."""
        sweep, dimensions, scenarios = self._scan.sweep, list[Dimension](), tuple[Scenario, ...]()
        sources = [value.typed for value in (*self._lists[:1], *filter(None, [self._variants]))]
        sources += [sweep.typed] if sweep is not None else []
        if len(sources) > 1:
            why = f"{' and '.join(sources)} exclude each other: each makes cells of its own"
            self._errors.append(UsageError(why, f"keep {sources[0]} alone"))
        for value in self._lists:
            with_errors = partial(lists.dimension_of, value)
            dimensions += self._tried(with_errors, [])
        if self._variants is not None:
            made = partial(lists.scenarios_of, self._variants, self._options, with_file=self._scan.configuration is not None)
            scenarios = tuple(self._tried(made, []))
        keyed = lists.distinct(dimensions)
        if sweep is not None and not self._lists and self._variants is None:
            keyed, scenarios = sweep.dimensions, sweep.scenarios
        self._paths = {each.key: each.path for each in keyed}
        values = [(each.path, value) for each in keyed for value in (*each.values, *each.choices)]
        self._refuse_secrets([*values, *(pair for each in scenarios for pair in each.parameters.items())])
        return keyed, scenarios

    def _refuse_secrets(self, values: Sequence[tuple[str, Setting]]) -> None:
        """Values of cells stand in manifests, tables and the names of directories."""
        places = {path for path, option in self._by_path.items() if option.spec.secret}
        for path in dict.fromkeys(path for path, _ in values):
            texts = [str(value) for place, value in values if place == path]
            if any(f"{path}.".startswith(f"{place}.") for place in places) or any(redact(text) != text for text in texts):
                why = f"{path} has a secret, and can't differ between cells: their values stand in files and in names"
                self._errors.append(UsageError(why, "give it to all runs alike, and make a study for each value"))

    def _tried(self, make: Callable[[], Any], failed: Any) -> Any:
        try:
            made = make()
        except UsageError as error:
            self._errors.append(error)
            return failed
        return made if isinstance(made, tuple) and made and isinstance(made[0], Scenario) else [made]

    def _base_scan(self) -> Scan:
        """What was given but for lists; of a file with cells, its values outside of them, whose faults the cells tell."""
        base = structs.replace(self._scan, given=list(self._given), errors=[])
        if self._scan.file is not None:
            base.add(value for value in self._scan.file(self._options, None) if isinstance(value, OptionValue))
        return base

    def _kernel(self, base: Scan) -> tuple[KernelOptions | None, list[AiperfError]]:
        own = {field: text for field, text in base.values().get("", {}).items() if field not in FIRST_FIELDS}
        return validate(KernelOptions, self._registry.kernel_options, own, base.typed_of(""))

    def _planner(self, kernel: KernelOptions | None) -> str:
        if kernel is not None and kernel.sweep_type is not None:
            return kernel.sweep_type
        if self._scan.sweep is not None:
            return self._scan.sweep.planner
        return SCENARIOS if self._variants is not None else PLANNER

    def _texts(self, base: Scan) -> Mapping[str, Setting]:
        """The options that a study has in common with its continuation."""
        texts: dict[str, Setting] = {}
        for value in base.given:
            spec = value.option.spec
            if spec.secret or spec.field in _WITHOUT_EFFECT or spec.field in FIRST_FIELDS:
                continue
            texts[spec.flags[0]] = value.on if value.on is not None else ",".join(map(redact, value.values))
        return texts

    def _settings_of(self, cell: StudyCell) -> Settings:
        """The settings of a cell: its values stand in the place of those of the line and of the file."""
        of_file: dict[str, Setting] = {}
        own: dict[object, OptionValue] = {}
        typed = {lists.path_of(value.option): value.typed for value in self._lists}
        for key, value in cell.parameters.items():
            path = self._paths.get(key, key)
            option = self._by_path.get(path) if self._scan.sweep is None else None
            if option is None:
                of_file[path] = value
            else:
                own[option.spec] = lists.option_value(option, value, typed.get(path, _familiar(option)))
        alone = self._scan.typed_alone if self._scan.configuration is not None else self._given
        listed = {value.option.spec for value in self._lists}
        given = [_without_planners(value) for value in alone if value.option.spec not in {*own, *listed}]
        scan = structs.replace(self._scan, given=[*filter(_targeted, given), *own.values()], errors=[])
        if self._scan.file is not None:
            scan.add(self._scan.file(self._options, of_file))
        elif self._scan.configuration is not None:
            scan.add(value for value in self._given if value not in alone and not owned_by_planners(value))
        raise_all(scan.errors)
        sources = [*self._lists, *filter(None, [self._variants])]
        several = [value.typed for value in sources] or ([self._scan.sweep.typed] if self._scan.sweep is not None else [])
        return run_settings(self._registry, scan, studies=True, lists=several)


def _familiar(option: Option) -> str:
    """The flag by which most people know an option: its shortest long one."""
    return min((flag for flag in option.spec.flags if flag.startswith("--")), key=len, default=option.spec.flags[0])


def _without_planners(value: OptionValue) -> OptionValue:
    """The value without the plugins that plan: a run has none."""
    kept = tuple(target for target in value.option.targets if not target.owner.startswith("planners:"))
    return OptionValue(structs.replace(value.option, targets=kept), value.typed, value.values, value.on)


def _targeted(value: OptionValue) -> bool:
    return bool(value.option.targets)
