"""The lanes in which the reference replays recorded agents; run by the Python of its environment.

Standard input has the words of ``aiperf profile``, the number of lanes, and the least and the greatest share of a trace's time
at which a lane begins, one pair or several; the last line of standard output has what ``lane_rows.py`` describes.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from reference import SEED, its, run_of


def sources(conversations: list[Any], lanes: int, least: float, most: float) -> Any:
    metadata = its("common.models.DatasetMetadata")(
        conversations=[one.metadata() for one in conversations], sampling_strategy="sequential"
    )
    roots = [one.session_id for one in conversations if one.is_root]
    return its("timing.trajectory_source.TrajectorySource")(
        dataset_metadata=metadata, dataset_sampler=its("dataset.dataset_samplers.SequentialSampler")(conversation_ids=roots),
        concurrency=lanes, random_seed=SEED, start_min_ratio=least, start_max_ratio=most, cache_bust_enabled=True,
    )  # fmt: skip


def lane(one: Any) -> list[Any]:
    states = [
        [state.conversation_id, state.next_turn_index, state.waiting_on_children] for state in one.snapshot.states
    ]
    return [one.conversation_id, one.snapshot.t_star_ms, sorted(states)]


def stream(one: Any) -> list[Any]:
    joins = {each.branch_id: turn for turn, row in enumerate(one.turns) for each in row.prerequisites}
    starts = {branch: turn for turn, row in enumerate(one.turns) for branch in row.branch_ids}
    branches = [
        [sorted(each.child_conversation_ids), starts.get(each.branch_id), joins.get(each.branch_id), each.start_timestamp_ms]
        for each in one.branches
    ]  # fmt: skip
    turns = [
        [turn.timestamp, turn.delay or 0.0, turn.max_tokens,
         sorted([each.conversation_id, each.turn_index] for each in turn.replay_predecessors)]
        for turn in one.turns
    ]  # fmt: skip
    return [one.session_id, None if one.is_root else one.parent_conversation_id, turns, sorted(branches, key=str)]


def main() -> None:
    words, lanes, shares = json.load(sys.stdin)
    generator = import_module("aiperf.common.random_generator")
    generator.reset()
    generator.init(SEED)
    tokenizer = its("common.tokenizer.Tokenizer").from_pretrained("builtin")
    found = its("dataset.composer.custom.CustomDatasetComposer")(run=run_of(words), tokenizer=tokenizer).create_dataset()
    told = [[lane(one) for one in sources(found, lanes, *each).trajectories] for each in shares]
    print(json.dumps({"lanes": told, "streams": sorted(map(stream, found))}))


if __name__ == "__main__":
    main()
