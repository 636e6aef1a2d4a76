"""MMLU: how its rows are asked."""

from __future__ import annotations

from pathlib import Path

from aiperf_benchmarks.contract import CHAT, TEXT, opened, write
from aiperf_benchmarks.problems import ProblemRow
from aiperf_dataset_mmlu.contract import MmluContract, sample
from aiperf_dataset_mmlu.dataset import Mmlu, balanced


class TestMmluKeepsTheContract(MmluContract):
    pass


QUESTION = "Question: How often does {0} {1} turn?\nA. {1} times\nB. {2} times\nC. {3} times\nD. {4} times"


def question(subject: str, number: int) -> str:
    return QUESTION.format(subject, *range(number, number + 4))


def test_a_chat_has_the_subject_before_its_first_example(tmp_path: Path) -> None:
    first, *_ = opened(Mmlu, "mmlu", write(tmp_path / "m.jsonl", sample(2)), n_shots=2)
    lead = "The following are multiple choice questions (with answers) about anatomy.\n\n"
    messages = [message.text for message in first.opening]
    assert messages[0].startswith(lead + "Question: How often does anatomy 1004 turn?\nA. 1004 times")
    assert messages[1] == " A" and messages[2].startswith("Question:") and len(messages) == 4
    assert first.turns[0].text == question("anatomy", 0) + "\nAnswer:"
    (turn,) = first.turns
    assert (turn.expected, turn.task, turn.max_tokens, turn.settings["stop"]) == (" A", "anatomy", 5, ["\n"])


def test_a_text_joins_examples_and_question(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", sample(2))
    chat, text = (next(iter(opened(Mmlu, "mmlu", path, n_shots=2, can=can))) for can in (CHAT, TEXT))
    one, two = ("".join(message.text for message in chat.opening[at : at + 2]) for at in (0, 2))
    assert text.turns[0].text == f"{one}\n\n{two}\n\n{chat.turns[0].text}"


def test_reasoning_is_asked_for_in_the_question(tmp_path: Path) -> None:
    (first, *_) = opened(Mmlu, "mmlu", write(tmp_path / "m.jsonl", sample(1)), n_shots=0, cot=True)
    (turn,) = first.turns
    assert turn.text.startswith(
        "The following are multiple choice questions (with answers) about anatomy. Think step by step and then output the"
        ' answer in the format of "The answer is (X)" at the end.\n\nQuestion:'
    )
    assert turn.text.endswith("D. 3 times\nLet's think step by step.\nAnswer:")
    assert turn.max_tokens == 4000 and "stop" not in turn.settings


def test_examples_have_different_answers_as_far_as_there_are(tmp_path: Path) -> None:
    rows = [ProblemRow(str(n), {"question": f"q{n}", "choices": list("wxyz"), "answer": n // 5}) for n in range(20)]
    assert sorted(row.values["answer"] for row in balanced(rows, 4)) == [0, 1, 2, 3]
    assert balanced(rows, 6) == balanced(rows, 6) and len(balanced(rows, 99)) == 20
    few = [ProblemRow("0", {"question": "q", "choices": list("wxyz"), "answer": 1})]
    assert balanced(few, 5) == few


def test_an_answer_is_a_letter_or_an_index(tmp_path: Path) -> None:
    rows = [{**row, "answer": "ABCD"[row["answer"]]} for row in sample(4)]
    as_letters, as_indexes = (opened(Mmlu, "mmlu", write(tmp_path / "m.jsonl", each)) for each in (rows, sample(4)))
    assert list(as_letters) == list(as_indexes)
