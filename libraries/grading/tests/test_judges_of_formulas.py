"""The optional judge: what it adds, and that it ends."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

import pytest
from aiperf_grading import engine as engine_module
from aiperf_grading.engine import MathVerify, installed
from aiperf_grading.equality import equal
from aiperf_grading.judging import Judgement

needs_engine = pytest.mark.skipif(installed() is None, reason="math-verify is not installed: aiperf-grading[math] brings it")


def test_who_judges_is_said_with_versions() -> None:
    own = f"aiperf-grading {version('aiperf-grading')}"
    try:
        judges = f"{own} and math-verify {version('math-verify')}"
    except PackageNotFoundError:
        judges = own
    judgement = Judgement()
    assert judgement.judges == judges
    assert judgement.equal(["2"], ["1", "2.0"]) == ("2.0", f"equal by {own}")
    assert judgement.equal(["2"], ["1"]) == (None, f"unequal by {judges}")


@needs_engine
def test_the_engine_adds_what_the_core_cannot_read() -> None:
    pairs = [("x>2", "2<x"), (r"\{1,2\}\cup\{3\}", r"\{1,2,3\}")]
    judgement = Judgement()
    assert [equal(*pair) for pair in pairs] == [False, False]
    assert judgement.equal([pairs[0][0]], [pairs[0][1]]) == (pairs[0][1], f"equal by {installed()}")
    assert judgement.equal(["x>2"], ["x>3"])[0] is None


@needs_engine
def test_an_expression_without_end_is_unequal_and_the_next_is_judged() -> None:
    engine = MathVerify()
    assert not engine("9^{9^{9^9}}", "9^{9^{9^9}}+1")
    assert engine("x>2", "2<x")
    engine.close()


@needs_engine
def test_no_process_is_left_behind() -> None:
    engine = MathVerify()
    assert engine("1", "1")
    process = engine._process
    assert process is not None
    del engine
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_lost_processes_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def lost(self: MathVerify, question: bytes) -> None:
        asked.append(question)

    monkeypatch.setattr(MathVerify, "_ask", lost)
    engine = MathVerify()
    assert not any(engine("a", "a") for _ in range(50))
    assert len(asked) == engine_module._MOST_LOST
    assert not engine("a" * 2_000, "a")


def test_the_engine_is_not_asked_whether_a_list_is_a_value() -> None:
    asked: list[tuple[str, str]] = []

    def engine(expected: str, answer: str) -> bool:
        asked.append((expected, answer))
        return True

    assert not equal("(1,2)", "3", engine) and not equal("x+1", "[a,b]", engine) and not equal("(1,2)", "(1,3)", engine)
    assert asked == []
    assert equal("(1,2)", "[1,2)", engine) and equal("2", "x>2", engine)
    assert asked == [("(1,2)", "[1,2)"), ("2", "x>2")]
