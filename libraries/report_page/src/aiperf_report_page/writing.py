"""What ``aiperf report --html`` asks for, and the file that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from aiperf import AiperfError, UsageError, atomic
from aiperf.sdk.command import PluginOptions
from aiperf_results import FinishedRun
from msgspec import Struct

from aiperf_report_page.figures import PicturePainter, figures, installed_painter
from aiperf_report_page.opening import ReportedRun, Summarise, reported_runs
from aiperf_report_page.page import MARK, page

_NAME = "report.html"


class PageRequest(Struct, frozen=True):
    """paths: directories of runs.  baseline: the run that others are compared with; None is the first.

    output: None is ``report.html`` in the first path.  summarise: makes the summary of a run that has none.
    version: of this program.  painter: draws pictures for readers without JavaScript; None is the installed one, if any.
    """

    paths: tuple[Path, ...]
    plugin_options: PluginOptions
    summarise: Summarise
    version: str
    baseline: Path | None = None
    output: Path | None = None
    painter: PicturePainter | None = None


class WrittenPage(Struct, frozen=True):
    """The file, and sentences on what it lacks: runs that can't be read, plots that failed, runs that were cut short."""

    path: Path
    failures: tuple[str, ...]


def write_page(request: PageRequest) -> WrittenPage:
    """Write the page.  A page of before is replaced, any other file is not.

    Raises:
        UsageError: The baseline is none of the runs.
        AiperfError: No run can be read, or the file can't be written.
    """
    path = request.output or request.paths[0] / _NAME
    _check_place(path)
    paths = request.paths if request.baseline is None else (*request.paths, request.baseline)
    runs, failures = reported_runs(paths, request.summarise)
    runs = _with_baseline_first(runs, request.baseline)
    drawn, missed = figures([run.run for run in runs], request.plugin_options, request.painter or installed_painter())
    partial = [
        f"results of {run.label} are partial: {run.summary.get('incomplete_reason') or 'the run was cut short'}"
        for run in runs if run.summary.get("is_complete") is False and not run.summary.get("was_cancelled")
    ]  # fmt: skip
    text, unmade = page(runs, drawn, request.version, baseline_named=request.baseline is not None)
    try:
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise AiperfError(f"{path} can't be written: {why}", "choose another place with --output") from error
    return WrittenPage(path, tuple(dict.fromkeys((*failures, *missed, *unmade, *partial))))


def _check_place(path: Path) -> None:
    """Refuse to replace what is no page of this program.

    Raises:
        AiperfError: Something else is there.
    """
    if path.is_dir():
        hint = f"for example --output {path / _NAME}"
        raise AiperfError(f"--output: {path} is a directory; with --html it names the file", hint)
    try:
        with path.open("rb") as file:
            ours = file.read(len(MARK)) == MARK.encode()
    except OSError:
        return  # it is not there, or can't be written either
    if not ours:
        raise AiperfError(f"{path} is there already, and is no report of aiperf", "choose another name with --output")


def _with_baseline_first(runs: Sequence[ReportedRun], baseline: Path | None) -> list[ReportedRun]:
    if baseline is None:
        return list(runs)
    place = baseline.resolve()
    chosen = [run for run in runs if any(_within(part, place) for part in run.run.parts())]
    if len(chosen) != 1:
        what = f"has {len(chosen)} runs" if chosen else "can't be read"
        raise UsageError(f"--baseline: {baseline} {what}, and a baseline is one run", "name the directory of one run")
    return [*chosen, *(run for run in runs if run is not chosen[0])]


def _within(run: object, place: Path) -> bool:
    return isinstance(run, FinishedRun) and run.directory.resolve().is_relative_to(place)


__all__ = ["PageRequest", "WrittenPage", "write_page"]
