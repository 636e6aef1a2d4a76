"""Exporters of studies: made once, told of each run behind its load, asked for their files behind the last one."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import environment
from aiperf.errors import PluginError
from aiperf.planning.problems import Draft, Settings
from aiperf.redaction import harmless
from aiperf.registry.third_party import isolated, left_out, load
from aiperf.sdk.exporter import Artifact, StudyExporter, Target
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.study import Study, StudyRun
from aiperf.terminal import columns

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.sdk.descriptor import PluginRef
    from aiperf.sdk.plan import Plan

log = logging.getLogger(__name__)

_USUAL_COLUMNS = 80


Choice = Sequence[tuple["PluginRef", EncodedOptions | None]]
"""Exporters, each with its options; None where it has none."""


class StudyExporters:
    """The *chosen* exporters of a study.  failures: a sentence for each one that failed; *say* hears it, too.

    *plan*: of its first cell.  *printed*: what they print is shown.  *sends*: what sends files elsewhere is among them.
    """

    def __init__(
        self, chosen: Choice, plan: Plan, base: Path, say: Callable[[str], None], *, printed: bool, sends: bool = True
    ) -> None:
        self.failures: list[str] = []
        self._say, self._printed = say, printed
        target = Target(
            directory=base, prefix=plan.output.export_prefix, level=plan.output.export_level,
            width=environment.console_export_width(), verbose=plan.run.verbose, config=plan.run.config,
            files=plan.output.files, percentiles=plan.output.percentiles, columns=plan.output.columns,
        )  # fmt: skip
        made = _made(chosen, target, self._note)
        made = [pair for pair in made if sends or not pair[1].sends]
        self._made = sorted(made, key=lambda pair: pair[1].sends)  # what sends the files reads those of all others

    def _note(self, sentence: str) -> None:
        self.failures.append(sentence)
        self._say(sentence)

    @property
    def refs(self) -> list[PluginRef]:
        """The exporters that could be made."""
        return [ref for ref, _ in self._made]

    def run_ended(self, study: Study) -> None:
        for ref, exporter in self._made:
            with isolated(ref, self._note, "failed between two runs"), self._quiet():
                exporter.run_ended(study)

    def line(self, study: Study, run: StudyRun) -> list[str]:
        """What a line on a run that has succeeded says of its numbers."""
        parts: list[str] = []
        for ref, exporter in self._made:
            with isolated(ref, self._note, "failed between two runs"), self._quiet():
                parts += exporter.line(study, run)
        return parts

    def print_tables(self, study: Study) -> None:
        width = columns(sys.stdout) or _USUAL_COLUMNS
        for ref, exporter in self._made:
            with isolated(ref, self._note, "failed behind the last run"):
                if table := exporter.table(study, width):
                    print(harmless(f"\n{table}"))

    def export(self, study: Study) -> list[Artifact]:
        """The files of all exporters."""
        written: list[Artifact] = []
        for ref, exporter in self._made:
            with isolated(ref, self._note, "failed behind the last run"), self._quiet():
                written += exporter.export_study(study)
        return written

    def _quiet(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self._printed else contextlib.redirect_stdout(io.StringIO())


def chosen_of(settings: Settings, registry: Registry) -> Choice:
    """All usable exporters of studies."""
    options = settings.plugins
    refs = Draft(settings, registry).everything("exporters", studies=True)
    return [(ref, EncodedOptions.of(options[ref.key]) if ref.key in options else None) for ref in refs]


def _made(chosen: Choice, target: Target, note: Callable[[str], None]) -> list[tuple[PluginRef, StudyExporter]]:
    made: list[tuple[PluginRef, StudyExporter]] = []
    absent: list[tuple[PluginRef, PluginError]] = []
    for ref, options in chosen:
        try:
            cls = load(ref)
        except PluginError as error:
            absent.append((ref, error))
            continue
        with isolated(ref, note, "can't be used"):
            exporter = cls(target, None if options is None else options.decoded())
            if exporter.wanted():
                made.append((ref, exporter))
    for sentence in left_out(absent):
        log.warning("%s", sentence)
    return made
