"""The outputs of a run: the artifact directory, the base name of exports and their level, checked before the run."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

from aiperf.errors import ConfigError
from aiperf.planning.phases import NS_PER_S
from aiperf.planning.problems import Draft
from aiperf.planning.target import EndpointChoice
from aiperf.sdk.exporter import file_name
from aiperf.sdk.plan import ExportLevel, OutputPlan, PhasePlan

_OTHER_ENDINGS = (
    "_server_metrics.parquet", "_network_latency.jsonl", "_gpu_telemetry.jsonl",
)  # fmt: skip
"""Endings of exports of the reference that no exporter here writes; a typed prefix loses them, too."""
_LONGEST = 200
"""Characters of the name of an artifact directory."""


def output_plan(draft: Draft, choice: EndpointChoice, profiling: PhasePlan) -> OutputPlan:
    kernel = draft.kernel
    artifacts = _artifacts(draft, choice, profiling)
    every = [exporter.capabilities for exporter in draft.registry.all("exporters")]
    capabilities = [can for can in every if not can.get("studies")]
    files: dict[str, str] = {kind: name for can in capabilities for kind, name in can.get("files", {}).items()}
    prefix = None
    if kernel.export_prefix is not None:
        with draft.collected(draft.flag("export_prefix")):
            prefix = export_base(kernel.export_prefix, files.values())
    if kernel.export_http_trace and kernel.export_level == ExportLevel.SUMMARY:
        flag, level = draft.flag("export_http_trace"), draft.flag("export_level")
        draft.refuse(
            f"{flag} belongs to the per-request file, which {level} summary leaves out",
            f"pass {level} records, or drop {flag}",
        )
    return OutputPlan(
        journal=str(artifacts / "journal"), artifacts=str(artifacts), export_prefix=prefix, export_level=kernel.export_level,
        slice_ns=None if kernel.slice_duration_s is None else max(1, round(kernel.slice_duration_s * NS_PER_S)),
        http_trace=kernel.export_http_trace, private=kernel.private, files=files,
        percentiles=tuple(kernel.percentiles), columns=tuple(kernel.columns),
        early_files=tuple(kind for can in capabilities if can.get("before_load") for kind in can.get("files", {})),
    )


def _artifacts(draft: Draft, choice: EndpointChoice, profiling: PhasePlan) -> Path:
    """The results' directory, checked but not created."""
    directory = draft.kernel.artifact_dir
    if directory is None:
        if not choice.models or choice.descriptor is None:
            return Path("artifacts")
        kind = choice.can.service_kind
        directory = Path("artifacts") / automatic_name(choice.models, kind, choice.descriptor.name, profiling)
    with draft.collected(draft.flag("artifact_dir")):
        try:
            check_directory(directory.absolute())
        except ConfigError as error:
            if not draft.kernel.dry_run:
                raise
            draft.warn(f"the run itself would be refused: {draft.flag('artifact_dir')}: {'; '.join(error.lines())}")
    return directory.absolute()


def automatic_name(models: Sequence[str], service_kind: str, endpoint_type: str, phase: PhasePlan) -> str:
    """``<model>-<service kind>-<endpoint type>-<stimulus>``."""
    model = models[0].replace("/", "_").replace("\0", "_") + ("_multi" if len(models) > 1 else "")
    rate = None if phase.rate is None else float(phase.rate)
    parts: tuple[tuple[str, object], ...] = (
        ("concurrency{}", phase.concurrency), ("request_rate{}", rate), ("request_rate_series", phase.rate_series),
    )  # fmt: skip
    if phase.users is not None:
        parts = (("user_centric", True), ("users{}", phase.users), ("qps{}", rate))
    elif phase.replay is not None:
        parts = (("fixed_schedule", True),)
    rest = "-".join((service_kind, endpoint_type, *(part.format(value) for part, value in parts if value is not None)))
    return f"{model[: max(1, _LONGEST - 1 - len(rest))]}-{rest}"


def check_directory(directory: Path) -> None:
    """Whether results can be written to it, or to it once it is made.

    Raises:
        ConfigError: They can't; says which part of the path is in the way.
    """
    existing = directory
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            directory.stat()
        while not os.path.lexists(existing) and existing != existing.parent:
            existing = existing.parent
        is_directory = existing.is_dir()
    except (OSError, ValueError) as error:  # a name too long, or a NUL in it
        raise ConfigError(f"{directory} can't be a directory: {getattr(error, 'strerror', None) or error}") from error
    if not is_directory:
        kind = "a link to nothing" if existing.is_symlink() and not existing.exists() else "a file"
        where = "it" if existing == directory else str(existing)
        raise ConfigError(f"{directory} can't be a directory: {where} is {kind}", "choose another one")
    for part in (existing, directory / "logs", directory / "journal"):
        if part.exists() and not os.access(part, os.W_OK | os.X_OK):
            raise ConfigError(f"{directory} can't be written to: no permission in {part}", "choose another one")
    journal = directory / "journal"
    if journal.is_dir() and not (journal / "run.json").exists() and any(journal.iterdir()):
        raise ConfigError(f"{journal} is there, and is not the journal of a run; it would be replaced", "choose another one")


def export_base(typed: str, patterns: Collection[str]) -> str:
    """The base name of exports: the last component of a path, without the ending of any export.

    *patterns*: the files of the exporters, see :func:`aiperf.sdk.exporter.file_name`.

    Raises:
        ConfigError: The path has no last component, or an export would take the place of another.
    """
    endings = {file_name(pattern, "\0").removeprefix("\0") for pattern in patterns if file_name(pattern, "\0")[:1] == "\0"}
    name = Path(typed).name
    ending = max((ending for ending in endings.union(_OTHER_ENDINGS) if name.endswith(ending)), key=len, default="")
    base = name.removesuffix(ending)
    if base in ("", ".", ".."):
        raise ConfigError(f"{typed!r} names no file", "give a name such as run1")
    fixed = {pattern for pattern in patterns if file_name(pattern, "\0") == pattern}
    for taken in sorted(fixed.intersection(base + ending for ending in endings)):
        raise ConfigError(f"{typed!r} would put the summary in the place of {taken}", "give another name, such as run1")
    return base
