"""GPQA Diamond: how its rows are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiperf_benchmarks.contract import opened, write
from aiperf_dataset_gpqa_diamond.contract import GpqaDiamondContract, sample
from aiperf_dataset_gpqa_diamond.dataset import GpqaDiamond


class TestGpqaDiamondKeepsTheContract(GpqaDiamondContract):
    pass


def test_choices_have_an_order_of_their_question(tmp_path: Path) -> None:
    (one,) = opened(GpqaDiamond, "gpqa_diamond", write(tmp_path / "g.jsonl", sample(1)))
    (turn,) = one.turns
    assert turn.text.startswith(
        "Answer the following multiple choice question. The last line of your response should be of the following format:"
        " 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. Think step by step before answering.\n\n"
        "Which element has 0 protons?\n\nA) number "
    )
    assert f"{turn.expected}) number 0" in turn.text.splitlines()
    assert sorted(line[3:] for line in turn.text.splitlines()[-4:]) == [f"number {number}" for number in range(4)]
    assert (turn.task, turn.max_tokens) == ("gpqa_diamond", 32768)


def test_right_answers_have_every_letter(tmp_path: Path) -> None:
    found = opened(GpqaDiamond, "gpqa_diamond", write(tmp_path / "g.jsonl", sample(60)))
    assert {one.turns[0].expected for one in found} == set("ABCD")


def test_csv_of_the_hub_is_read(tmp_path: Path) -> None:
    import csv

    rows: list[dict[str, Any]] = sample(2)
    with (tmp_path / "gpqa_diamond.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    table = opened(GpqaDiamond, "gpqa_diamond", tmp_path)
    assert list(table) == list(opened(GpqaDiamond, "gpqa_diamond", write(tmp_path / "g.jsonl", rows)))
