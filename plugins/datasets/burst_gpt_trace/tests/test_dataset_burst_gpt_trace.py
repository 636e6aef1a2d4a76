"""Tables of BurstGPT: columns, generated prompts, and rows that can't be sent."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_burst_gpt_trace.contract import BurstGptTraceContract
from aiperf_dataset_burst_gpt_trace.dataset import BurstGptTrace
from aiperf_dataset_burst_gpt_trace.options import BurstGptTraceOptions
from aiperf_dataset_synthetic.contract import WordTokens

HEADER = "Timestamp,Request tokens,Response tokens\n"


def read(file: Path, text: str, tokenizer: Any = ..., **given: Any) -> list[Conversation]:
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    tokens = WordTokens() if tokenizer is ... else tokenizer
    options, context = BurstGptTraceOptions(**given), DatasetContext(100, 7, True, tokens, Capabilities(), file)
    found = list(BurstGptTrace(options, context))
    DatasetContract.check_promise(BurstGptTrace(options, context), found)
    return found


class TestBurstGptTraceKeepsTheContract(BurstGptTraceContract):
    pass


@pytest.mark.parametrize(("text", "rows"), [
    ("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
     "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,87,230,317,API log\n", [(5000, 472, 18), (45000, 87, 230)]),
    (HEADER + "0.5,12,3\n", [(500, 12, 3)]),
    ("Response tokens,Timestamp,Request tokens\n7,1,64\n9,1,64\n", [(1000, 64, 7), (1000, 64, 9)]),
    ('\ufeff"Timestamp","Model","Request tokens","Response tokens"\r\n1,"a, ""b""\r\nc",2,3.0\r\n', [(1000, 2, 3)]),
])  # fmt: skip
@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_columns_are_found_by_name(tmp_path: Path, name: str, text: str, rows: list[tuple[float, int, int]]) -> None:
    turns = [turn for each in read(tmp_path / name, text) for turn in each.turns]
    assert [(turn.timestamp_ms, len(turn.text.split()), turn.max_tokens) for turn in turns] == rows
    assert [turn.input_tokens for turn in turns] == [length for _, length, _ in rows]


@pytest.mark.parametrize(("row", "why"), [
    ("x,5,6", "Timestamp is 'x'; it must be a number"), ("-1,5,6", "Timestamp is -1; it must be a number of seconds"),
    ("nan,5,6", "Timestamp is 'nan'"), ("1,0,6", "Request tokens is 0; it must be a whole number of at least 1"),
    ("1,5,0", "Response tokens is 0"), ("1,5.5,6", "Request tokens is 5.5"), ("1,,6", "Request tokens is ''"),
])  # fmt: skip
def test_rows_that_cannot_be_sent_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture, row: str, why: str) -> None:
    assert len(read(tmp_path / "trace.csv", f"{HEADER}0,5,6\n{row}\n{row}\n")) == 1
    assert "2 of 3 rows can't be sent and are skipped" in caplog.text
    assert f"trace.csv:3: {why}" in caplog.text
    with pytest.raises(BadDataset) as caught:
        read(tmp_path / "trace.csv", f"{HEADER}{row}\n")
    assert f"trace.csv:2: {why}" in caught.value.message


@pytest.mark.parametrize(("text", "words"), [
    ("Timestamp,Tokens\n1,2\n", "has no column Request tokens, Response tokens"),
    ("Timestamp:Request tokens:Response tokens\n1:2:3\n", "has no column Timestamp"),
    (HEADER + "1,2\n", "trace.csv:2: 2 values for 3 columns"),
])  # fmt: skip
def test_a_table_of_another_shape_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path / "trace.csv", text)
    assert words in caught.value.message


def test_without_a_tokenizer_lengths_mean_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="measured in tokens"):
        read(tmp_path / "trace.csv", HEADER + "1,2,3\n", tokenizer=None)


def test_it_knows_tables_with_its_columns() -> None:
    row = {"Timestamp": "1", "Request tokens": "2", "Response tokens": "3"}
    assert BurstGptTrace.recognises(Path("t.csv"), row)
    assert not BurstGptTrace.recognises(Path("t.csv"), {"Timestamp": "1", "Tokens": "2"})
    assert not BurstGptTrace.recognises(Path("t.csv"), None)


def test_rows_are_scaled_while_they_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = HEADER + "10,40,6\n20,10,8\n30,99,1\n"
    scaled = read(tmp_path / "trace.csv", text, speedup=4.0, prompt_length=0.5, output_length=2.0, max_isl=50, max_osl=15)
    turns = [conversation.turns[0] for conversation in scaled]
    assert [(turn.timestamp_ms, turn.input_tokens, turn.max_tokens) for turn in turns] == [(2500.0, 20, 12), (5000.0, 5, 15)]
    assert "longer than 50 tokens: 1 of the rows" in caplog.text


def test_multipliers_of_prefixes_are_refused_because_there_are_none() -> None:
    typed = {"prefix_roots": "--synthesis-prefix-root-multiplier"}
    (problem,) = BurstGptTraceOptions(prefix_roots=2).problems(typed)
    assert problem.startswith("--synthesis-prefix-root-multiplier has no use")
