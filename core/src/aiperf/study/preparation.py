"""From what was asked to a study that may begin: its planner, its first cells with their options, its directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import structs

from aiperf.errors import AiperfError, ConfigError, ConfigErrors, PluginError
from aiperf.planning import configure
from aiperf.planning.problems import Draft, Settings
from aiperf.planning.scenarios import ruled
from aiperf.registry.third_party import blamed, load
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner
from aiperf.sdk.study import Setting, StudyCell, StudyRun
from aiperf.study import trials
from aiperf.study.lists import refuse_shared_names
from aiperf.study.request import StudyRequest


class Preparation:
    """A study whose first cells are valid.

    settings, phases, sources: of each cell, by its index; a source is its input file.  plan: of the first cell.
    base: the study's directory.
    planned: the first runs.  most: of all; None where the planner doesn't know.

    Raises:
        ConfigErrors: All faults of all cells, by cell; or the planner can't plan in the space.
        PluginError: The planner fails, or gives what it must not give.
    """

    plan: Plan

    def __init__(self, request: StudyRequest) -> None:
        self.request, self.kernel = request, request.base.kernel
        self.settings: dict[int, Settings] = {}
        self.phases: dict[int, tuple[PhasePlan, ...]] = {}
        self.sources: dict[int, Path | None] = {}
        self._cells: dict[int, StudyCell] = {}
        with blamed(request.planner, "can't be used"):
            self._planner: Planner[object] = load(request.planner)(request.space, request.planner_options)
            self.most = self._planner.most()
        self._refuse_too_many()
        first = self.next(())
        if isinstance(first, PlanEnd):
            raise ConfigError(f"there is nothing to run: {first.reason or 'the sweep has no cells'}", "give a list of values")
        self.planned = first
        self._refuse_lists_of_traces()
        self.base = self._directory()

    @property
    def reads_files(self) -> bool:
        """Whether the planner reads the files of finished runs."""
        return self._planner.reads_files

    def next(self, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        """What the planner proposes, its new cells checked.

        Raises:
            ConfigErrors: Faults of the cells.
            PluginError: The planner failed.
        """
        planner = self.request.planner
        with blamed(planner, "failed"):
            proposed = self._planner.next(tuple(finished))
        if isinstance(proposed, PlanEnd):
            return proposed
        proposed = tuple(proposed)
        if not proposed:
            raise PluginError(f"{planner} proposed no run, and no end either")
        new = {each.cell.index: each.cell for each in proposed if each.cell.index not in self._cells}
        limit = self.kernel.max_cells
        if len(self._cells) + len(new) > limit:
            raise ConfigError(f"the sweep has more than {limit:,} cells", "raise --max-cells, or give fewer values")
        self._cells |= new
        if self.request.sweeps:
            refuse_shared_names(cell.name for cell in self._cells.values())
        self._validate(new.values())
        return proposed

    @property
    def cells(self) -> list[StudyCell]:
        return [self._cells[index] for index in sorted(self._cells)]

    def design(self) -> dict[str, Setting] | None:
        with blamed(self.request.planner, "failed"):
            return self._planner.design()

    def _refuse_too_many(self) -> None:
        limit, runs = self.kernel.max_cells, self.request.space.trials
        cells = None if self.most is None else -(-self.most // runs)
        if cells is not None and cells > limit:
            raise ConfigError(
                f"the sweep has {cells:,} cells, and --max-cells allows {limit:,}",
                f"give fewer values, or --max-cells {cells}",
            )

    def _validate(self, cells: Iterable[StudyCell]) -> None:
        """Check the options of each cell as its run will.

        Raises:
            ConfigErrors: All faults, each once, with the cell's name where not all cells have it.
        """
        faults: dict[tuple[str, ...], list[tuple[StudyCell, AiperfError]]] = {}
        count = 0
        for cell in cells:
            count += 1
            trials.check_name(cell, self.request.planner, sweeps=self.request.sweeps)
            try:
                self._validate_one(cell)
            except AiperfError as error:
                for each in error.errors if isinstance(error, ConfigErrors) else (error,):
                    faults.setdefault(tuple(each.lines()), []).append((cell, each))
        told: list[AiperfError] = []
        for found in faults.values():
            cell, fault = found[0]
            if len(found) < count:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                fault.message = f"{cell.name}{more}: {fault.message}"
            told.append(fault)
        if told:
            raise told[0] if len(told) == 1 else ConfigErrors(told)

    def _validate_one(self, cell: StudyCell) -> None:
        draft = Draft(self._unpiped(self.request.settings_of(cell)), self.request.registry)
        parts = configure.validated(draft)
        if not self.settings or parts.plugins.scenario is not None:
            plan = ruled(draft, configure.assembled(draft, parts))
            draft.refuse_if_any()
            self.plan = self.plan if self.settings else plan
        index = cell.index
        self.settings[index], self.phases[index], self.sources[index] = draft.settings, parts.phases, parts.source.path

    def _unpiped(self, settings: Settings) -> Settings:
        """The settings, with the copy of a pipe in its place: it can be read once, and was by the first cell."""
        given = settings.kernel.input_file
        if not self.settings or given is None or self.plan.data.source is None:
            return settings
        if given.exists() and not given.is_file() and not given.is_dir():
            values = {field: getattr(settings.kernel, field) for field in settings.kernel.fields_set}
            kernel = type(settings.kernel)(**values | {"input_file": Path(self.plan.data.source)})
            return structs.replace(settings, kernel=kernel)
        return settings

    def _refuse_lists_of_traces(self) -> None:
        """Refuse lists beside a trace that is replayed at its times (spec: timing §4, row 33)."""
        if self.plan.load.phases[-1].replay is None:
            return
        flags = [self.request.typed[each.path] for each in self.request.space.dimensions if each.path in self.request.typed]
        if flags:
            base = self.request.base
            fixed = base.typed.get("fixed_schedule") or base.typed.get("scheduling_mode") or "a trace with timestamps"
            raise ConfigErrors([
                ConfigError(
                    f"{flag} with several values and {fixed} exclude each other: a trace has one timing",
                    f"give {flag} one value, or replay the trace with --no-fixed-schedule",
                )
                for flag in flags
            ])  # fmt: skip

    def _directory(self) -> Path:
        """The study's directory: as given, else named like that of its first run, without what differs between the cells."""
        own = Path(self.plan.output.artifacts)
        if self.kernel.artifact_dir is not None or not self.request.sweeps:
            return own
        name, phase = own.name, self.plan.load.phases[-1]
        keys = [each.key.rpartition(".")[2] for each in self.request.space.dimensions] or ["variants"]
        rate = None if phase.rate is None else float(phase.rate)
        for key, part in (
            ("concurrency", f"-concurrency{phase.concurrency}"), ("rate", f"-request_rate{rate}"),
            ("users", f"-users{phase.users}"),
        ):  # fmt: skip
            name = name.replace(part, "") if key in keys or keys == ["variants"] else name
        return own.with_name(f"{name}-sweep_{'_'.join(keys)}"[:200])
