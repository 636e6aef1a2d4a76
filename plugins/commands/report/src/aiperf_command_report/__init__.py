"""``aiperf report DIR...``: results from the journal of a run, or of the runs of a study, without a server."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aiperf import AiperfError, Artifact, Command, ConfigError, Plan, Summary, Target, UsageError
from aiperf.results import is_study
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.model import names
from msgspec.structs import replace

from aiperf_command_report import html_page
from aiperf_command_report.options import ReportOptions
from aiperf_command_report.rescoring import at_level, choosing, flags, regraded, replanned

log = logging.getLogger(__name__)

_RESULTS = ("profile_export_aiperf.json", "profile_export_aiperf.csv", "profile_export.jsonl", "profile_export_raw.jsonl")


class Report(Command[ReportOptions]):
    """Reduces each directory's journal again and runs the exporters of its run."""

    arguments = "DIR..."

    def run(self, options: ReportOptions, words: Sequence[str]) -> int:
        """0 if all was written; 1 if a plugin failed, a journal is damaged or incomplete, or a directory could not be reported.

        The others are reported then.
        """
        if not words:
            raise UsageError("report needs a directory", "for example: aiperf report artifacts/my-run")
        if options.as_json and options.output is not None:
            raise UsageError("--json and --output exclude each other: one prints, the other writes", "drop one of them")
        if options.html:
            html_page.refuse(options)
            self._refuse_changes("--html", options)
            plugin_options = self.plugin_options or PluginOptions(self.registry, {}, {})
            summarise = partial(self._summary_json, options=options)
            return html_page.write([Path(word) for word in words], plugin_options, summarise, options)
        if options.baseline is not None:
            raise UsageError("--baseline needs --html: the page compares runs with it", "add --html, or drop --baseline")
        if self.plugin_options is not None and (idle := flags(self.plugin_options, ("plots",))):
            raise UsageError(f"{names(idle)} needs --html: there are figures on the page alone", "add --html, or drop it")
        if options.output is not None and len(words) > 1:
            raise UsageError(f"--output takes the results of one run, {len(words)} were given", "report them one by one")
        if options.definitions:
            return 0 if self._compare([Path(word) for word in words], options) else 1
        failed = False
        for word in words:
            try:
                failed |= not self._report(Path(word), options)
            except AiperfError as error:
                if len(words) == 1:
                    raise
                failed = True
                print("\n".join(["error: " + error.lines()[0], *error.lines()[1:]]), file=sys.stderr)
        return 1 if failed else 0

    def _compare(self, directories: list[Path], options: Any) -> bool:
        """Each run as other tools define its numbers: to standard output, or to files in ``--output``.

        Whether no definition failed.
        """
        from aiperf_command_report import definitions

        self._refuse_changes("--definitions", options)
        failed = False
        for directory in directories:
            numbers, failures = definitions.compared(directory, self.plugin_options)
            failed |= bool(failures)
            for sentence in failures:
                print(f"error: {sentence}", file=sys.stderr)
            if not numbers:
                continue
            if options.output is not None:
                for path in definitions.write(numbers, options.output):
                    print(f"Definitions: {path}")
            else:
                sys.stdout.write(definitions.as_json(numbers) if options.as_json else definitions.as_text(numbers))
        return not failed

    def _summary_json(self, directory: Path, options: Any) -> dict[str, Any]:
        """The summary of a run that has none, from its journal; nothing is exported."""
        from aiperf.parts import reporting

        try:
            summary, plan, clock = reporting.report(directory, lambda plan: self._plan(plan, options))
        except OSError as error:
            where, why = error.filename or directory, error.strerror or error
            raise AiperfError(f"{directory} can't be reported: {where}: {why}") from error
        document: dict[str, Any] = json.loads(_json(summary, plan, reporting.target_for(plan, clock)))
        return document

    def _refuse_changes(self, reader: str, options: Any) -> None:
        """Refuse what makes another report of a run beside *reader*, an option that reads runs as they are.

        Raises:
            UsageError: One of them is given.
        """
        asked = [] if options.slice_duration_s is None else ["--slice-duration"]
        asked += ["--percentiles"] if options.percentiles else []
        asked += ["--columns"] if options.columns else []
        asked += [] if options.export_level is None else ["--export-level"]
        asked += [] if options.accuracy_grader is None else ["--accuracy-grader"]
        asked += [] if options.grading_processes is None else ["--grading-processes"]
        asked += [] if options.grading_timeout_s is None else ["--grading-timeout"]
        if self.plugin_options is not None:
            asked += flags(self.plugin_options)
        if asked:
            raise UsageError(
                f"{reader} reads a run as it was made, and {names(asked)} would make another report of it",
                f"leave {'it' if len(asked) == 1 else 'them'} out, or {reader}",
            )

    def _plan(self, plan: Plan, options: Any) -> Plan:
        """The plan of the report."""
        plan = replanned(plan, self.plugin_options, options.slice_duration_s)
        plan = choosing(plan, options.percentiles, options.columns)
        if options.export_level is not None:
            plan = at_level(plan, options.export_level)
        if options.grading_processes is not None:
            plan = plan.replacing(grading_processes=options.grading_processes)
        if options.grading_timeout_s is not None:
            plan = plan.replacing(grading_limit_s=options.grading_timeout_s)
        if options.accuracy_grader is None or self.plugin_options is None:
            return plan
        return regraded(plan, self.plugin_options, options.accuracy_grader)

    def _report(self, directory: Path, options: Any) -> bool:
        """Whether every file was written, of a whole journal."""
        from aiperf.parts import reporting
        from aiperf.parts.reporting import report

        _check(directory)
        if not (directory / "journal").exists() and is_study(directory):
            return self._report_study(directory, options)
        try:
            summary, plan, clock = report(directory, lambda plan: self._plan(plan, options))
        except OSError as error:
            where, why = error.filename or directory, error.strerror or error
            raise AiperfError(f"{directory} can't be reported: {where}: {why}") from error
        target = reporting.target_for(plan, clock)
        if summary.incomplete_reason is not None:
            print(f"aiperf: results are partial: {summary.incomplete_reason}", file=sys.stderr)
        whole = summary.incomplete_reason is None or summary.cancelled  # a run that was cancelled ended, and said so
        if options.as_json:
            sys.stdout.write(_json(summary, plan, target))
            return whole and not summary.extra.get("lost")
        if options.verbose:
            target = replace(target, verbose=True)
        if options.output is not None:
            _make(options.output)
            target = replace(target, directory=options.output)
            if target.file("aiperf.json").exists():
                log.warning("%s holds results already, which these replace", options.output)
        written, failures = reporting.export(summary, plan, Path(plan.output.journal), target)
        failures += summary.extra.get("failures", []) + summary.extra.get("lost", [])
        reporting.print_footer(written)
        reporting.mark_ready(target, written, cancelled=summary.cancelled, partial=bool(failures))
        return whole and not failures


    def _report_study(self, directory: Path, options: Any) -> bool:
        """Whether every file of every run, and of all together, was written."""
        from aiperf.parts import reporting
        from aiperf.parts.studies import report_study

        if options.as_json:
            hint = f"read {directory}/**/profile_export_aiperf_sweep.json, or name one of its runs"
            raise UsageError(f"--json prints the summary of one run, and {directory} has several", hint)
        if options.output is not None:
            _make(options.output)
        change = partial(self._plan, options=options)
        done = report_study(directory, change, options.output, verbose=options.verbose)
        for sentence in done.failures:
            print(f"error: {sentence}", file=sys.stderr)
        reporting.print_footer(done.written)
        print(f"Runs: {(options.output or directory).absolute()}", flush=True)
        return not done.failures


def _check(directory: Path) -> None:
    """Refuse a path that is no run of this program.

    Raises:
        AiperfError: It is no directory, or holds the results of another tool.
    """
    if not directory.is_dir():
        raise AiperfError(f"{directory} is no directory", "give the artifact directory of a run")
    if not (directory / "journal").exists() and any((directory / name).exists() for name in _RESULTS):
        raise AiperfError(
            f"{directory} holds results and no journal to compute them from: another tool wrote them, or it was removed",
            "only a run of this program can be reported again; read its files as they are",
        )


def _make(directory: Path) -> None:
    """Make the directory of the results, unless it is there.

    Raises:
        ConfigError: It can't be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = "it is a file" if directory.is_file() else error.strerror or error
        raise ConfigError(f"--output: {directory} can't be the directory of the results: {why}", "name another one") from error


def _json(summary: Summary, plan: Plan, target: Target) -> str:
    """The summary as the run's json exporter writes it."""
    from aiperf.parts import reporting
    from aiperf.parts.processes import temporary_directory

    chosen = [ref for ref in plan.plugins.exporters if ref.name == "json"]
    if not chosen:
        raise AiperfError("--json needs the json exporter, which this run did not have", "leave --json out")
    with temporary_directory("report") as directory:
        elsewhere = replace(target, directory=directory)
        written: list[Artifact]
        written, failures = reporting.run_summary_exporters(summary, plan.replacing(exporters=tuple(chosen)), elsewhere)
        if failures:
            raise AiperfError(failures[0])
        return written[0].path.read_text(encoding="utf-8")
