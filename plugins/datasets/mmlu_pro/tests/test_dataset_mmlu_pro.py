"""MMLU-Pro: how its rows are asked."""

from __future__ import annotations

from pathlib import Path

from aiperf_benchmarks.contract import CHAT, TEXT, opened, write
from aiperf_dataset_mmlu_pro.contract import MmluProContract, sample
from aiperf_dataset_mmlu_pro.dataset import MmluPro


class TestMmluProKeepsTheContract(MmluProContract):
    pass


def test_examples_have_their_reasoning(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", sample(2))
    (chat, *_), (text, *_) = (opened(MmluPro, "mmlu_pro", path, n_shots=1, can=can) for can in (CHAT, TEXT))
    lead = (
        "The following are multiple choice questions (with answers) about law. Think step by step and then output the answer"
        ' in the format of "The answer is (X)" at the end.\n\n'
    )
    example, answer = (message.text for message in chat.opening)
    assert example.startswith(lead + "Question: How many law cases are in 1000?\nOptions: A. 1000 of them\nB. 1001 of them\n")
    assert example.endswith("\nAnswer:") and answer == "Let's think step by step. Count to 1000. The answer is (A)."
    question = chat.turns[0].text
    assert question.endswith("H. 7 of them\nAnswer: Let's think step by step.\n\n")
    assert text.turns[0].text == f"{example} {answer}\n\n{question}"
    assert (chat.turns[0].expected, chat.turns[0].max_tokens) == ("A", 4000)


def test_choices_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    _, second = opened(MmluPro, "mmlu_pro", write(tmp_path / "m.jsonl", sample(2)), n_shots=0)
    assert "N/A" not in second.turns[0].text and second.turns[0].task == "math"


def test_without_reasoning_examples_have_letters(tmp_path: Path) -> None:
    first, _ = opened(MmluPro, "mmlu_pro", write(tmp_path / "m.jsonl", sample(2)), n_shots=1, cot=False)
    assert first.opening[1].text == "A" and first.turns[0].text.endswith("Answer: \n\n")
    assert "step by step" not in first.opening[0].text
