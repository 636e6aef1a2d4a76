"""Questions of SPEED-Bench: turns, categories, and what a row must have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf_dataset_speed_bench.contract import SpeedBenchContract, question
from aiperf_dataset_speed_bench.dataset import SpeedBench
from aiperf_dataset_speed_bench.options import SpeedBenchOptions
from aiperf_testing.manifests import row_of

CHAT = Capabilities(system_message=True, multi_turn=True)


def read(path: Path, *rows: dict[str, Any], name: str = "", file: str = "qualitative.jsonl") -> list[Conversation]:
    (path / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    row = row_of("datasets", SpeedBench).capabilities["names"][name] if name else {}
    return list(SpeedBench(SpeedBenchOptions(), DatasetContext(100, 7, True, None, CHAT, path / file, name, row)))


class TestSpeedBenchKeepsTheContract(SpeedBenchContract):
    pass


def test_the_manifest_has_every_name() -> None:
    names = row_of("datasets", SpeedBench).capabilities["names"]
    assert len(names) == 32
    assert names["speed_bench_throughput_16k_high_entropy"] == {"file": "throughput_16k.jsonl", "category": "high_entropy"}


def test_every_message_is_a_turn(tmp_path: Path) -> None:
    row = question(1, "be terse", "2+2?", "why?")
    row["messages"][0]["role"] = "system"
    (one,) = read(tmp_path, row)
    assert (one.id, one.system, one.alone) == (row["question_id"], None, False)
    assert [(turn.role, turn.text) for turn in one.turns] == [("system", "be terse"), ("user", "2+2?"), ("user", "why?")]


def test_a_name_selects_the_rows_of_its_category(tmp_path: Path) -> None:
    rows = question(1, "a"), question(2, "b", category="coding"), question(3, "c")
    assert [one.turns[0].text for one in read(tmp_path, *rows)] == ["a", "b", "c"]
    assert [one.turns[0].text for one in read(tmp_path, *rows, name="speed_bench_qualitative")] == ["a", "b", "c"]
    assert [one.turns[0].text for one in read(tmp_path, *rows, name="speed_bench_math")] == ["a", "c"]
    with pytest.raises(BadDataset, match="has no rows of the category qa, which speed_bench_qa selects") as caught:
        read(tmp_path, *rows, name="speed_bench_qa")
    assert caught.value.hints == ("its categories: coding, math",)


def test_a_file_of_another_name_is_read_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert len(read(tmp_path, question(1, "a", category="mixed"), name="speed_bench_throughput_1k_mixed", file="x.jsonl")) == 1
    assert "x.jsonl is read as speed_bench_throughput_1k_mixed, whose file is throughput_1k.jsonl" in caplog.text


@pytest.mark.parametrize(("changed", "words"), [
    ({"question_id": "short"}, ":2: question_id is 'short'; it must have 32 characters"),
    ({"question_id": None}, ":2: question_id is None"), ({"question_id": 5}, ":2: question_id is 5; it must be a text"),
    ({"category": ""}, ":2: the row has no category"), ({"messages": []}, ":2: messages must be a non-empty list"),
    ({"messages": [{"role": "user", "content": " "}]}, "must have a role and a content"),
    ({"messages": [{"role": "", "content": "a"}]}, "must have a role and a content"),
    ({"messages": [{"role": "user", "content": "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"}]},
     ":2: the row has a placeholder in place of its text"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, question(1, "a"), question(2, "b") | changed, name="speed_bench_qualitative")
    assert words in caught.value.message


def test_it_knows_its_files_by_their_exact_names() -> None:
    row = question(1, "a")
    assert SpeedBench.recognises(Path("a/throughput_8k.jsonl"), row)
    assert not SpeedBench.recognises(Path("a/my_throughput_8k.jsonl"), row)
