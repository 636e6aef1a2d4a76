"""The pages of an agentic-code data set: HTML and SVG without scripts, which need nothing but the file."""

from __future__ import annotations

import html
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from aiperf.sdk.trace import TraceRow
from aiperf_command_analyze_trace.analysis import analyse
from aiperf_command_analyze_trace.statistics import bars

from aiperf_command_synthesize.model import AgenticSession

SIMULATED, SHOWN = 200, 50
"""Sessions of the simulation, and of the explorer's list: the first ones."""
_WIDTH, _HEIGHT = 640, 220
"""Pixels of a picture."""
_COLOURS = {"L1": "#2b6cb0", "L1.5": "#63b3ed", "L2": "#9f7aea", "context": "#cbd5e0", "L3": "#ed8936"}
_MEANINGS = {
    "L1": "shared by all sessions", "L1.5": "shared by the sessions of a group", "L2": "the session's own beginning",
    "context": "earlier turns of the session", "L3": "new in the turn",
}  # fmt: skip
_STYLE = (
    "body{font:15px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}td,th{padding:.2em .8em;text-align:right}"
    "td:first-child,th:first-child{text-align:left}svg{display:block;margin:.5em 0 1.5em}text{font:12px sans-serif}"
)


def report(title: str, comparison: Sequence[str], measures: Mapping[str, Sequence[float]]) -> str:
    """``report.html``: what was drawn beside what the model says, and a histogram of each measure."""
    parts = [f"<pre>{html.escape(chr(10).join(comparison))}</pre>"]
    for name, values in measures.items():
        parts += [f"<h2>{html.escape(name)}</h2>", _histogram(values)]
    return _page(title, parts)


def cache_explorer(title: str, sessions: Sequence[AgenticSession], structures: Sequence[Mapping[str, Any]], block: int) -> str:
    """``cache_explorer.html``: by layer the blocks of all prompts, groups by their sessions, and the turns of some sessions.

    structures: of each session as in ``cache_structure.json``.
    """
    parts = ["<h2>Blocks of all prompts, by who shares them</h2>", _legend()]
    totals = _by_layer(turn for structure in structures for turn in structure["turns"])
    every = sum(totals.values()) or 1
    rows = [(layer, _MEANINGS[layer], f"{count:,}", f"{count / every:.1%}") for layer, count in totals.items()]
    parts += [_bar(totals, every), _table(("layer", "", f"blocks of {block} tokens", "share"), rows)]
    groups: dict[int, list[AgenticSession]] = defaultdict(list)
    for session in sessions:
        groups[session.rows[0]["group_id"]].append(session)
    largest = sorted(groups.items(), key=lambda item: -len(item[1]))
    counted = [(str(group), f"{len(each):,}", f"{sum(len(one.rows) for one in each):,}") for group, each in largest]
    parts += ["<h2>Groups</h2>", _table(("group", "sessions", "turns"), counted)]
    parts.append(f"<h2>Turns of the first {min(SHOWN, len(structures))} sessions</h2>")
    longest = max((_blocks(turn) for each in structures[:SHOWN] for turn in each["turns"]), default=1)
    for structure in structures[:SHOWN]:
        turns = "".join(_bar(_by_layer([turn]), longest, 12) for turn in structure["turns"])
        words = f"{structure['session_id']}, group {structure['group_id']}, {len(structure['turns'])} turns"
        parts.append(f"<details><summary>{html.escape(words)}</summary>{turns}</details>")
    return _page(title, parts)


def simulation(title: str, sessions: Sequence[AgenticSession], block: int) -> str:
    """``simulation.html``: hit rate by the size of a cache, and by turn in a cache without end.

    The first sessions begin together, and each turn follows its delay; answers take no time and are not cached.
    """
    some = sessions[:SIMULATED]
    found, _ = analyse((row for _, row in _prompts(some)), block, curve=True)
    points = [] if found.cache_curve is None else [(point.blocks, point.hit_rate) for point in found.cache_curve.points]
    shares: dict[int, list[float]] = defaultdict(list)
    seen: set[int] = set()
    for turn, row in _prompts(some):
        known = next((at for at, block_id in enumerate(row.blocks) if block_id not in seen), len(row.blocks))
        shares[turn].append(known / len(row.blocks))
        seen.update(row.blocks)
    by_turn = [(turn + 1, sum(each) / len(each)) for turn, each in sorted(shares.items())]
    parts = [
        f"<p>The first {len(some):,} sessions, begun together; {found.total_requests:,} prompts of {found.referenced_blocks:,}"
        f" blocks, {found.distinct_blocks:,} of them different.</p>",
        f"<h2>Hit rate by size of the cache, in blocks of {block} tokens</h2>", _line(points),
        "<h2>Mean hit rate by turn, in a cache without end</h2>", _line(by_turn),
    ]
    return _page(title, parts)


def _prompts(sessions: Sequence[AgenticSession]) -> Iterator[tuple[int, TraceRow]]:
    """Turn and whole prompt of each request, in the order of their times."""
    due = []
    for number, session in enumerate(sessions):
        at_ms = 0.0
        for turn, row in enumerate(session.rows):
            at_ms += row.get("delay", 0.0)
            due.append((at_ms, number, turn))
    ids: list[list[int]] = [[] for _ in sessions]
    for at_ms, number, turn in sorted(due):
        row = sessions[number].rows[turn]
        ids[number] = [*ids[number], *row["hash_ids"]]
        yield turn, TraceRow(row["input_length"], row["output_length"], ids[number], at_ms, None, session=row["session_id"])


def _by_layer(turns: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    totals = dict.fromkeys(_COLOURS, 0)
    for turn in turns:
        for segment in turn["segments"]:
            totals[segment["layer"]] += segment["count"]
    return totals


def _blocks(turn: Mapping[str, Any]) -> int:
    return sum(segment["count"] for segment in turn["segments"])


def _page(title: str, parts: Sequence[str]) -> str:
    title = html.escape(title)
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>'
    return "\n".join([head, *parts]) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["".join(f"<th>{html.escape(head)}</th>" for head in heads)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"


def _legend() -> str:
    words = (f'<span style="color:{colour}">■</span> {_MEANINGS[layer]}' for layer, colour in _COLOURS.items())
    return f"<p>{', '.join(words)}</p>"


def _bar(counts: Mapping[str, int], whole: int, height: int = 24) -> str:
    """Counts beside each other; *whole* is the full width."""
    parts, left = [], 0.0
    for layer, count in counts.items():
        width = _WIDTH * count / whole
        if count:
            told = f"<title>{layer}: {count:,} blocks</title>"
            parts.append(f'<rect x="{left:.1f}" width="{width:.1f}" height="{height}" fill="{_COLOURS[layer]}">{told}</rect>')
        left += width
    return f'<svg width="{_WIDTH}" height="{height}" style="margin:1px 0">{"".join(parts)}</svg>'


def _histogram(values: Sequence[float]) -> str:
    found = bars(np.array(values, np.float64), 20)
    most, width, parts = max((each.count for each in found), default=1), _WIDTH / max(1, len(found)), []
    for at, each in enumerate(found):
        tall = (_HEIGHT - 40) * each.count / most
        told = f"<title>{each.low:,.0f} to {each.high:,.0f}: {each.count:,}</title>"
        place = f'x="{at * width + 1:.1f}" y="{_HEIGHT - 20 - tall:.1f}" width="{width - 2:.1f}" height="{tall:.1f}"'
        parts.append(f'<rect {place} fill="{_COLOURS["L1"]}">{told}</rect>')
    if found:
        parts.append(f'<text x="0" y="{_HEIGHT - 4}">{found[0].low:,.0f}</text>')
        parts.append(f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end">{found[-1].high:,.0f}</text>')
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}">{"".join(parts)}</svg>'


def _line(points: Sequence[tuple[float, float]]) -> str:
    """Shares, from 0 to 1, over a number from 1 on, by its logarithm."""
    most = max((at for at, _ in points), default=1)
    places = [(_WIDTH * math.log(at) / math.log(max(2, most)), (_HEIGHT - 40) * (1 - share) + 15) for at, share in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_COLOURS["L1"]}"><title>{at:,.0f}: {share:.1%}</title></circle>'
        for (x, y), (at, share) in zip(places, points, strict=True)
    )
    below = f'<text x="0" y="{_HEIGHT - 4}">1</text><text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end">{most:,.0f}</text>'
    ends = f'<text x="0" y="12">100 %</text>{below}'
    line = f'<polyline points="{path}" fill="none" stroke="{_COLOURS["L1"]}" stroke-width="2"/>'
    return f'<svg width="{_WIDTH}" height="{_HEIGHT}" style="overflow:visible">{line}{dots}{ends}</svg>'
