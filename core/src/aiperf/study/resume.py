"""What an earlier command left of the same study: measured runs are kept, others are set aside."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from aiperf.errors import AiperfError, ConfigError
from aiperf.registry.third_party import why
from aiperf.rundir import artifacts
from aiperf.rundir.journal import load_end, load_run
from aiperf.rundir.previous_results import set_aside
from aiperf.rundir.reducing import report
from aiperf.study import manifests
from aiperf.study.manifests import RUN_FILE, STUDY_FILE, RunManifest, StudyManifest, Unreadable, differences, free_name

if TYPE_CHECKING:
    from aiperf.sdk.study import StudyRun
    from aiperf.sdk.summary import Summary

log = logging.getLogger(__name__)

_DRAWN = "seed"
"""Where each run draws its own seed, that of another attempt differs."""


class ResumedRun:
    """A run that an earlier command measured.  failures: sentences on files that could not be made of its journal."""

    def __init__(self, manifest: RunManifest, summary: Summary, failures: list[str]) -> None:
        self.manifest, self.summary, self.failures = manifest, summary, failures


class Resumption:
    """Looks into the directories of a study's runs.  *say*: prints a sentence for the user."""

    def __init__(self, base: Path, say: Callable[[str], None]) -> None:
        self._base, self._say = base, say

    def begin(self, manifest: StudyManifest, *, anew: bool) -> StudyManifest:
        """The manifest of the study, with the identity of the one that is continued.  *anew*: set that aside instead.

        Raises:
            ConfigError: The directory has a study with other options, or a manifest that can't be read.
        """
        try:
            before = manifests.read(self._base / STUDY_FILE, StudyManifest)
        except Unreadable as error:
            if not anew:
                self._say(f"{self._base / STUDY_FILE} can't be read: {error}; each run is looked at by its own manifest")
            before = None
        if anew:
            self._set_all_aside(before, manifest)
        elif before is not None:
            self._refuse_changes(before, manifest)
            if before.version != manifest.version:
                self._say(f"the runs so far were made by aiperf {before.version}, and this is {manifest.version}")
            return msgspec.structs.replace(manifest, study_id=before.study_id, folders=before.folders)
        return manifest

    def _refuse_changes(self, before: StudyManifest, now: StudyManifest) -> None:
        changed = differences(before.asked, now.asked)
        if changed:
            raise ConfigError(
                f"{self._base} has the runs of another study: {'; '.join(changed)}",
                "give the options of then, or another --artifact-dir; --no-resume sets those runs aside",
            )

    def _set_all_aside(self, before: StudyManifest | None, now: StudyManifest) -> None:
        names = {*(before.folders if before is not None else ()), *now.folders, "profile_runs", "aggregate", "sweep_aggregate"}
        names.add(STUDY_FILE)
        there = sorted(name for name in names if (self._base / name).exists())
        if not there:
            return
        aside = free_name(self._base / "set_aside", "earlier")
        try:
            aside.mkdir()
            for name in there:
                (self._base / name).rename(aside / name)
        except OSError as error:
            raise ConfigError(f"{self._base}: the earlier runs can't be set aside: {why(error)}") from error
        self._say(f"the earlier runs are in {aside}")

    def kept(
        self, run: StudyRun, label: str, options: Mapping[str, Any], source: Path | None, *, drawn: bool
    ) -> ResumedRun | None:
        """The run, if it is measured; what is left of another is set aside.  *label*: in sentences.

        *source*: its input file.  *drawn*: it draws its own seed.

        Raises:
            ConfigError: It was measured with other options, or can't be set aside.
        """
        directory = run.directory
        try:
            manifest = manifests.read(directory / RUN_FILE, RunManifest)
        except Unreadable as error:
            manifest = self._recovered(run, options, str(error))
        if manifest is None:
            if (directory / "journal").exists() or set_aside(directory):
                self._set_aside(directory, "half", f"{label} was broken off")
            return None
        expected = dict(options)
        if drawn:
            expected[_DRAWN] = manifest.options.get(_DRAWN)
        if changed := differences(manifest.options, manifests.plain(expected)):
            hint = "give the options of then, or another --artifact-dir; --no-resume sets those runs aside"
            raise ConfigError(f"{directory} has a run with other options: {'; '.join(changed)}", hint)
        if manifest.data != manifests.data_hash(source):
            hint = "give the file of then, or another --artifact-dir; --no-resume sets those runs aside"
            raise ConfigError(f"{directory} was measured with another content of {source}", hint)
        if manifest.failed:
            self._set_aside(directory, "failed", f"{label} failed: {manifest.failed}")
            return None
        return self._read(directory, manifest)

    def _recovered(self, run: StudyRun, options: Mapping[str, Any], why_not: str) -> RunManifest | None:
        """A new manifest in the place of one that can't be read, if the journal says that the run came to its end."""
        directory = run.directory
        journal, sentence = directory / "journal", f"{directory / RUN_FILE} can't be read: {why_not}"
        try:
            plan, end = load_run(journal)[0], load_end(journal)
        except AiperfError:
            end = None
        if end is None or end.cancelled or end.incomplete is not None or not end.columns:
            self._say(f"{sentence}; the run is not whole")
            return None
        self._say(f"{sentence}; the journal is whole, and the run counts")
        manifest = manifests.of_run(plan, journal, run, options)
        manifests.save(directory / RUN_FILE, manifest)
        return manifest

    def _read(self, directory: Path, manifest: RunManifest) -> ResumedRun | None:
        """The summary of a measured run; its files are made of its journal where they are not there."""
        if (directory / artifacts.READY_FILE).exists() and (summary := _summary(directory)) is not None:
            return ResumedRun(manifest, summary, _partial(directory))
        if short := _cut(directory, manifest):
            self._set_aside(directory, "half", f"{manifest.label}: {short} is shorter than it was")
            return None
        self._say(f"{manifest.label} is measured; its files are made of its journal")
        try:
            summary, plan, clock = report(directory)
        except (AiperfError, OSError) as error:
            self._set_aside(directory, "half", f"{manifest.label} can't be reported: {why(error)}")
            return None
        if not summary.valid:
            self._set_aside(directory, "failed", f"{manifest.label} failed: no request succeeded")
            return None
        to = artifacts.target_for(plan, clock)
        written, failures = artifacts.export(summary, plan, directory / "journal", to)
        artifacts.mark_ready(to, written, cancelled=summary.cancelled, partial=bool(failures))
        return ResumedRun(manifest, summary, failures)

    def _set_aside(self, directory: Path, word: str, because: str) -> None:
        aside = free_name(directory, word)
        try:
            directory.rename(aside)
        except OSError as error:
            raise ConfigError(f"{directory} can't be set aside: {why(error)}", "move it away, and try again") from error
        self._say(f"{because}; it is in {aside.name}, and runs again")


def _summary(directory: Path) -> Summary | None:
    from aiperf.sdk.summary import Summary

    try:
        summary = msgspec.msgpack.decode((directory / "journal" / "summary.msgpack").read_bytes(), type=Summary)
    except (OSError, msgspec.MsgspecError):
        return None
    return msgspec.structs.replace(summary, directory=str(directory.absolute()))


def _partial(directory: Path) -> list[str]:
    try:
        partial = json.loads((directory / artifacts.READY_FILE).read_bytes())["partial"]
    except (OSError, ValueError, LookupError, TypeError):
        partial = True
    return ["files of it are missing"] if partial else []


def _cut(directory: Path, manifest: RunManifest) -> str | None:
    """A file of the journal that has lost bytes; None where all are there."""
    for name, size in manifest.journal.items():
        path = directory / "journal" / name
        if not name.endswith(".seg"):  # the others are made of these
            continue
        if not path.exists() or path.stat().st_size < size:
            return str(path)
    return None
