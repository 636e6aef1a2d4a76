"""The numbers of one run as several tools define them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import msgspec
from aiperf import AiperfError, Definition, PluginError, atomic
from aiperf.parts.loading import made
from aiperf.sdk.command import PluginOptions
from aiperf.sdk.exporter import visible

from aiperf_command_report.comparison import Numbers, Spread, compare

_WIDTH = 100
"""Columns of the terminal that a paragraph takes."""
_ROWS = (("TTFT", "ttft_ms"), ("ITL", "itl_ms"), ("TPOT", "tpot_ms"))


def compared(directory: Path, plugin_options: PluginOptions | None) -> tuple[dict[str, Numbers], list[str]]:
    """The run by each installed definition, by name, and a sentence on each that failed.

    Raises:
        AiperfError: No definition is installed, or the directory holds no run.
    """
    installed = [] if plugin_options is None else plugin_options.registry.all("definitions")
    if plugin_options is None or not installed:
        raise AiperfError("no definition is installed", "pip install aiperf-definition-tools")
    definitions: dict[str, Definition] = {}
    failures: list[str] = []
    for definition in installed:
        try:
            definitions[definition.name] = made(definition.ref)
        except PluginError as error:
            failures.append(error.message)
    numbers, failed = compare(directory, definitions)
    failures += [f"{definition} failed: {failed[definition.name]}" for definition in installed if definition.name in failed]
    return numbers, failures


def as_json(numbers: Mapping[str, Numbers]) -> str:
    return visible(msgspec.json.format(msgspec.json.encode(numbers), indent=2)).decode() + "\n"


def as_text(numbers: Mapping[str, Numbers]) -> str:
    """A table with a column for each definition, and why they differ."""
    tools = list(numbers.values())
    rows = [["", *(tool.title for tool in tools)], ["Version", *(tool.version or "-" for tool in tools)]]
    for word, field in _ROWS:
        for statistic in ("mean", "p50", "p99"):
            spreads: list[Spread | None] = [getattr(tool, field) for tool in tools]
            shown = ["-" if spread is None else f"{getattr(spread, statistic):,.2f}" for spread in spreads]
            rows.append([f"{word} {statistic} (ms)", *shown])
    rows.append(["Requests/s", *(_rate(tool.requests_per_s) for tool in tools)])
    rows.append(["Output tokens/s", *(_rate(tool.output_tokens_per_s) for tool in tools)])
    lines = [f"{row[0]:<16}" + "".join(f"{cell:>18}" for cell in row[1:]) for row in rows]
    for tool in tools:
        why = textwrap.wrap(f"{f'{tool.title} {tool.version}'.strip()}: {tool.differs}", _WIDTH, subsequent_indent="  ")
        lines += ["", *why, f"  Source: {tool.source}"]
    return "\n".join(lines) + "\n"


def write(numbers: Mapping[str, Numbers], directory: Path) -> list[Path]:
    """The same as files, ``definitions.json`` and ``definitions.txt``."""
    files = {directory / "definitions.json": as_json(numbers), directory / "definitions.txt": as_text(numbers)}
    for path, content in files.items():
        with atomic(path) as draft:
            draft.write_text(content, encoding="utf-8")
    return list(files)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
