"""The reference's benchmarks with the same rows: the same prompts byte for byte, answers and budgets, but for mended faults.

The reference's hellaswag and bigbench need deepeval in its environment: without it they are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from aiperf import Conversation
from aiperf_benchmarks.contract import CHAT, TEXT, opened, write

REFERENCE = os.environ.get("AIPERF_REFERENCE", "")
pytestmark = pytest.mark.skipif(not REFERENCE, reason="AIPERF_REFERENCE names no reference; make differential installs one")
ROWS = 20
SPLITS = {"aime": "train", "aime24": "train", "aime25": "train", "gpqa_diamond": "train"}
"""Of rows without a column for it, the split, where it is not test."""
CASES = [
    ("mmlu", 5, False), ("mmlu", 0, False), ("mmlu", 2, True), ("mmlu_pro", 5, True), ("mmlu_pro", 3, False),
    ("mmlu_pro", 0, True), ("aime", 0, True), ("aime", 8, True), ("aime", 3, False), ("aime24", 0, False),
    ("aime25", 0, False), ("hellaswag", 10, False), ("hellaswag", 0, False), ("bigbench", 3, True), ("bigbench", 1, False),
    ("math_500", 0, False), ("gsm8k", 0, False), ("gpqa_diamond", 0, False), ("lcb_codegeneration", 0, False),
]  # fmt: skip
TURNS = {"mmlu"}
"""Benchmarks whose examples are messages in the reference, too; A17 makes them so in all others."""


def rows_of(name: str) -> list[dict[str, Any]]:
    contract = import_module(f"aiperf_dataset_{'aime' if name.startswith('aime') else name}.contract")
    rows: list[dict[str, Any]] = contract.sample(ROWS, bare=True) if name in ("aime24", "aime25") else contract.sample(ROWS)
    for number, row in enumerate(rows):  # texts that a careless template changes
        for column in ("question", "Question", "problem", "Problem", "ctx", "input", "question_content"):
            if column in row:
                row[column] += ("", "  ", "\n", " {x} %s", " \u00e9\U0001d11e \\frac{1}{2}", ' "q"\n\n')[number % 6]
    return rows


def ours(name: str, path: Path, shots: int, cot: bool, **given: Any) -> list[Conversation]:
    (point,) = entry_points(group="aiperf.datasets", name="aime" if name.startswith("aime") else name)
    options = {"n_shots": shots, "system_prompt": "", **given}
    if name in ("mmlu", "mmlu_pro", "aime", "bigbench"):
        options["cot"] = cot
    return list(opened(point.load(), name, path, **options))


def theirs(name: str, rows: list[dict[str, Any]], shots: int, cot: bool) -> list[Any]:
    by_split: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        plain = {column: value for column, value in row.items() if column != "split"}
        by_split.setdefault(row.get("split", SPLITS.get(name, "test")), []).append(plain)
    done = subprocess.run(
        [Path(REFERENCE).parent / "python", Path(__file__).with_name("reference_problems.py")],
        input=json.dumps([[name, by_split, shots, cot]]), capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout.splitlines()[-1])
    if isinstance(found, str) and "deepeval is not installed" in found:
        pytest.skip(f"the reference's {name}: deepeval is not installed in its environment")
    assert isinstance(found, list), found
    return found


@pytest.mark.parametrize(("name", "shots", "cot"), CASES)
def test_twenty_rows_are_asked_as_the_reference_asks_them(name: str, shots: int, cot: bool, tmp_path: Path) -> None:
    rows = rows_of(name)
    path = write(tmp_path / "rows.jsonl", rows)
    flat, chat = (ours(name, path, shots, cot, can=can) for can in (TEXT, CHAT))
    known = {problem[0]: problem for problem in theirs(name, rows, shots, cot)}
    explained = 0
    assert len(flat) == len(known) == ROWS
    for number, (one, talk) in enumerate(zip(flat, chat, strict=True)):
        (turn,) = one.turns
        if name == "aime" and number < shots:  # A6: there, its own answer stands among its examples
            assert turn.text not in known
            explained += 1
            continue
        prompt, messages, expected, task, budget, stop = known[turn.text]
        assert (turn.text, turn.task, turn.max_tokens) == (prompt, task, budget)
        assert turn.settings.get("stop", []) == stop
        if name == "lcb_codegeneration":
            assert json.loads(turn.expected or "") == json.loads(expected)
        else:
            assert turn.expected == expected
        if not talk.opening or name in TURNS:
            spoken = [*talk.prelude, talk.turns[0].own[0]]
            assert [{"role": message.role, "content": message.text} for message in spoken] == messages
        else:  # A17
            assert len(talk.opening) == 2 * shots or name == "bigbench"
    assert explained == (shots if name == "aime" else 0)


def test_the_system_prompt_and_the_defaults_are_the_references_but_for_aime(tmp_path: Path) -> None:
    done = subprocess.run(
        [Path(REFERENCE).parent / "python", "-c",
         "import json; from aiperf.plugin import plugins; from aiperf.plugin.enums import PluginType as T\n"
         "print(); print(json.dumps({str(n): plugins.get_metadata(T.ACCURACY_BENCHMARK, n) for n in "
         f"{sorted({case[0] for case in CASES})!r}}}))"],
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for name, facts in json.loads(done.stdout.splitlines()[-1]).items():
        (point,) = entry_points(group="aiperf.datasets", name="aime" if name.startswith("aime") else name)
        made = opened(point.load(), name, tmp_path / "none")
        shots = 0 if name == "aime" else facts.get("default_n_shots", 0)  # A21
        assert (made.protocol.shots, made.protocol.system_prompt) == (shots, facts.get("default_system_prompt", "")), name
        if made.protocol.both:
            assert made.protocol.cot == facts.get("default_enable_cot", False), name
        grader = made.context.row["grader"]
        assert grader == facts["default_grader"], name
