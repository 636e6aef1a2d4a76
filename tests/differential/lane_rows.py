"""What lanes of agentic replay begin with, and what each request of their traces waits for, as rows that both tools can tell.

lanes: for each pair of shares a row a lane: the trace, the instant at which it is cut in ms, and of each stream that goes on
its name, its next turn, and whether that waits for children.  streams: a row a stream: its name, its parent's, its turns
(start and delay behind the answer before in ms, output limit, the requests of other streams that must have returned) and its
branches (children, the turn that starts them, the one that joins them, start in ms).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agent_corpus import corpus
from aiperf import Capabilities, Conversation, DatasetContext
from aiperf.registry.registry import Registry
from aiperf.sdk.driver import RequestStarter
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.trees import Stream
from aiperf_dataset_weka_trace.dataset import WekaTrace
from aiperf_dataset_weka_trace.options import WekaOptions
from aiperf_driver_agentic.cuts import waiting
from aiperf_driver_agentic.lanes import Cursor
from aiperf_driver_agentic.options import AgenticOptions
from aiperf_driver_agentic.recording import Recording

SEED, TRACES = 7, 64
"""Of the corpus, whose traces are as many as the lanes."""
DRAWS = 1
"""Seed of the cuts."""
SHARES = ((0.25, 0.75), (0.0, 1.0))
"""Those of the option's defaults, and those of the scenario."""
_NS_IN_MS = 2e-6
LOG = Path(__file__).with_name("lanes_of_the_reference.json")
"""What the release and the nightly build tell of the corpus, the same."""


def kept(told: dict[str, Any]) -> str:
    """Rows as the log has them: one a line."""
    lines = [json.dumps(row, separators=(",", ":")) for row in (*told["lanes"], *told["streams"])]
    return f"[{len(told['lanes'])},\n" + ",\n".join(lines) + "]\n"


def log() -> dict[str, Any]:
    """The rows of the log."""
    lanes, *told = json.loads(LOG.read_text())
    return {"lanes": told[:lanes], "streams": told[lanes:]}


def equal(ours: Any, theirs: Any) -> bool:
    """Whether rows are the same; times to the ns."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) < _NS_IN_MS
    return bool(ours == theirs)


def written(folder: Path) -> Path:
    """The corpus as a directory of traces."""
    folder.mkdir(exist_ok=True)
    for number, trace in enumerate(corpus(SEED, TRACES)):
        (folder / f"{number:03}.json").write_text(json.dumps(trace))
    return folder


def conversations(source: Path) -> list[Conversation]:
    """The corpus as our data set has it."""
    tokenizer = Registry.discover().load("tokenizers", "builtin")(None).open("builtin")
    chat = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True, tokenizes_input=True)
    return list(WekaTrace(WekaOptions(), DatasetContext(20, 1, False, tokenizer, chat, source, models=("m",))))


class Entries:
    """As much of a request starter as says what the data set has."""

    def __init__(self, trees: Sequence[Conversation]) -> None:
        self._trees = trees

    def entry(self, _: PhasePlan, number: int) -> int:
        return number % len(self._trees)

    def name(self, entry: int) -> str:
        return self._trees[entry].id

    def turns(self, entry: int) -> int:
        return len(self._trees[entry].turns)

    def streams(self, entry: int) -> Sequence[Stream]:
        return self._trees[entry].streams

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        recorded = self._trees[entry].turns[turn].recorded_ms
        return None if recorded is None else (round(recorded[0] * 1e6), round(recorded[1] * 1e6))


def rows(trees: Sequence[Conversation]) -> dict[str, Any]:
    """What this project tells of them."""
    starter = cast(RequestStarter, Entries(trees))
    streams = [row for entry, tree in enumerate(trees) for row in _streams(tree, Recording(starter, entry))]
    return {"lanes": [list(_lanes(starter, len(trees), *each)) for each in SHARES], "streams": sorted(streams)}


def _lanes(starter: RequestStarter, lanes: int, least: float, most: float) -> Iterator[list[Any]]:
    phase = cast(PhasePlan, SimpleNamespace(concurrency=lanes, entries=lanes))
    options = AgenticOptions(start_min_ratio=least, start_max_ratio=most)
    for first in Cursor(starter, phase, cast(Any, None)).first_trees(options, DRAWS):
        recording, cut = first.recording, first.cut
        held = set(waiting(recording, cut))
        states = [
            [recording.streams[stream].id, place - recording.streams[stream].first, stream in held]
            for stream, place in cut.going.items()
        ]
        assert cut.at_ns is not None
        yield [recording.name, cut.at_ns / 1e6, sorted(states)]


def _streams(tree: Conversation, recording: Recording) -> Iterator[list[Any]]:
    for number, stream in enumerate(recording.streams):
        turns = []
        for place in range(stream.first, stream.end):
            turn = tree.turns[place]
            before = sorted(
                [recording.streams[other].id, last - recording.streams[other].first]
                for other, last in recording.ended_before(number, place)
            )
            turns.append([turn.recorded_ms and turn.recorded_ms[0], turn.delay_ms or 0.0, turn.max_tokens, before])
        branches = [
            [sorted(recording.streams[child].id for child in one.children), one.after, one.joins, one.start_ms]
            for one in stream.branches
        ]
        parent = None if stream.parent < 0 else recording.streams[stream.parent].id
        yield [stream.id, parent, turns, sorted(branches, key=str)]
