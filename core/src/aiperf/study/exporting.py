"""Exporters of studies: made once, told of each run behind its load, asked for their files behind the last one."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import environment
from aiperf.errors import PluginError
from aiperf.planning.problems import Draft, Settings
from aiperf.registry.third_party import isolated, left_out, load
from aiperf.sdk.exporter import Artifact, StudyExporter, Target
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.study import Study

if TYPE_CHECKING:
    from aiperf.registry.registry import Registry
    from aiperf.sdk.descriptor import PluginRef
    from aiperf.sdk.plan import Plan

log = logging.getLogger(__name__)


class StudyExporters:
    """The exporters of a study.  failures: a sentence for each one that failed; *say* hears it, too.  *printed*: what they
    print is shown."""

    def __init__(
        self, settings: Settings, registry: Registry, plan: Plan, base: Path, say: Callable[[str], None], *, printed: bool
    ) -> None:
        self.failures: list[str] = []
        self._say, self._printed = say, printed
        target = Target(
            directory=base, prefix=plan.output.export_prefix, level=plan.output.export_level,
            width=environment.console_export_width(), verbose=plan.run.verbose, config=plan.run.config,
            files=plan.output.files, percentiles=plan.output.percentiles, columns=plan.output.columns,
        )  # fmt: skip
        made = _made(settings, registry, target, self._note)
        self._made = sorted(made, key=lambda pair: pair[1].sends)  # what sends the files reads those of all others

    def _note(self, sentence: str) -> None:
        self.failures.append(sentence)
        self._say(sentence)

    def run_ended(self, study: Study) -> None:
        for ref, exporter in self._made:
            with isolated(ref, self._note, "failed between two runs"), self._quiet():
                exporter.run_ended(study)

    def export(self, study: Study) -> list[Artifact]:
        """The files of all exporters."""
        written: list[Artifact] = []
        for ref, exporter in self._made:
            with isolated(ref, self._note, "failed behind the last run"), self._quiet():
                written += exporter.export_study(study)
        return written

    def _quiet(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self._printed else contextlib.redirect_stdout(io.StringIO())


def _made(
    settings: Settings, registry: Registry, target: Target, note: Callable[[str], None]
) -> list[tuple[PluginRef, StudyExporter]]:
    made: list[tuple[PluginRef, StudyExporter]] = []
    absent: list[tuple[PluginRef, PluginError]] = []
    for ref in Draft(settings, registry).everything("exporters", studies=True):
        try:
            cls = load(ref)
        except PluginError as error:
            absent.append((ref, error))
            continue
        with isolated(ref, note, "can't be used"):
            options = settings.plugins.get(ref.key)
            exporter = cls(target, None if options is None else EncodedOptions.of(options).decoded())
            if exporter.wanted():
                made.append((ref, exporter))
    for sentence in left_out(absent):
        log.warning("%s", sentence)
    return made
