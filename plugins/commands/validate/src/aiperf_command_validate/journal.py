"""The files of a run compared with a report of its journal, which is made aside and thrown away."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import logging
import os
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from aiperf import AiperfError, Plan
from aiperf.parts import reporting
from aiperf.parts.processes import temporary_directory
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.grader import engine_of, timeout_s
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.registry import InstalledPlugins
from aiperf.sdk.trees import authored
from aiperf_results import FinishedRun

from aiperf_command_validate import differences
from aiperf_command_validate.choice import Choice
from aiperf_command_validate.differences import Difference
from aiperf_command_validate.faults import Faults

_KIND = "places that differ from the journal"
_EXPERIMENTAL = "AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS"
_OWN = ("lock", ".folds")
"""Ends of the names of files that a report makes for itself; telemetry is folded again from its samples."""


class OtherVersionError(AiperfError):
    """The run, or its report, was made by packages that are not installed here."""


@contextlib.contextmanager
def reported(run: FinishedRun, summary: dict[str, Any] | None, installed: InstalledPlugins) -> Iterator[list[Path]]:
    """The files of a report of the run's journal, with the settings of the report that made *summary*.

    Raises:
        AiperfError: No report can be made: the journal is of another version, damaged, or its packages are missing.
        OSError: The temporary directory has no room for the report.
    """
    summary = summary or {}
    _check_versions(run.plan, summary, installed)
    with temporary_directory("validate") as folder:
        yield _report(run, summary, installed, folder)


def compare(directory: Path, expected: Iterable[Path], faults: Faults) -> None:
    """A fault for each place where a file of the directory differs from the file of the same name in a report."""
    for path in expected:
        own = directory / path.name
        if not own.is_file():
            faults.add(path.name, "is missing; the journal has its content")
        elif not _same_bytes(own, path):
            for line, what in _differences(own, path):
                faults.add(path.name, f"{what}, says the journal", line, kind=_KIND)


def inputs(run: FinishedRun, document: dict[str, Any], name: str, faults: Faults) -> None:
    """The prompts of inputs.json are those of the stored data set.

    Raises:
        BadJournal: The journal has no data set.
    """
    entries = document.get("data")
    if not isinstance(entries, list):
        return
    count = 0
    for count, (identity, turns) in enumerate(_conversations(run), 1):
        if count > len(entries):
            continue
        entry = entries[count - 1]
        if not isinstance(entry, dict) or entry.get("session_id") != identity:
            what = f"conversation {count} is not {identity}, says the journal"
            faults.add(name, what, kind=_KIND)
            return
        payloads = entry.get("payloads", [])
        fits = len(payloads) == len(turns) and all(
            payload in [_payload(run.target.shown_body(body)) for body in bodies]
            for payload, bodies in zip(payloads, turns, strict=True)
        )
        if not fits:
            faults.add(name, f"conversation {identity} has other requests than those sent, says the journal", kind=_KIND)
    if count != len(entries):
        faults.add(name, f"has {len(entries):,} conversations, the journal {count:,}")


def _conversations(run: FinishedRun) -> Iterator[tuple[str, list[list[bytes]]]]:
    """Id and bodies of each conversation, those that others start included."""
    told: set[str] = set()
    for conversation, turns in run.conversations():
        for identity, begin, end in authored(conversation.id, conversation.streams, len(turns), told):
            yield identity, turns[begin:end]


def _payload(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return {"body_base64": b64encode(body).decode()}


def _check_versions(plan: Plan, summary: dict[str, Any], installed: InstalledPlugins) -> None:
    """Another version may count otherwise, so that its results are no measure.

    Raises:
        OtherVersionError: Neither the run's packages nor those that the results name are installed.
    """
    told = {(used.get("category"), used.get("name")): used for used in summary.get("plugins", {}).get("used", ())}
    chosen = plan.plugins
    reducers = () if chosen.reducer is None else (chosen.reducer,)
    for ref in (chosen.endpoint, *reducers, *chosen.metrics, *chosen.exporters, *chosen.verdicts, *chosen.tables):
        used = told.get((ref.category, ref.name), {})
        packages = {(ref.distribution, ref.version), (used.get("distribution"), used.get("version"))}
        now = installed.find(ref.category, ref.name)
        if now is None or (now.distribution, now.version) not in packages:
            here = "not installed" if now is None else f"{now.distribution} {now.version} here"
            raise OtherVersionError(f"{ref.category} {ref.name} is of {ref.distribution} {ref.version}, {here}")
    with contextlib.suppress(PackageNotFoundError):
        if plan.run.version not in ("", now_version := version("aiperf-core")):
            raise OtherVersionError(f"version {plan.run.version} made the run, this is {now_version}")


def _report(run: FinishedRun, summary: dict[str, Any], installed: InstalledPlugins, folder: Path) -> list[Path]:
    """Report the run's journal in *folder*."""
    journal = folder / "journal"
    journal.mkdir()
    for path in (run.directory / "journal").iterdir():
        if not path.name.endswith(_OWN):
            (journal / path.name).symlink_to(path.resolve())
    with _quiet(), _experimental(summary):
        result, plan, clock = reporting.report(folder, lambda plan: _as_told(plan, summary, installed))
        reporting.export(result, plan, Path(plan.output.journal), reporting.target_for(plan, clock))
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the console's report, and without the warnings that the run gave."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _experimental(summary: Mapping[str, Any]) -> Iterator[None]:
    """Results that have experimental metrics are compared with a report that has them."""
    if "stream_setup_latency" not in summary or _EXPERIMENTAL in os.environ:
        yield
        return
    os.environ[_EXPERIMENTAL] = "1"
    try:
        yield
    finally:
        del os.environ[_EXPERIMENTAL]


_RESCORED = ("metrics", "exporters", "verdicts", "tables")
"""Categories whose plugins ``aiperf report`` may use beside those of the run, or with other options."""


def _as_told(plan: Plan, summary: dict[str, Any], installed: InstalledPlugins) -> Plan:
    """The plan of the report that made the results, without hooks and exporters that write no files.

    ``aiperf report`` may have been given other slices, statistics, metrics, verdicts, tables and options of these than the run.
    """
    seconds = summary.get("input_config", {}).get("artifacts", {}).get("slice_duration")
    artifacts = plan.run.config.get("artifacts", {})
    if isinstance(seconds, int | float) and seconds > 0 and seconds != artifacts.get("slice_duration"):
        config = {**plan.run.config, "artifacts": {**artifacts, "slice_duration": seconds}}
        plan = plan.replacing(slice_ns=max(1, round(seconds * 1e9)), config=config)
    plan = _graded_as_told(Choice.of(summary).applied(plan), summary, installed)
    used = summary.get("plugins", {}).get("used", ())
    metrics = _refs(plan.plugins.metrics, "metrics", used, installed)
    exporters = _refs(plan.plugins.exporters, "exporters", used, installed)
    verdicts = _refs(plan.plugins.verdicts, "verdicts", used, installed)
    tables = _refs(plan.plugins.tables, "tables", used, installed)
    plan = plan.replacing(metrics=metrics, exporters=exporters, verdicts=verdicts, tables=tables, hooks=())
    for one in used:
        if isinstance(one, dict) and one.get("category") in _RESCORED and one.get("options"):
            plan = _with_options(plan, f"{one['category']}:{one['name']}", one["options"], installed)
    return plan


def _graded_as_told(plan: Plan, summary: dict[str, Any], installed: InstalledPlugins) -> Plan:
    """The plan with the grader of the report, where it is another one than the run's.

    Raises:
        AiperfError: It is not installed, or slow: it would ask again.
    """
    told, own = summary.get("input_config", {}).get("accuracy", {}).get("grader"), plan.plugins.grader
    if not isinstance(told, str) or (own is not None and own.name == told):
        return plan
    found = installed.find("graders", told)
    if found is None:
        raise AiperfError(f"the grader {told}, which graded again, is not installed")
    if timeout_s(found.capabilities) is not None:
        raise AiperfError(f"the slow grader {told} graded again, and would have to once more")
    config = {**plan.run.config, "accuracy": {**plan.run.config.get("accuracy", {}), "grader": told}}
    engine = engine_of(found.capabilities)
    return plan.replacing(grader=found.ref, grading_timeout_s=None, grading_engine=engine, grading_again=True, config=config)


def _refs(of: tuple[PluginRef, ...], category: str, used: Any, installed: InstalledPlugins) -> tuple[PluginRef, ...]:
    """The plugins that the results name, where they are installed, in their order; those of the plan where they name none."""
    names = [str(one.get("name")) for one in used if isinstance(one, dict) and one.get("category") == category]
    known = {ref.name: ref for ref in of}
    if category == "exporters":  # one without files would send the results to where they are already
        known = {name: ref for name, ref in known.items() if _writes_files(installed, name)}
    more = [name for name in names if name not in known and installed.find(category, name) is not None]
    if category != "exporters":
        known |= {name: installed.ref(category, name) for name in more}
    return tuple(known.values())


def _writes_files(installed: InstalledPlugins, name: str) -> bool:
    descriptor = installed.find("exporters", name)
    return descriptor is not None and bool(descriptor.capabilities.get("files"))


def _with_options(plan: Plan, key: str, given: dict[str, Any], installed: InstalledPlugins) -> Plan:
    configured = plan.run.config.get("plugins", {})
    if given == configured.get(key):
        return plan
    options = plan.plugins.options.get(key)
    if options is None:
        category, _, name = key.partition(":")
        model = installed.load_options_model(installed.descriptor(category, name))
        if model is None:
            return plan
        options = EncodedOptions.of(model())
    options = EncodedOptions(options.options_class, {**options.values, **given})
    config = {**plan.run.config, "plugins": {**configured, key: given}}
    return plan.replacing(options={**plan.plugins.options, key: options}, config=config)


def _same_bytes(path: Path, other: Path) -> bool:
    if path.stat().st_size != other.stat().st_size:
        return False
    with path.open("rb") as file, other.open("rb") as expected:
        while block := file.read(1 << 20):
            if block != expected.read(1 << 20):
                return False
    return True


def _differences(own: Path, expected: Path) -> Iterator[Difference]:
    suffix = own.suffix
    if own.name.endswith((".jsonl", ".jsonl.gz")):
        with contextlib.suppress(gzip.BadGzipFile, EOFError, zlib.error):  # one that can't be unpacked is a fault already
            yield from differences.lines(own, expected)
    elif suffix == ".csv":
        yield from differences.tables(own, expected)
    elif suffix == ".txt":
        yield from differences.texts(own, expected)
    elif suffix == ".json":
        with contextlib.suppress(ValueError):  # a file that is no JSON is a fault already
            told, wanted = (_without_left_out(json.loads(path.read_bytes())) for path in (own, expected))
            yield from ((None, difference) for difference in differences.documents(told, wanted))
    elif suffix == ".parquet":
        yield from _columns(own, expected)
    else:
        yield None, "has another content"


def _without_left_out(document: Any) -> Any:
    """The document without hooks and exporters, which do not all take part in this report."""
    if isinstance(document, dict) and isinstance(document.get("plugins"), dict):
        used = document["plugins"].get("used", ())
        kept = [one for one in used if not (isinstance(one, dict) and one.get("category") in ("hooks", "exporters"))]
        document["plugins"]["used"] = kept
    return document


def _columns(own: Path, expected: Path) -> Iterator[Difference]:
    """Columns of Parquet that differ; nothing where pyarrow is not installed."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        return
    try:
        table, other = parquet.read_table(own), parquet.read_table(expected)
    except (ArrowException, OSError):
        return  # a file that is no Parquet is a fault already
    if table.column_names != other.column_names or table.num_rows != other.num_rows:
        expected_size = f"{other.num_rows:,} and {other.num_columns}"
        yield None, f"has {table.num_rows:,} rows and {table.num_columns} columns, not {expected_size}"
        return
    for name in table.column_names:
        if not table.column(name).equals(other.column(name)):
            yield None, f"the column {name} has other values"
