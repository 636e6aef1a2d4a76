"""GSM8K: how its rows are asked."""

from __future__ import annotations

from pathlib import Path

from aiperf_benchmarks.contract import opened, write
from aiperf_dataset_gsm8k.contract import Gsm8kContract, sample
from aiperf_dataset_gsm8k.dataset import Gsm8k


class TestGsm8kKeepsTheContract(Gsm8kContract):
    pass


def test_the_question_is_asked_with_a_budget_of_256_tokens(tmp_path: Path) -> None:
    (one,) = opened(Gsm8k, "gsm8k", write(tmp_path / "g.jsonl", sample(1)))
    (turn,) = one.turns
    assert (one.system, one.opening) == (None, ())
    assert turn.text == "Question: A hen lays 0 eggs a day. How many in a week?\nAnswer:"
    assert (turn.expected, turn.task, turn.max_tokens) == ("7 * 0\n#### 0", "gsm8k", 256)
    assert turn.settings == {"temperature": 0, "seed": 0}
