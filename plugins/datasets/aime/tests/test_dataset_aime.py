"""AIME: how its rows are asked."""

from __future__ import annotations

from pathlib import Path

from aiperf_benchmarks.contract import TEXT, opened, write
from aiperf_dataset_aime.contract import AimeContract, sample
from aiperf_dataset_aime.dataset import Aime


class TestAimeKeepsTheContract(AimeContract):
    pass


def test_the_problem_is_asked_with_a_box_and_without_examples(tmp_path: Path) -> None:
    first, *_ = opened(Aime, "aime", write(tmp_path / "a.jsonl", sample(3)))
    assert first.system == "Please reason step by step, and put your final answer within \\boxed{}."
    assert first.opening == () and first.turns[0].text == (
        "**Problem**: Find $n$ with $n - 0 = 0$.\n**Answer**: \n\nLet's think step-by-step."
    )
    assert (first.turns[0].expected, first.turns[0].max_tokens, first.turns[0].task) == ("0", 32768, "aime")


def test_examples_are_other_problems_of_the_split(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", sample(4))
    first, second, *_ = opened(Aime, "aime", path, n_shots=2)
    assert [message.text.partition("**Problem**: ")[2] for message in first.opening[::2]] == [
        "Find $n$ with $n - 1 = 1$.", "Find $n$ with $n - 2 = 2$.",
    ]  # fmt: skip
    assert first.opening[0].text.startswith("The following are problems from the American Invitational Mathematics Examination")
    assert first.opening[1].text == "**Solution**: Add $1$ to both sides: $n = 2$.\n**Answer**: 2"
    assert second.opening[0].text.endswith("Find $n$ with $n - 0 = 0$.")
    (text, *_) = opened(Aime, "aime", path, n_shots=2, can=TEXT, system_prompt="")
    pairs = [f"{first.opening[at].text}\n{first.opening[at + 1].text}\n\n" for at in (0, 2)]
    assert text.turns[0].text == "".join(pairs) + first.turns[0].text


def test_without_reasoning_a_number_is_asked_for(tmp_path: Path) -> None:
    first, *_ = opened(Aime, "aime", write(tmp_path / "a.jsonl", sample(2)), cot=False, n_shots=1)
    assert first.turns[0].text.endswith("\n\nNo explanation needed. Just return a number.")
    assert first.opening[1].text == "**Answer**: 2"


def test_the_years_are_asked_as_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", sample(2, bare=True))
    for name in ("aime24", "aime25"):
        first, _ = opened(Aime, name, path)
        assert (first.system, first.opening, first.turns[0].text) == (None, (), "Find $n$ with $n - 0 = 0$.")
        assert (first.turns[0].expected, first.turns[0].task) == ("0", name)
