"""Which format a file has, by its first row and name: every format of the suite, at most one of whose packages is imported."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import AiperfError
from aiperf.parts.tools import format_of
from aiperf.registry.registry import Registry
from aiperf.registry.third_party import load
from aiperf_hook_recognition import recognition

MESSAGES = {"messages": [{"role": "user", "content": "a"}]}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The formats that recognition imports."""
    names: list[str] = []

    def loaded(plugin: Any) -> Any:
        names.append(plugin.name)
        return load(plugin)

    monkeypatch.setattr(recognition, "load", loaded)
    return names


def written(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize(("name", "content", "found"), [
    ("x.jsonl", {"text": "a"}, "single_turn"), ("x.jsonl", {"text": "a", "input_length": 5}, "single_turn"),
    ("x.jsonl", {"image": "a.png", "timestamp": 5}, "single_turn"), ("x.jsonl", {"text_input": "a"}, "single_turn"),
    ("x.jsonl.gz", {"texts": ["a"], "session_id": "s"}, "single_turn"), ("x.csv", "text,output_length\na,5\n", "single_turn"),
    ("long.jsonl", {"text": "a" * 2_000_000}, "single_turn"),
    ("cut in an escape.jsonl", {"text": "a" + "\n" * 600_000}, "single_turn"),
    ("x.jsonl", {"turns": [{"text": "a"}]}, "multi_turn"), ("x.jsonl", {"input_length": 5}, "mooncake_trace"),
    ("x.csv", "timestamp;input_length;hash_ids\n1;5;[1]\n", "mooncake_trace"),
    ("x.jsonl", {"text_input": "a", "timestamp": 0}, "mooncake_trace"), ("x.jsonl", MESSAGES, "mooncake_trace"),
    ("x.jsonl", {"text_input": "a", "session_id": "s"}, "mooncake_trace"), ("x.jsonl", {"payload": {"a": 1}}, "mooncake_trace"),
    ("x.jsonl", {**MESSAGES, "model": "m"}, "raw_payload"), ("x.jsonl", {**MESSAGES, "stream": False}, "raw_payload"),
    ("d/x.jsonl", MESSAGES, "raw_payload"), ("d/x.jsonl", {"text": "a"}, "random_pool"),
    ("x.jsonl", {"type": "random_pool", "text": "a"}, "random_pool"),
    ("x.jsonl", {"chat_id": 1, "timestamp": 2, "input_length": 3, "output_length": 4}, "bailian_trace"),
    ("x.csv", "Timestamp,Request tokens,Response tokens\n1,2,3\n", "burst_gpt_trace"),
    ("x.json", '{\n  "data": [\n    {"session_id": "s", "payloads": [{"prompt": "' + "a" * 100_000 + '"}]}]}', "inputs_json"),
    ("throughput_1k.jsonl", {"question_id": "1" * 32, "category": "mixed", **MESSAGES}, "speed_bench"),
    ("x.jsonl", {"question_id": "1" * 32, "category": "mixed", **MESSAGES}, "mooncake_trace"),
    ("x.json", '{\n "resourceSpans": [\n  {"scopeSpans": [{"spans": [{"traceId": "', "otel_spans"),
    ("x.jsonl", {"trace_id": "a", "attributes": {}}, "otel_spans"),
    ("x.jsonl", {"session_id": "a", "harness": "b", "models": ["c"], "spans": [{"type": "llm_call"}]}, "exgentic"),
    ("d/deep/x.jsonl", {"captureData": {"a": 1}, "eventMetadata": {"b": 2}}, "sagemaker_data_capture"),
])  # fmt: skip
def test_a_file_has_the_format_that_fits_it_best(
    name: str, content: Any, found: str, tmp_path: Path, registry: Registry, imported: list[str]
) -> None:
    path = written(tmp_path / name, content)
    given = tmp_path / "d" if name.startswith("d/") else path
    assert format_of(given, None, registry, {}).name == found
    assert imported in ([found], []), "no other package is imported"


@pytest.mark.parametrize(("name", "content", "words"), [
    ("x.jsonl", {"txt": "a", "sesion_id": 1}, ["its first row has sesion_id and txt", "nearly single_turn: text is missing",
        "'txt'"]),
    ("x.jsonl", {"chat_id": 1, "timestamp": 2, "inputlength": 3, "output_length": 4}, [
        "nearly bailian_trace: input_length is missing (did you mean it by 'inputlength'?)"]),
    ("x.jsonl", {"captureData": {"a": 1}}, ["nearly sagemaker_data_capture: eventMetadata is missing"]),
    ("x.txt", "hello", ["x.txt:1: no JSON", "--custom-dataset-type"]), ("x.csv", "a,b\n", ["it has no rows"]),
    ("x.jsonl", {"text": "a", "turns": [{"text": "b"}]}, ["could be", "multi_turn", "single_turn", "--custom-dataset-type"]),
    ("d/x.txt", "hello", ["it is a directory"]),
])  # fmt: skip
def test_a_file_without_a_format_is_refused_with_what_it_lacks(
    name: str, content: Any, words: list[str], tmp_path: Path, registry: Registry, imported: list[str]
) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(AiperfError) as caught:
        format_of(tmp_path / "d" if name.startswith("d/") else path, None, registry, {})
    said = "\n".join(caught.value.lines())
    assert [word for word in words if word not in said] == [], said
    assert imported == []


def test_a_compressed_file_that_is_cut_off_is_refused_as_such(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "a"}\n' * 1000)[:-20])
    with pytest.raises(AiperfError, match="can't be read: Compressed file ended before"):
        format_of(path, None, registry, {})
