"""HellaSwag: how its rows are asked."""

from __future__ import annotations

from pathlib import Path

from aiperf_benchmarks.contract import CHAT, TEXT, opened, write
from aiperf_dataset_hellaswag.contract import HellaswagContract, sample
from aiperf_dataset_hellaswag.dataset import Hellaswag


class TestHellaswagKeepsTheContract(HellaswagContract):
    pass


def test_examples_are_of_different_activities(tmp_path: Path) -> None:
    path = write(tmp_path / "h.jsonl", sample(3))
    (chat, *_), (text, *_) = (opened(Hellaswag, "hellaswag", path, n_shots=2, can=can) for can in (CHAT, TEXT))
    lead = "The following are multiple choice questions (with answers) are sentence completion problems about Ice fishing.\n\n"
    first, one, second, two = (message.text for message in chat.opening)
    assert first.startswith(lead + "A person does Ice fishing for the 1000th time. The person\nA. takes 1000 of them.\nB.")
    assert first.endswith("\nAnswer:") and "Home and Garden" in second and (one, two) == ("A", "C")
    question = chat.turns[0].text
    assert question.endswith("D. takes 3 of them.\nAnswer:\n\nOutput 'A', 'B', 'C', or 'D'. Full answer not needed.")
    assert text.turns[0].text == f"{first} {one}\n\n{second} {two}\n\n{question}"
    assert (chat.turns[0].expected, chat.turns[0].task, chat.turns[0].max_tokens) == ("A", "Ice fishing", 5)


def test_rows_without_an_answer_are_left_out(tmp_path: Path) -> None:
    assert len(list(opened(Hellaswag, "hellaswag", write(tmp_path / "h.jsonl", sample(5))))) == 5


def test_activities_are_tasks_in_any_case(tmp_path: Path) -> None:
    found = opened(Hellaswag, "hellaswag", write(tmp_path / "h.jsonl", sample(6)), tasks=["ping pong"])
    assert {one.turns[0].task for one in found} == {"Ping-pong"}
