"""The runs of a study, one after the other."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import structs

from aiperf import __version__, logs
from aiperf.errors import AiperfError
from aiperf.redaction import harmless, owner_alone
from aiperf.registry.third_party import why
from aiperf.run.fleet import Fleet
from aiperf.run.measured import Measured
from aiperf.run.place import Executed
from aiperf.run.run import measure
from aiperf.run.start import Interruption, Signals, without_room
from aiperf.run.watchers import Watchers
from aiperf.rundir.artifacts import print_footer
from aiperf.sdk.exporter import Artifact
from aiperf.sdk.planner import PlanEnd, PlannedTrial
from aiperf.sdk.study import Setting, Study, StudyRun
from aiperf.study import manifests, trials
from aiperf.study.exporting import StudyExporters, chosen_of
from aiperf.study.lines import line_of, name_of
from aiperf.study.manifests import RUN_FILE, STUDY_FILE, StudyManifest
from aiperf.study.outline import StudyOutline, common
from aiperf.study.places import RunPlace, TimeLeft
from aiperf.study.preparation import Preparation
from aiperf.study.request import StudyRequest
from aiperf.study.resume import ResumedRun, Resumption
from aiperf.study.servers_queue import ServersQueue
from aiperf.terminal import say

log = logging.getLogger(__name__)

_POLL_S = 0.05


def run(
    request: StudyRequest, signals: Signals, *, console: bool, on_run: Callable[[StudyRun], object] = lambda run: None
) -> tuple[Study, int]:
    """Make the study; it and the exit code.  *console*: lines, table and files are printed.  *on_run*: hears of each run.

    Raises:
        AiperfError: It can't begin; nothing was sent.
    """
    settings = request.base
    if console:
        level = settings.log_level
        usual = "log_level" not in settings.kernel.fields_set and level >= logging.INFO
        logs.to_console(logging.WARNING if usual else level, quiet=settings.kernel.quiet)
    signals.without_load = "this run has no results, and the same command makes it"
    prepared = Preparation(request)
    with owner_alone(settings.kernel.private), manifests.locked(prepared.base):
        return StudyLoop(prepared, signals, console=console, on_run=on_run).run()


class StudyLoop:
    """Makes the runs that the planner proposes, and writes what they have in common."""

    def __init__(
        self, prepared: Preparation, signals: Signals, *, console: bool, on_run: Callable[[StudyRun], object]
    ) -> None:
        self._prepared, self._signals, self._console, self._on_run = prepared, signals, console, on_run
        request = prepared.request
        self._request, self._kernel, self._base = request, prepared.kernel, prepared.base
        self._watchers: Watchers | None = None
        self._resumption = Resumption(self._base, self._say)
        self._manifest = self._resumption.begin(self._first_manifest(), anew=self._kernel.no_resume)
        chosen = chosen_of(next(iter(prepared.settings.values())), request.registry)
        self._exporters = StudyExporters(chosen, prepared.plan, self._base, self._complain, printed=console)
        self._runs: list[StudyRun] = []
        self._last: PlannedTrial | None = None
        self._left = TimeLeft(prepared.most)
        self._queue = ServersQueue()
        self._files_missing, self._said = list[str](), set[str]()
        self._config: dict[str, Any] | None = None
        self._keep_outline(self._study("it was broken off", complete=False))

    def run(self) -> tuple[Study, int]:
        """All runs, then the files of the study."""
        proposed: Sequence[PlannedTrial] | PlanEnd = self._prepared.planned
        reason, complete = "", True
        with contextlib.closing(_Fleets(isolated=self._kernel.isolate_runs)) as fleets:
            self._watchers = fleets.current.watchers
            while not isinstance(proposed, PlanEnd):
                for trial in proposed:
                    if self._signals.count or not self._one(trial, fleets):
                        break
                if self._signals.count:
                    reason, complete = "it was interrupted", False
                    break
                if self._prepared.reads_files:
                    fleets.current.finish_files()
                try:
                    proposed = self._prepared.next(self._runs)
                except AiperfError as error:
                    reason, complete = why(error), False
                    self._complain(reason)
                    break
            else:
                reason = proposed.reason
            with contextlib.suppress(Interruption):
                fleets.current.finish_files()
        self._watchers = None
        return self._finished(reason, complete=complete)

    def _one(self, trial: PlannedTrial, fleets: _Fleets) -> bool:
        """Make a run, unless it is measured; False where a signal ended it before its results."""
        directory = trials.directory_of(self._base, self._request.space, trial, sweeps=self._request.sweeps)
        self._add_folder(directory)
        base = trials.base_seed(self._kernel)
        seed = trials.seed_of(self._kernel, trial, base)
        warms_up = trials.warms_up(self._kernel, trial)
        options = self._options_of(trial, seed, warms_up=warms_up)
        empty = StudyRun(trial.cell, trial.trial, directory, seed)
        source = self._prepared.sources[trial.cell.index]
        name = name_of(empty, self._request.space.trials)
        kept = self._resumption.kept(empty, name, options, source, drawn=base is None)
        if kept is not None:
            self._ended(_kept(empty, kept), None)
            self._missing(name, kept.failures)
            return True
        if not self._pause(trial, fleets.current):
            return False
        begun_s = time.monotonic()
        carried_over = _aborted(self._runs[-1]) if self._runs and not self._runs[-1].resumed else 0

        def write(plan: Any, journal: Path) -> None:
            manifests.save(directory / RUN_FILE, manifests.of_run(plan, journal, empty, options))

        about = self._manifest.study_id, len(self._runs) + 1, name
        place = RunPlace(*about, self._left, carried_over, self._said, write)
        settings = trials.settings_of(self._prepared.settings[trial.cell.index], directory, seed, warms_up=warms_up)
        run = structs.replace(empty, carried_over=carried_over)
        try:
            measured = measure(
                settings, self._request.registry, self._signals, fleets.next(), console=self._console, place=place,
                later=not self._kernel.isolate_runs,
            )  # fmt: skip
        except Interruption:
            return False
        except AiperfError as error:
            run = structs.replace(run, failed=why(error))
        except OSError as error:
            run = structs.replace(run, failed=why(without_room(error, self._prepared.plan.output)))
        else:
            run = _measured(run, Executed(measured.summary, measured.code, measured.fault))
            fleets.current.files_of(measured, partial(self._written, name))
        if run.failed:
            self._note_failure(directory, run.failed)
        self._last = trial
        self._ended(run, time.monotonic() - begun_s)
        return True

    def _written(self, label: str, measured: Measured, error: AiperfError | None) -> None:
        """The files of a run are written, as far as they can be."""
        if error is not None:
            self._missing(label, [why(error)])
        elif measured.code and not measured.fault:
            self._missing(label, ["not all of its files are written"])

    def _missing(self, label: str, sentences: list[str]) -> None:
        if sentences and not self._signals.count:
            self._files_missing.append(label)
            self._say(f"{label}: {'; '.join(sentences)}")

    def _ended(self, run: StudyRun, took_s: float | None) -> None:
        self._left.ended(took_s)
        self._runs.append(run)
        if run.summary is not None:
            config = run.summary.config
            self._config = config if self._config is None else common([self._config, config])
        study = self._study("", complete=False)
        numbers = [] if run.summary is None else self._exporters.line(study, run)
        if self._signals.count and run.summary is None and (run.directory / "journal").exists():
            name = name_of(run, self._request.space.trials)
            self._say(f"{name}  partial: {run.failed}; what it measured is in {run.directory}")
        else:
            self._say(line_of(run, self._request.space.trials, numbers))
        self._exporters.run_ended(study)
        self._on_run(run)

    def _pause(self, trial: PlannedTrial, fleet: Fleet) -> bool:
        """Wait until nothing of the run before is under way, then for the cooldown; False where a signal came."""
        if self._last is None:
            return True
        pause_s = trials.pause_s(self._kernel, self._last, trial)
        if pause_s >= 1:
            self._say(f"pause of {pause_s:g} s")
        settled = self._queue.settle(fleet, pause_s, partial(self._wait, fleet))
        if settled.queued and not self._signals.count:
            self._complain(f"the servers still have {settled.queued:,.0f} requests after {settled.waited_s:.0f} s")
        return not self._signals.count

    def _wait(self, fleet: Fleet, seconds: float) -> bool:
        until_s = time.monotonic() + seconds
        while not self._signals.count and (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(_POLL_S, left_s))
            fleet.watchers.heed(self._signals)
        return not self._signals.count

    def _options_of(self, trial: PlannedTrial, seed: int, *, warms_up: bool) -> Mapping[str, Setting]:
        """What the manifest of a run holds of what was asked of it."""
        return {**self._request.options, "cell": dict(trial.cell.parameters), "seed": seed, "warms up": warms_up}

    # Manifests

    def _first_manifest(self) -> StudyManifest:
        request, seed = self._request, trials.base_seed(self._kernel)
        return StudyManifest(
            os.urandom(6).hex(), __version__, request.base.command, manifests.plain(request.asked),
            request.space.seed if seed is None else seed, self._folders(),
        )  # fmt: skip

    def _folders(self) -> tuple[str, ...]:
        """The names of the folders in the study's own that runs lie in."""
        paths = (
            trials.directory_of(self._base, self._request.space, PlannedTrial(cell), sweeps=self._request.sweeps)
            for cell in self._prepared.cells
        )
        return tuple(sorted({path.relative_to(self._base).parts[0] for path in paths}))

    def _add_folder(self, directory: Path) -> None:
        name = directory.relative_to(self._base).parts[0]
        if name not in self._manifest.folders:
            self._manifest = structs.replace(self._manifest, folders=(*self._manifest.folders, name))
            self._save_manifest()

    def _keep_outline(self, study: Study) -> None:
        self._manifest = structs.replace(self._manifest, outline=StudyOutline.of(study, self._exporters.refs))
        self._save_manifest()

    def _save_manifest(self) -> None:
        try:
            manifests.save(self._base / STUDY_FILE, self._manifest)
        except OSError as error:
            raise without_room(error, self._prepared.plan.output) from error

    def _note_failure(self, directory: Path, failed: str) -> None:
        """In the manifest of a run that was measured: its results don't count."""
        with contextlib.suppress(manifests.Unreadable, OSError):
            manifest = manifests.read(directory / RUN_FILE, manifests.RunManifest)
            if manifest is not None:
                manifests.save(directory / RUN_FILE, structs.replace(manifest, failed=failed))

    # The end

    def _design(self) -> dict[str, Setting] | None:
        try:
            return self._prepared.design()
        except AiperfError as error:
            self._complain(why(error))
            return None

    def _study(self, reason: str, *, complete: bool, design: dict[str, Setting] | None = None) -> Study:
        request, kernel = self._request, self._kernel
        cooldown_s = kernel.run_cooldown_s if request.space.trials > 1 else kernel.sweep_cooldown_s
        return Study(
            self._manifest.study_id, __version__, self._base, tuple(self._runs), request.planner.name,
            request.space.dimensions, request.space.scenarios, request.space.trials, request.space.order,
            kernel.confidence_level, cooldown_s, request.space.objectives, complete, reason, request.base.command,
            self._config or {}, design, request.space.sla_filters,
        )  # fmt: skip

    def _finished(self, reason: str, *, complete: bool) -> tuple[Study, int]:
        study = self._study(reason, complete=complete, design=self._design())
        written: list[Artifact] = []
        if any(run.summary is not None for run in study.runs):
            written = self._exporters.export(study)
        with contextlib.suppress(AiperfError):  # a full disk: a report says that the study was broken off
            self._keep_outline(study)
        if self._console:
            self._print(study, written)
        return study, self._code(study)

    def _print(self, study: Study, written: list[Artifact]) -> None:
        if not self._kernel.no_sweep_table and study.runs:
            self._exporters.print_tables(study)
        if study.reason:
            self._say(f"the runs ended before the last one that was possible: {study.reason}")
        print_footer(written)
        print(f"Runs: {self._base.absolute()}", flush=True)

    def _code(self, study: Study) -> int:
        """The exit code (spec: cli §7.1)."""
        if self._signals.code:
            return self._signals.code
        good = [run for run in study.runs if run.summary is not None]
        failed = [name_of(run, study.trials) for run in study.runs if run.summary is None]
        bad = bool(self._exporters.failures or self._files_missing)
        if failed:
            self._complain(f"{len(failed)} of {len(study.runs)} runs failed: {', '.join(failed)}")
        if not self._request.sweeps:
            return int(bad or len(good) < min(2, len(study.runs)) or not good)
        lacking = {run.cell.index for run in study.runs} - {run.cell.index for run in good}
        return int(bad or bool(lacking) or not good or not study.complete)

    def _say(self, sentence: str) -> None:
        if self._console and not self._kernel.quiet:
            if self._watchers is None or not self._watchers.say(harmless(sentence)):
                say(harmless(sentence))
        elif not self._console:
            log.info("%s", sentence)

    def _complain(self, sentence: str) -> None:
        log.warning("%s", sentence)


class _Fleets:
    """The processes of the runs: the same for all, or *isolated* ones for each."""

    def __init__(self, *, isolated: bool) -> None:
        self._isolated, self.current = isolated, Fleet(kept=not isolated)

    def next(self) -> Fleet:
        if self._isolated:
            self.current.close()
            self.current = Fleet()
        return self.current

    def close(self) -> None:
        self.current.close()


def _kept(run: StudyRun, kept: ResumedRun) -> StudyRun:
    """The run that an earlier command measured."""
    seed, carried_over = kept.manifest.seed, kept.manifest.carried_over
    return _measured(structs.replace(run, seed=seed, carried_over=carried_over, resumed=True), Executed(kept.summary, 0))


def _measured(run: StudyRun, executed: Executed) -> StudyRun:
    phases = [phase for phase in executed.summary.phases if phase.end_ns > phase.start_ns > 0]
    begin_ns, end_ns = min((each.start_ns for each in phases), default=0), max((each.end_ns for each in phases), default=0)
    summary = None if executed.fault else executed.summary
    return structs.replace(run, summary=summary, failed=executed.fault, begin_ns=begin_ns, end_ns=end_ns)


def _aborted(run: StudyRun) -> int:
    """Requests of a run that the server may still work on."""
    outcomes = {} if run.summary is None else run.summary.outcomes
    return outcomes.get("aborted", 0) + outcomes.get("cancelled", 0)
