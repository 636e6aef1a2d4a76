"""Recorded agents as the reference replays them: the same trees, requests, joins, delays and blocks.

A generated corpus (``agent_corpus.py``) is read by both; texts differ, so that they are compared by which of them are equal.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_corpus import corpus
from aiperf import Capabilities, Conversation, DatasetContext
from aiperf.registry.registry import Registry
from aiperf.sdk.trees import Stream
from aiperf_dataset_tracelab.dataset import Tracelab
from aiperf_dataset_tracelab.options import TracelabOptions
from aiperf_dataset_weka_trace.dataset import WekaTrace
from aiperf_dataset_weka_trace.options import WekaOptions
from aiperf_tokenizer_builtin.vocabulary import ranks
from tracelab_corpus import RoundFile

PROGRAMS = {name: path for name in ("AIPERF_REFERENCE", "AIPERF_NIGHTLY") if (path := os.environ.get(name))}
"""The release, and the build of the nightly, each in an environment of its own."""
pytestmark = pytest.mark.skipif(not PROGRAMS, reason="AIPERF_REFERENCE names no reference; make differential installs one")

TRACES = 64
"""Traces of the corpus."""
VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
"""The address under whose hash tiktoken looks for the vocabulary in its cache."""
WORDS = ["--model", "m", "--tokenizer", "builtin", "--url", "localhost:1", "--endpoint-type", "chat", "--random-seed", "1"]
CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True, tokenizes_input=True)
_BLOCK = 130
"""Characters that the text of a block has at least."""
OPTIONS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": ([], {}),
    "think": (["--use-think-time-only", "--inter-turn-delay-cap-seconds", "30"], {"think_time_only": True, "delay_cap_s": 30}),
    "short": (["--synthesis-max-osl", "100", "--synthesis-max-isl", "900"], {"max_osl": 100, "max_isl": 900}),
    "context": (["--max-context-length", "6000"], {"max_context": 6000}),
    "answers": (["--synthesis-max-osl", "100"], {"max_osl": 100}),
}
"""Options as typed, and as fields."""
WEKA_ONLY = ("short", "context")
"""Options of which the reference refuses one with tracelab, and ignores --synthesis-max-isl."""


FORMATS: dict[str, tuple[type[Any], type[Any]]] = {
    "weka_trace": (WekaTrace, WekaOptions), "tracelab": (Tracelab, TracelabOptions),
}  # fmt: skip


def written(form: str, folder: Path) -> Path:
    """A generated corpus in the format *form*."""
    if form == "tracelab":
        return RoundFile(11, TRACES).write(folder / "rounds.jsonl")
    for number, trace in enumerate(corpus(7, TRACES)):
        (folder / f"{number:03}.json").write_text(json.dumps(trace))
    return folder


def vocabulary(folder: Path) -> Path:
    """The folder as tiktoken's cache with the vocabulary, which the reference's built-in tokenizer asks for."""
    tokens = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks().items())
    (folder / hashlib.sha1(VOCABULARY.encode()).hexdigest()).write_bytes(tokens)
    return folder


@pytest.fixture(
    scope="module", ids=" ".join, params=[
        (program, form, options) for program in PROGRAMS for form in FORMATS for options in OPTIONS
        if form == "weka_trace" or options not in WEKA_ONLY
    ],
)  # fmt: skip
def read(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """What the reference and we make of the corpus."""
    program, form, options = request.param
    words, fields = OPTIONS[options]
    source, cache = written(form, tmp_path_factory.mktemp("traces")), vocabulary(tmp_path_factory.mktemp("tiktoken"))
    given = [*WORDS, "--input-file", str(source), "--custom-dataset-type", form, *words]
    env = {**os.environ, "TIKTOKEN_CACHE_DIR": str(cache), "AIPERF_DATASET_WEKA_PARALLEL_WORKERS": "1"}
    script = Path(__file__).with_name("reference_trees.py")
    python = str(Path(PROGRAMS[program]).with_name("python"))
    done = subprocess.run([python, str(script)], input=json.dumps(given), capture_output=True, text=True, timeout=600,
                          check=False, env=env)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    theirs = json.loads(done.stdout.splitlines()[-1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIPERF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        if program == "AIPERF_REFERENCE":  # the release has no such messages
            patch.setenv("AIPERF_DATASET_WEKA_FORK_PARENT_MESSAGES", "false")
        tokenizer = Registry.discover().load("tokenizers", "builtin")(None).open("builtin")
        context = DatasetContext(20, 1, False, tokenizer, CHAT, source, models=("m",))
        dataset, made_of = FORMATS[form]
        yield theirs, list(dataset(made_of(**fields), context))


def by_stream(conversation: Conversation) -> Iterator[tuple[Stream, list[tuple[tuple[str, str], ...]]]]:
    streams = conversation.streams or (Stream(conversation.id, 0, len(conversation.turns)),)
    for stream in streams:
        prompts = [conversation.messages(place) for place in range(stream.first, stream.end)]
        yield stream, [tuple((one.role, one.text) for one in prompt) for prompt in prompts]


def prompts_of(turns: list[dict[str, Any]]) -> list[list[tuple[str, str]]]:
    """The whole prompt of each turn."""
    said, prompts = list[tuple[str, str]](), []
    for turn in turns:
        said = ([] if turn["reset"] else said) + [(role, text) for role, text in turn["messages"]]
        prompts.append(list(said))
    return prompts


def test_the_same_conversations_start(read: tuple[Any, Any]) -> None:
    theirs, ours = read
    assert sorted(one["id"] for one in theirs) == sorted(stream.id for one in ours for stream, _ in by_stream(one))
    assert [one["id"] for one in theirs if one["parent"] is None] == [one.id for one in ours]


def test_prompts_have_the_same_messages_and_equal_texts_where_theirs_are(read: tuple[Any, Any]) -> None:
    theirs, ours = read
    known = {one["id"]: one for one in theirs}
    differing: list[tuple[Any, ...]] = []
    for conversation in ours:
        there: dict[str, str] = {}
        here: dict[str, str] = {}
        for stream, prompts in by_stream(conversation):
            for turn, (own, other) in enumerate(zip(prompts, prompts_of(known[stream.id]["turns"]), strict=True)):
                if [role for role, _ in own] != [role for role, _ in other]:
                    differing.append((stream.id, turn, [role for role, _ in own], [role for role, _ in other]))
                    continue
                for (_, mine), (_, its) in zip(own, other, strict=True):
                    if min(len(mine), len(its)) < _BLOCK:  # tokens of no block, few enough to be alike by chance
                        continue
                    if there.setdefault(its, mine) != mine or here.setdefault(mine, its) != its:
                        differing.append((stream.id, turn, "texts"))
    assert differing == []


def test_turns_have_the_same_lengths_delays_and_hits(read: tuple[Any, Any]) -> None:
    theirs, ours = read
    known = {one["id"]: one["turns"] for one in theirs}
    for conversation in ours:
        for stream, _ in by_stream(conversation):
            own = conversation.turns[stream.first : stream.end]
            for mine, its in zip(own, known[stream.id], strict=True):
                assert mine.max_tokens == its["max_tokens"]
                assert (mine.prefix_blocks, mine.prefix_hits) == (its["blocks"], its["hits"])
                assert (mine.delay_ms or 0.0) == pytest.approx(its["delay"] or 0.0, abs=1e-6)
                assert mine.timestamp_ms == pytest.approx(its["timestamp"])


def test_children_start_and_join_at_the_same_turns(read: tuple[Any, Any]) -> None:
    theirs, ours = read
    known = {one["id"]: one for one in theirs}
    for conversation in ours:
        mine = []
        for branch in conversation.streams[0].branches if conversation.streams else ():
            children = [conversation.streams[number].id for number in branch.children]
            mine.append((children, branch.after, branch.joins, pytest.approx(branch.start_ms)))
        its = known[conversation.id]
        starts = {branch: turn for turn, row in enumerate(its["turns"]) for branch in row["starts"]}
        joins = {branch: turn for turn, row in enumerate(its["turns"]) for branch in row["waits"]}
        told = [(one["children"], starts[one["id"]], joins.get(one["id"]), one["start"]) for one in its["branches"]]
        assert sorted(told, key=str) == sorted(mine, key=lambda row: str(row[:3]))
