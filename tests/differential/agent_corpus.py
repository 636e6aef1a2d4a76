"""A corpus of recorded agents, made from a seed: chains, workers among them, subagents, cut contexts, gaps.

``python agent_corpus.py SEED TRACES [SCALE]`` writes it as JSON lines.  SCALE multiplies the blocks of prompts.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

BLOCK = 64
"""Tokens of a block."""


class Recorder:
    """Draws the traces; ids of blocks are numbered trace by trace, as recorders do."""

    def __init__(self, seed: int, scale: int = 1) -> None:
        self._dice, self._scale, self._next = random.Random(seed), scale, 0

    def trace(self, name: str) -> dict[str, Any]:
        """One trace."""
        dice, self._next = self._dice, 0
        requests = self._chain(0.0, dice.randint(3, 14), self._fresh(dice.randint(2, 8)), "m1")
        if dice.random() < 0.35:
            requests += self._workers(requests)
        if dice.random() < 0.3:  # a call for a title comes first
            requests.append(self._request(0.0, self._fresh(2), 12, "m1"))
            for request in requests[:-1]:
                request["t"] = round(request["t"] + 3.0, 3)
        entries = sorted(requests, key=lambda one: one["t"])
        if dice.random() < 0.2:
            entries = self._with_subagents(entries)
        return {
            "id": name, "models": ["m1", "m2"], "block_size": BLOCK, "hash_id_scope": "local", "tool_tokens": 0,
            "system_tokens": 0, "requests": entries,
        }  # fmt: skip

    def _fresh(self, count: int) -> list[int]:
        first, self._next = self._next, self._next + count * self._scale
        return list(range(first, self._next))

    def _request(self, at_s: float, ids: list[int], out: int, model: str) -> dict[str, Any]:
        dice = self._dice
        tail = dice.choice((0, 0, 5, 21, 63))
        row = {
            "t": round(at_s, 3), "type": dice.choice("ns"), "model": model, "in": BLOCK * len(ids) + tail, "out": out,
            "hash_ids": list(ids), "stop": dice.choice(("tool_use", "end_turn", "")),
        }  # fmt: skip
        if dice.random() < 0.9:
            row["api_time"] = round(dice.uniform(0.2, 6.0), 3)
        if dice.random() < 0.3:
            row["think_time"] = round(dice.uniform(0.0, 9.0), 3)
        return row

    def _chain(self, at_s: float, turns: int, ids: list[int], model: str) -> list[dict[str, Any]]:
        """An agent whose context grows, and now and then is cut."""
        dice, made = self._dice, list[dict[str, Any]]()
        for _ in range(turns):
            request = self._request(at_s, ids, dice.choice((1, 17, 80, 200, 900, 5000)), model)
            made.append(request)
            at_s += request.get("api_time", 0.0) + dice.choice((0.01, 0.4, 2.0, 9.0, 40.0, 700.0))
            kept = len(ids) if dice.random() < 0.8 else dice.randint(1, len(ids))
            ids = ids[:kept] + self._fresh(dice.randint(0 if kept < len(ids) else 1, 6))
        return made

    def _workers(self, main: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Agents that fork from one request of the main one, or share nothing with it."""
        dice, made = self._dice, list[dict[str, Any]]()
        origin = dice.choice(main)
        for number in range(dice.randint(1, 5)):
            shared = origin["hash_ids"][: dice.randint(1, len(origin["hash_ids"]))] if dice.random() < 0.7 else []
            ids = shared + self._fresh(dice.choice((1, 4, 300)))
            start_s = origin["t"] + 0.1 + number * dice.choice((0.05, 3.0))
            made += self._chain(start_s, dice.choice((1, 1, 2, 4)), ids, dice.choice(("m1", "m1", "m2")))
        return made

    def _with_subagents(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        dice, made = self._dice, list[dict[str, Any]]()
        for number, request in enumerate(entries):
            made.append(request)
            for each in range(dice.choice((0, 0, 1, 2))):
                start_s = round(request["t"] + request.get("api_time", 0.0) + 0.05, 3)
                begin_s, ids = start_s + dice.choice((0.0, 0.3)), self._fresh(dice.randint(1, 5))
                inner = self._chain(begin_s, dice.randint(1, 4), ids, "m1")
                if dice.random() < 0.3:
                    inner = sorted(inner + self._workers(inner), key=lambda one: one["t"])
                length_s = max(one["t"] for one in inner) - start_s
                made.append({
                    "t": start_s, "type": "subagent", "agent_id": f"a{number}_{each}", "subagent_type": "Explore",
                    "duration_ms": dice.choice((None, round(1000 * length_s))), "status": "completed", "models": ["m1"],
                    "requests": inner,
                })  # fmt: skip
        return made


def corpus(seed: int, traces: int, scale: int = 1) -> list[dict[str, Any]]:
    """The traces of a seed."""
    recorder = Recorder(seed, scale)
    return [recorder.trace(f"tr{number}") for number in range(traces)]


if __name__ == "__main__":
    for one in corpus(*map(int, sys.argv[1:])):
        print(json.dumps(one, separators=(",", ":")))
