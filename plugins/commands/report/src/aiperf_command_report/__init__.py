"""``aiperf report DIR...``: results from the journal of a run, without a server."""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiperf import AiperfError, Artifact, Command, Plan, Summary, Target, UsageError
from msgspec.structs import replace

log = logging.getLogger(__name__)


class Report(Command):
    """Reduces each directory's journal again and runs the exporters of its run."""

    arguments = "DIR..."

    def run(self, options: Any, words: Sequence[str]) -> int:
        """0 if all was written, 1 if an exporter failed or a directory could not be reported; the others are reported then."""
        if not words:
            raise UsageError("report needs a directory", "for example: aiperf report artifacts/my-run")
        if options.as_json and options.output is not None:
            raise UsageError("--json and --output exclude each other: one prints, the other writes", "drop one of them")
        if options.output is not None and len(words) > 1:
            raise UsageError(f"--output takes the results of one run, {len(words)} were given", "report them one by one")
        failed = False
        for word in words:
            try:
                failed |= not _report(Path(word), options.output, as_json=options.as_json)
            except AiperfError as error:
                if len(words) == 1:
                    raise
                failed = True
                print("\n".join(["error: " + error.lines()[0], *error.lines()[1:]]), file=sys.stderr)
        return 1 if failed else 0


def _report(directory: Path, output: Path | None, *, as_json: bool) -> bool:
    """Whether everything that was asked for was written."""
    from aiperf import artifacts
    from aiperf.report import report

    if not directory.is_dir():
        raise AiperfError(f"{directory} is no directory", "give the artifact directory of a run")
    try:
        summary, plan, clock = report(directory)
    except OSError as error:
        raise AiperfError(f"{directory} can't be reported: {error.filename or directory}: {error.strerror or error}") from error
    target = artifacts.target_for(plan, clock)
    if as_json:
        sys.stdout.write(_json(summary, plan, target))
        return True
    if output is not None:
        target = replace(target, directory=output)
        if target.file("aiperf.json").exists():
            log.warning("%s holds results already, which these replace", output)
    written, failures = artifacts.export(summary, plan, Path(plan.journal), target)
    failures += summary.extra.get("failures", [])
    artifacts.print_footer(written)
    artifacts.mark_ready(target, cancelled=summary.cancelled, partial=bool(failures))
    return not failures


def _json(summary: Summary, plan: Plan, target: Target) -> str:
    """What the run's json exporter makes of the summary."""
    from aiperf import artifacts

    chosen = [ref for ref in plan.exporters if ref.name == "json"]
    if not chosen:
        raise AiperfError("--json needs the json exporter, which this run did not have", "leave --json out")
    with tempfile.TemporaryDirectory(prefix="aiperf-report-") as directory:
        elsewhere = replace(target, directory=Path(directory))
        written: list[Artifact]
        written, failures = artifacts.run_summary_exporters(summary, replace(plan, exporters=tuple(chosen)), elsewhere)
        if failures:
            raise AiperfError(failures[0])
        return written[0].path.read_text(encoding="utf-8")
