"""MATH-500: how its rows are asked."""

from __future__ import annotations

from pathlib import Path

from aiperf_benchmarks.contract import opened, write
from aiperf_dataset_math_500.contract import Math500Contract, sample
from aiperf_dataset_math_500.dataset import Math500


class TestMath500KeepsTheContract(Math500Contract):
    pass


def test_the_bare_problem_is_asked_and_the_solution_expected(tmp_path: Path) -> None:
    first, second = opened(Math500, "math_500", write(tmp_path / "m.jsonl", sample(2)))
    (turn,) = first.turns
    assert (first.system, first.opening, turn.text) == (None, (), "What is $0 / 3$?")
    assert (turn.expected, turn.task, turn.max_tokens) == (r"It is $\boxed{\frac{0}{3}}$.", "Algebra", 32768)
    assert second.turns[0].task == "Number Theory"


def test_a_subject_is_a_task(tmp_path: Path) -> None:
    found = opened(Math500, "math_500", write(tmp_path / "m.jsonl", sample(4)), tasks=["number_theory"])
    assert [one.turns[0].task for one in found] == ["Number Theory"] * 2
