"""Input files that the reference accepts: the same conversations, turns, times and token lengths.

``make differential`` runs it with the reference in an environment of its own; ``AIPERF_REFERENCE=path/to/bin/aiperf`` names
one that is there.  Without it every test is skipped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from aiperf import Capabilities, Conversation, DatasetContext, Turn
from aiperf.parts.tools import data_source
from aiperf.registry.registry import Registry
from aiperf_tokenizer_builtin.vocabulary import ranks

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
VERSION = "0.13.0"
pytestmark = pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one")

VOCABULARY = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
"""The address under whose hash tiktoken looks for the vocabulary in its cache."""
WORDS = ["--model", "m", "--tokenizer", "builtin", "--url", "localhost:1", "--endpoint-type", "chat", "--random-seed", "1"]
CHAT = Capabilities(
    streaming=True, produces_tokens=True, tokenizes_input=True, media_in=("image", "audio", "video"), system_message=True,
    multi_turn=True, verbatim=True,
)  # fmt: skip


class Case(NamedTuple):
    """Files by their names (of Parquet the rows); the first one, or *source*, is the input file.

    kind: its format, where it must be named.  made: prompts are generated, so only their lengths are compared.
    drawn: rows are drawn, so only what is drawn is compared.  alone: whole prompts are known to be sent without history.
    """

    files: Mapping[str, str]
    kind: str = ""
    source: str = ""
    made: bool = False
    drawn: bool = False
    alone: bool = True


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def drawn_rows(seed: int, kind: str, count: int = 40) -> str:
    """Rows of a kind with fields by chance."""
    dice = random.Random(seed)

    def row(number: int) -> dict[str, Any]:
        words = " ".join(dice.choice(["rain", "Schnee", "été", "雪", "a\tb"]) for _ in range(dice.randint(1, 9)))
        length = {"output_length": dice.randint(1, 99)} if dice.random() < 0.5 else {}
        extra = {"extra": {"temperature": dice.random()}} if dice.random() < 0.3 else {}
        time = {"timestamp": number * 10 + dice.choice([0, 0.5])} if kind == "mooncake_trace" else {}
        content: dict[str, Any] = {"text": words} if dice.random() < 0.6 else {"texts": [words, "more"]}
        if kind == "mooncake_trace":
            # The reference refuses an id of two lengths, so the last one, of a shorter block, is the row's own.
            ids = [*sorted(dice.sample(range(50), dice.randint(0, 3))), 100 + number]
            content = {"input_length": len(ids) * 512 - dice.randint(0, 511), "hash_ids": ids}
        elif dice.random() < 0.2:
            content["images"] = ["https://example.org/a.png"] * dice.randint(1, 2)
        session = {"session_id": f"s{dice.randint(0, 9)}"} if kind != "mooncake_trace" and dice.random() < 0.4 else {}
        return {**content, **length, **extra, **time, **session}

    rows = [row(number) for number in range(count)]
    if kind == "multi_turn":
        rows = [{"turns": [{key: value for key, value in one.items() if key != "session_id"} for one in rows[at : at + 4]]}
                for at in range(0, count, 4)]  # fmt: skip
    return lines(*rows)


CHATS = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "2"}]
BODY = {"model": "m1", "messages": CHATS, "stream": True, "max_tokens": 4}


def captured(second: int, encoding: str = "JSON", **more: Any) -> dict[str, Any]:
    data = json.dumps({"messages": CHATS, **more})
    coded = data if encoding == "JSON" else base64.b64encode(data.encode()).decode()
    output = {"encoding": "JSON", "data": json.dumps({"usage": {"prompt_tokens": 3}})}
    return {"captureData": {"endpointInput": {"encoding": encoding, "data": coded}, "endpointOutput": output},
            "eventMetadata": {"eventId": f"e{second}", "inferenceTime": f"2025-01-01T00:00:{second:02}Z"}}  # fmt: skip


SPAN = {
    "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be terse."}]), "gen_ai.request.temperature": 0.5,
    "gen_ai.request.stop_sequences": ["END"], "gen_ai.tool.definitions": json.dumps([
        {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}]),
    "gen_ai.input.messages": json.dumps([
        {"role": "developer", "parts": [{"type": "text", "content": "dev"}]},
        {"role": "assistant", "parts": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "content": "so"}, {
            "type": "tool_call", "id": "c1", "name": "f", "arguments": {"x": 1}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": {"y": 2}}]},
    ]),
}  # fmt: skip


def called(second: int, attributes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    messages = [{"role": "user", "parts": [{"type": "text", "content": f"at {second}"}]}]
    given = {"gen_ai.input.messages": json.dumps(messages), "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 5}
    return {"type": "llm_call", "start_time": f"2025-01-01T00:00:{second:02}Z",
        "end_time": f"2025-01-01T00:00:{second + 1:02}Z",
            "attributes": {**given, **(attributes or {})}}  # fmt: skip


CASES: dict[str, Case] = {
    "single_turn": Case({"x.jsonl": lines({"text": "Name a colour."}, {"text": "Fruit?", "output_length": 12,
        "extra": {"t": 0}})}),
    "single_turn with media": Case({"x.jsonl": lines(
        {"texts": ["left", "right"], "images": ["https://h/a.png", "https://h/b.jpg"], "timestamp": 250},
        {"text": "listen", "audio": "wav,UklGRg==", "video": "https://h/c.mp4"},
    )}),
    "single_turn with sessions": Case({"x.jsonl": lines(
        {"session_id": "u1", "texts": [{"name": "query", "contents": ["dogs"]}, {"name": "passages", "contents": ["cats",
            "pups"]}]},
        {"text": "alone", "role": "assistant"}, {"session_id": "u1", "text": "second step", "delay": 400},
    )}),
    "single_turn by chance": Case({"x.jsonl": drawn_rows(1, "single_turn")}),
    "multi_turn": Case({"x.jsonl": lines(
        {"session_id": "s1", "turns": [{"text": "Hi"}, {"text": "And again", "delay": 500}]},
        {"turns": [{"role": "system", "text": "Be terse."}, {"text": "One?"}, {"text": "Two?", "output_length": 5}]},
        {"session_id": "s1", "turns": [{"text": "Look", "image": "https://h/a.png"}]},
    )}),
    "multi_turn whose system turn stays": Case({"x.jsonl": lines(
        {"turns": [{"role": "system", "text": "a", "delay": 5}, {"text": "b"}]}, {"turns": [{"role": "system",
            "text": "alone"}]},
        {"turns": [{"role": "system", "text": "a"}, {"role": "system", "text": "b"}, {"text": "c"}]},
        {"turns": [{"role": "system", "text": "a", "output_length": 5}, {"text": "b"}]},
    )}),
    "multi_turn by chance": Case({"x.jsonl": drawn_rows(2, "multi_turn")}),
    "mooncake_trace": Case({"x.jsonl": lines(
        {"timestamp": 0, "input_length": 1024, "output_length": 30, "hash_ids": [1, 2]},
        {"timestamp": 40, "input_length": 1300, "output_length": 12, "hash_ids": [1, 2, 9]}, {"timestamp": 50,
            "input_length": 77},
    )}, made=True),
    "mooncake_trace of texts": Case({"x.jsonl": lines(
        {"session_id": "a", "timestamp": 0, "text_input": "start", "output_length": 8},
        {"session_id": "a", "delay": 250, "text_input": "more"}, {"timestamp": 9, "text_input": "alone", "extra": {"t": 1}},
    )}),
    "mooncake_trace of chats": Case({"x.jsonl": lines(
        {"timestamp": 5, "messages": CHATS, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
        {"timestamp": 9, "payload": {"prompt": "x", "max_tokens": 3}},
    )}, "mooncake_trace"),
    "mooncake_trace by chance": Case({"x.jsonl": drawn_rows(3, "mooncake_trace")}, made=True),
    "bailian_trace": Case({"x.jsonl": lines(
        {"chat_id": 7, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 32, "output_length": 9, "type": "text",
            "turn": 1,
         "hash_ids": [4, 5]},
        {"chat_id": 1, "timestamp": 0.2, "input_length": 10, "output_length": 3, "type": "search", "hash_ids": [11]},
        {"chat_id": 8, "parent_chat_id": 7, "timestamp": 6.0, "input_length": 48, "output_length": 4, "type": "text", "turn": 2,
         "hash_ids": [4, 5, 6]},
        {"chat_id": 30, "parent_chat_id": 2, "timestamp": 3, "input_length": 20, "output_length": 3, "type": "file", "turn": 4,
         "hash_ids": [1, 2]},
    )}, "bailian_trace", made=True, alone=False),  # the reference sends history before prompts that have it
    "burst_gpt_trace": Case({"x.csv": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                                      "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,87,230,317,API log\n"}, made=True),
    "burst_gpt_trace in another order": Case({"x.csv": "Response tokens,Timestamp,Request tokens\n7,1,64\n9,1.5,64\n"},
        made=True),
    "raw_payload": Case({"x.jsonl": lines(BODY, {"messages": CHATS[:1], "stream": True})}, "raw_payload"),
    "raw_payload of a directory": Case({"d/a.jsonl": lines(BODY, BODY), "d/b.jsonl": lines({"messages": CHATS})}, source="d"),
    "inputs_json": Case({"x.json": json.dumps({"data": [
        {"session_id": "s1", "payloads": [{"model": "e", "input": ["x"]}]},
        {"session_id": "s3", "payloads": [{"prompt": "one"}, {"prompt": "two"}]},
    ]}, indent=2)}),
    "sagemaker_data_capture": Case({"x.jsonl": lines(
        captured(2, max_tokens=5), captured(0, "BASE64", max_completion_tokens=7, temperature=1), captured(1),
    )}),
    "baseten_trace": Case({"x.parquet": lines(
        {"timestamp_start_unix_ms": 1700000000000, "prompt": "a", "input_tokens": 1, "output_tokens": 3,
         "provided_session_id": "s1", "duration_e2e_ms": 800},
        {"timestamp_start_unix_ms": 1700000002000, "prompt": "a b", "input_tokens": 2, "output_tokens": 0,
         "provided_session_id": "s1", "duration_e2e_ms": 700},
        {"timestamp_start_unix_ms": 1700000001000, "prompt": "alone", "input_tokens": 2, "output_tokens": 9,
         "provided_session_id": "s2", "duration_e2e_ms": 15},
    )}),
    "speed_bench": Case({"qualitative.jsonl": lines(
        {"question_id": "1" * 32, "category": "math", "messages": [{"role": "system", "content": "s"}, CHATS[0]]},
        {"question_id": "2" * 32, "category": "coding", "messages": CHATS[:1]},
    )}, "speed_bench_math"),
    "speed_bench whole": Case({"throughput_1k.jsonl": lines(
        {"question_id": "3" * 32, "category": "mixed", "messages": CHATS[:1]},
    )}, "speed_bench_throughput_1k"),
    "exgentic": Case({"x.jsonl": lines(
        {"session_id": "s1", "harness": "tool_calling", "models": ["azure/gpt-4.1"], "spans": [called(5), called(2, SPAN), {
            **called(3), "type": "tool"}, {**called(4), "status": {"code": 2}}]},
        {"session_id": "s3", "harness": "claude_code", "models": ["m"], "spans": [called(1, {"gen_ai.request.max_tokens": 3})]},
    )}),
    "random_pool": Case({"d/queries.jsonl": lines({"text": "q"}), "d/passages.jsonl": lines({"texts": ["p", "r"]})}, source="d",
                        drawn=True),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("cases")
    for number, case in enumerate(CASES.values()):
        for name, text in case.files.items():
            path = made / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".parquet":
                write_parquet(path, [json.loads(line) for line in text.splitlines()])
            else:
                path.write_text(text)
    return made


def write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def source_of(what: str, folder: Path) -> Path:
    case = CASES[what]
    return folder / str(list(CASES).index(what)) / (case.source or next(iter(case.files)))


@pytest.fixture(scope="module")
def answers(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the reference says of each case, which one of its processes reads."""
    python = str(Path(REFERENCE).parent / "python")
    version = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('aiperf'))"], capture_output=True,
                             text=True, check=True).stdout.strip()  # fmt: skip
    if version != VERSION:
        pytest.skip(f"AIPERF_REFERENCE is {version}, and these files are compared with {VERSION}")
    cache = tmp_path_factory.mktemp("tiktoken")
    vocabulary = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks().items())
    (cache / hashlib.sha1(VOCABULARY.encode()).hexdigest()).write_bytes(vocabulary)
    cases = []
    for what, case in CASES.items():
        kind = ["--custom-dataset-type", case.kind] if case.kind else []
        count = ["--num-dataset-entries", "20"] if case.drawn else []
        if what == "exgentic":  # there a public data set, whose rows are read by its loader
            cases.append(["exgentic", str(source_of(what, folder)), *WORDS, "--public-dataset", what, "--request-count", "20"])
            continue
        cases.append([*WORDS, "--input-file", str(source_of(what, folder)), *kind, *count])
    script = Path(__file__).with_name("reference.py")
    done = subprocess.run([python, str(script)], input=json.dumps(cases), capture_output=True, text=True, timeout=300,
        check=False,
                          env={**os.environ, "TIKTOKEN_CACHE_DIR": str(cache)})  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(zip(CASES, json.loads(done.stdout.splitlines()[-1]), strict=True))


def ours(what: str, folder: Path) -> tuple[str, list[dict[str, Any]]]:
    registry = Registry.discover()
    case = CASES[what]
    chosen = data_source(source_of(what, folder), case.kind or None, registry, {})
    assert chosen.dataset is not None
    tokenizer = registry.load("tokenizers", "builtin")(None).open("builtin")
    context = DatasetContext(20, 1, False, tokenizer, CHAT, chosen.path, chosen.name, chosen.row)
    model = registry.load_options_model(registry.descriptor("datasets", chosen.dataset.name))
    dataset = registry.load("datasets", chosen.dataset.name)(None if model is None else model(), context)
    return chosen.name or chosen.dataset.name, [shown(one, tokenizer) for one in dataset]


def shown(one: Conversation, tokenizer: Any) -> dict[str, Any]:
    return {"id": one.id, "system": one.system, "turns": [shown_turn(turn, tokenizer) for turn in one.turns],
        "alone": one.alone}


def shown_turn(turn: Turn, tokenizer: Any) -> dict[str, Any]:
    payload = msgspec.json.decode(turn.payload) if isinstance(turn.payload, bytes) else turn.payload
    verbatim = turn.items is not None or payload is not None
    media = {f"{kind}s": [each.value for each in turn.media if each.kind == kind] for kind in ("image", "audio", "video")}
    return {
        "texts": [] if verbatim else list(turn.texts),
            "tokens": [] if verbatim else [tokenizer.count(text) for text in turn.texts],
        **media, "role": turn.role, "max_tokens": turn.max_tokens, "timestamp": turn.timestamp_ms, "delay": turn.delay_ms,
        "messages": None if turn.items is None else [message.item for message in turn.items],
        "tools": None if turn.tools is None else list(turn.tools), "payload": payload, "extra": turn.extra or None,
        "headers": turn.headers or None,
    }  # fmt: skip


def comparable(conversations: list[dict[str, Any]], case: Case) -> list[dict[str, Any]]:
    """The conversations without what may differ: ids that the tool makes, and the words of generated prompts."""
    found = []
    for one in conversations:
        turns = [{**turn, "role": turn["role"] or "user", "texts": len(turn["texts"]) if case.made else turn["texts"]}
                 for turn in one["turns"]]  # fmt: skip
        found.append({"system": one["system"], "turns": turns, "alone": one["alone"] and len(turns) > 1 and case.alone})
    return found


@pytest.mark.parametrize("what", CASES)
def test_the_reference_reads_the_same(what: str, folder: Path, answers: dict[str, Any]) -> None:
    theirs, case = answers[what], CASES[what]
    assert "error" not in theirs, theirs["error"]
    form, found = ours(what, folder)
    assert form == theirs["format"].rpartition(".")[2].lower()
    if case.drawn:  # by different dice
        assert len(found) == len(theirs["conversations"]) == 20
        assert {json.dumps(one["turns"][0]["texts"]) for one in found} == {
            json.dumps(one["turns"][0]["texts"]) for one in theirs["conversations"]
        }  # fmt: skip
        return
    assert comparable(found, case) == comparable(theirs["conversations"], case)
    named = {text for text in ("s1", "s3", "u1", "a", "7", "1") if json.dumps(text) in "".join(case.files.values())}
    assert {one["id"] for one in found} & named == {one["id"] for one in theirs["conversations"]} & named
