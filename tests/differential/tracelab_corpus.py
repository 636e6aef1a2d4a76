"""A seeded file of tracelab: agents of both kinds, their subagents, gaps, resets, ties, and rows that lack things."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def _stamp(second: float) -> str:
    return (_BEGIN + timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RoundFile:
    """The rows of a file with so many sessions that no other starts."""

    def __init__(self, seed: int, sessions: int) -> None:
        self._draw = random.Random(seed)
        self.rows: list[dict[str, Any]] = []
        for number in range(sessions):
            self._session(number)
        self._draw.shuffle(self.rows)

    def write(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        return path

    def _session(self, number: int) -> None:
        draw = self._draw
        codex = draw.random() < 0.3
        whose = {"user": f"u{draw.randrange(3)}", "project": draw.choice(("p", "q", None))}
        begin = 500.0 * number + draw.uniform(0, 400)
        name = f"{'codex' if codex else 'claude'}:{number:04d}"
        until = self._rounds(name, begin, draw.randrange(1, 9), whose, codex=codex)
        for child in range(draw.choice((0, 0, 1, 1, 2, 3))):
            start, end = self._window(name, draw.uniform(begin, max(begin, until - 1)), codex=codex)
            inner = f"{name}/sub {child}"
            at = start + draw.uniform(0, 0.3 * (end - start))
            self._rounds(inner, at, draw.randrange(1, 4), whose, codex=codex, last=end)
            deeper = self._window(inner, at, codex=codex, most=end - at) if draw.random() < 0.4 else None
            if deeper is not None:
                self._rounds(f"{inner}/sub", at, 1, whose, codex=codex, last=deeper[1])

    def _window(self, name: str, start: float, *, codex: bool, most: float = 120.0) -> tuple[float, float]:
        """Add calls that start an agent to one of the session's rows."""
        draw = self._draw
        row = draw.choice([row for row in self.rows if row["session_id"] == name])
        length = min(most, draw.choice((3.0, 9.999, 10.0, 40.0, 120.0)))
        stamps = {"emitted_at": _stamp(start), "result_at": _stamp(start + length)}
        if codex:
            calls: list[dict[str, Any]] = [{"tool_name": "spawn_agent", **stamps, "result_at": _stamp(start + 0.02)},
                     {"tool_name": "wait_agent", **stamps}]  # fmt: skip
        else:
            latency_ms = length * 1000 + draw.choice((0, 0.5, 3))
            calls = [{"tool_name": draw.choice(("Task", "Agent", "Bash")), **stamps, "tool_wall_latency_ms": latency_ms}]
        row.setdefault("tools", []).extend(calls)
        return start, start + length

    def _rounds(
        self, name: str, at: float, count: int, whose: dict[str, Any], *, codex: bool, last: float | None = None
    ) -> float:  # fmt: skip
        draw = self._draw
        total = draw.randrange(0, 900)
        for index in range(count):
            prefix = draw.choice((0, total, total, max(0, total - draw.randrange(1, 300)), total + 64))
            before, total = total, draw.choice((total + draw.randrange(0, 500), total + draw.randrange(0, 500), total // 3))
            events = [{"event_type": "tool_result" if index else "user_message", "timestamp": _stamp(at)}]
            if draw.random() < 0.2:
                events.append({"event_type": "tool_result", "timestamp": _stamp(at + draw.choice((0, 0.25)))})
            answer = draw.choice((0.0, 0.5, draw.uniform(0, 8)))
            if draw.random() < 0.9:
                kind = draw.choice(("text", "reasoning", "tool_call"))
                events.append({"event_type": kind, "timestamp": _stamp(at + answer)})
            if draw.random() < 0.03:
                events = [{"event_type": "user_message"}]
            row = {
                "session_id": name, "round_index": index if draw.random() < 0.9 else count - index, "input_tokens_total": total,
                "prefix_tokens": min(prefix, before), "newly_append_tokens": max(0, total - prefix), "timing_events": events,
                "provider": "codex" if codex else "claude", **whose,
            }  # fmt: skip
            if draw.random() < 0.8:
                row["output_tokens"] = draw.randrange(0, 300)
            if draw.random() < 0.2:
                row["reasoning_output_tokens"] = draw.randrange(0, 100)
            if draw.random() < 0.9:
                row["model"] = draw.choice(("small", "large"))
            if draw.random() < 0.5:
                row["first_input_event_type"] = draw.choice(("tool_result", "user_message"))
            self.rows.append(row)
            # The reference refuses the file where a worker begins and is joined at one time.
            at += max(answer, 0.3) + draw.choice((0.05, 1.0, draw.uniform(0, 20)))
            if last is not None and at >= last:
                break
        return at


__all__ = ["RoundFile"]
