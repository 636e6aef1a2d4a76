"""The generated corpus of recorded agents on the wire, root by root, beside the plan that its data set makes."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agent_corpus import corpus
from aiperf import Capabilities, Conversation, DatasetContext
from aiperf.registry.registry import Registry
from aiperf.sdk.model import Message
from aiperf.sdk.trees import Stream
from aiperf_command_simulate.testing import running
from aiperf_dataset_weka_trace.dataset import WekaTrace
from aiperf_dataset_weka_trace.options import WekaOptions
from program import Program

TRACES = 64
CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True, tokenizes_input=True)
LANES = (
    "--scheduling-mode", "agentic_replay", "--trajectory-start-min-ratio", 0, "--trajectory-start-max-ratio", 0,
    "--trace-idle-gap-cap-seconds", 0.01, "--system-idle-gap-cap-seconds", 0.01, "--benchmark-duration", 600,
    "--concurrency", TRACES, "--num-sessions", TRACES,
)  # fmt: skip
SESSIONS = ("--ignore-trace-delays", "--concurrency", 8, "--num-sessions", TRACES, "--dataset-sampling-strategy", "sequential")
Seen = dict[str, Any]


def plan_of(folder: Path) -> list[Conversation]:
    tokenizer = Registry.discover().load("tokenizers", "builtin")(None).open("builtin")
    return list(WekaTrace(WekaOptions(), DatasetContext(20, 1, True, tokenizer, CHAT, folder, models=("m",))))


def streams_of(tree: Conversation) -> tuple[Stream, ...]:
    return tree.streams or (Stream(tree.id, 0, len(tree.turns)),)


def sent_trees(requests: list[Seen]) -> dict[int, dict[int, list[Seen]]]:
    """By the number of the tree and of the stream, requests in the order in which the server got them."""
    trees: dict[int, dict[int, list[Seen]]] = defaultdict(lambda: defaultdict(list))
    for request in sorted(requests, key=lambda one: one["received_mono_ns"]):
        *_, stream, tree = request["correlation_id"].split("-")
        trees[int(tree, 16)][int(stream, 16) - 0xB000].append(request)
    return trees


def shown(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.text} if message.item is None else message.item


@pytest.mark.long
@pytest.mark.parametrize("words", [SESSIONS, LANES], ids=["sessions", "lanes"])
def test_the_server_gets_of_each_root_what_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Any) -> None:
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))
    (folder := tmp_path / "corpus").mkdir()
    for number, trace in enumerate(corpus(7, TRACES)):
        (folder / f"{number:03}.json").write_text(json.dumps(trace))
    with running(truth_bodies=True, first_token_ms=1, decode_ms=0, tokens=2) as simulator:
        done = Program(tmp_path)(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--ui", "none",
            "--input-file", folder, "--custom-dataset-type", "weka_trace", "--random-seed", 1, "--workers", 2, *words,
        )  # fmt: skip
        trees = sent_trees(simulator.truth()["requests"])
    assert done.code == 0, done.err
    plan = plan_of(folder)
    assert len(plan) == TRACES and sorted(trees)[:TRACES] == list(range(TRACES))
    for number, tree in enumerate(plan):
        planned, sent = streams_of(tree), trees[number]
        assert {at for at, stream in enumerate(planned) if stream.turns} == set(sent), tree.id
        for at, requests in sent.items():
            stream = planned[at]
            bodies = [json.loads(request["body"]) for request in requests]
            places = range(stream.first, stream.end)
            assert [body["messages"] for body in bodies] == [[*map(shown, tree.messages(at))] for at in places], stream.id
            assert [body["max_completion_tokens"] for body in bodies] == [tree.turns[at].max_tokens for at in places]
        check_order(planned, sent)


def check_order(planned: tuple[Stream, ...], sent: dict[int, list[Seen]]) -> None:
    """Turns come one behind the other, children behind the turn that starts them, and joins behind children."""
    for number, requests in sent.items():
        for before, request in pairwise(requests):
            assert before["last_mono_ns"] <= request["received_mono_ns"]
        for branch in planned[number].branches:
            ends = [sent[child][-1]["last_mono_ns"] for child in branch.children]
            if branch.joins is not None:
                assert max(ends) <= requests[branch.joins]["received_mono_ns"]
            if branch.after is not None:
                starts = [sent[child][0]["received_mono_ns"] for child in branch.children]
                assert min(starts) >= requests[branch.after]["received_mono_ns"]
