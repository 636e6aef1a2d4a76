"""One run's numbers as several tools define them."""

from __future__ import annotations

from pathlib import Path

import msgspec
from aiperf import AiperfError
from aiperf.command import Others
from aiperf.comparison import Numbers, Spread, compare

_ROWS = (("TTFT", "ttft_ms"), ("ITL", "itl_ms"), ("TPOT", "tpot_ms"))


def side_by_side(directory: Path, others: Others | None, as_json: bool) -> str:
    """A table with a column for each installed definition, and why they differ.

    Raises:
        AiperfError: No definition is installed, or the directory holds no run.
    """
    found = [] if others is None else others.registry.all("definitions")
    if others is None or not found:
        raise AiperfError("no definition is installed", "pip install aiperf-definition-tools")
    numbers = compare(directory, {one.name: others.registry.load("definitions", one.name)() for one in found})
    if as_json:
        return msgspec.json.format(msgspec.json.encode(numbers), indent=2).decode()
    return "\n".join(_table(list(numbers.values())))


def _table(tools: list[Numbers]) -> list[str]:
    rows = [["", *(tool.title for tool in tools)]]
    for word, field in _ROWS:
        for statistic in ("mean", "p50", "p99"):
            spreads: list[Spread | None] = [getattr(tool, field) for tool in tools]
            shown = ["-" if spread is None else f"{getattr(spread, statistic):,.2f}" for spread in spreads]
            rows.append([f"{word} {statistic} (ms)", *shown])
    rows.append(["Requests/s", *(_rate(tool.requests_per_s) for tool in tools)])
    rows.append(["Output tokens/s", *(_rate(tool.output_tokens_per_s) for tool in tools)])
    lines = [f"{row[0]:<16}" + "".join(f"{cell:>18}" for cell in row[1:]) for row in rows]
    return [*lines, "", *(f"{tool.title}: {tool.differs} ({tool.source})" for tool in tools)]


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
