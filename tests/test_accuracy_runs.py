"""Repeated problems in a whole run, by what the server said; graded again by another grader; counted again by ``validate``."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from statistics import fmean

import pytest
from aiperf.registry.registry import Registry
from aiperf_benchmarks.contract import opened, write
from aiperf_command_simulate.testing import running
from aiperf_command_validate.results import check
from aiperf_command_validate.schemas import schemas
from aiperf_dataset_math_500.contract import sample
from aiperf_dataset_math_500.dataset import Math500
from aiperf_grading.engine import installed
from aiperf_grading.extraction import boxes
from program import Program

REPEATS = 4


def any_right(answers: list[bool], k: int) -> float:
    """The share of draws of *k* answers with a right one, by counting them all."""
    return fmean(any(drawn) for drawn in combinations(answers, k))


def test_repeats_are_counted_by_problem_and_graded_again(aiperf: Program, tmp_path: Path) -> None:
    file = write(tmp_path / "problems.jsonl", sample(8))
    asked = [one.turns[0] for one in opened(Math500, "math_500", file)]
    known = [{"question": turn.text, "answer": next(boxes(turn.expected or ""), ""), "form": "box"} for turn in asked]
    with running(answers=write(tmp_path / "answers.jsonl", known), right=0.6, decode_ms=1, truth_bodies=True) as server:
        done = aiperf(
            "profile", "--model", "m", "--url", server.url, "--endpoint-type", "chat", "--tokenizer", "builtin", "--ui", "none",
            "--accuracy-benchmark", "math_500", "--accuracy-data", file, "--accuracy-repeats", REPEATS, "--concurrency", 4,
        )  # fmt: skip
        truth = server.truth()["requests"]
    assert done.code == 0, done.err
    right, seeds = defaultdict[str, list[bool]](list), defaultdict[str, set[int]](set)
    for row in truth:
        body = json.loads(row["body"])
        right[body["messages"][-1]["content"]].append(row["answers"][0]["right"])
        seeds[body["messages"][-1]["content"]].add(body["seed"])
    assert {tuple(sorted(each)) for each in seeds.values()} == {tuple(range(REPEATS))} and len(right) == len(asked)
    told, shares = done.json()["accuracy"], [*right.values()]
    assert (told["graded"], told["correct"]) == (REPEATS * len(asked), sum(map(sum, shares)))
    for k in (1, 2, 4):
        assert told[f"pass_at_{k}"] == pytest.approx(fmean(any_right(each, k) for each in shares))
    registry = Registry.discover()
    for grader, engine, correct in (("math", installed(), told["correct"]), ("exact_match", None, 0)):
        again = aiperf("report", done.artifacts, "--accuracy-grader", grader)
        assert again.code == 0, again.err
        found = done.json()["accuracy"]
        assert (found["grader"], found["symbolic_engine"], found["correct"]) == (grader, engine, correct)
        copy = shutil.copytree(done.artifacts, tmp_path / grader)
        assert check(copy, schemas(registry), registry).faults == []


def test_grades_are_the_same_for_any_number_of_workers_and_reducers(aiperf: Program, tmp_path: Path) -> None:
    rows = [{"question": f"What is {number} plus 1?", "answer": f"So it is\n#### {number + 1}"} for number in range(40)]
    known = [{"question": row["question"], "answer": row["answer"].split()[-1]} for row in rows]
    file, answers = write(tmp_path / "problems.jsonl", rows), write(tmp_path / "answers.jsonl", known)
    graded = []
    for workers, reducers in ((1, 1), (3, 2)):
        aiperf.environment["AIPERF_WORKERS"] = str(workers)
        with running(answers=answers, answer_form="hashes", right=0.5, seed=5, decode_ms=1) as server:
            done = aiperf(
                "profile", "--model", "m", "--url", server.url, "--endpoint-type", "chat", "--tokenizer", "builtin", "--ui",
                "none", "--accuracy-benchmark", "gsm8k", "--accuracy-data", file, "--concurrency", 6, "--workers-max", workers,
                "--record-processors", reducers, "--artifact-dir", tmp_path / str(workers),
            )  # fmt: skip
        assert done.code == 0, done.err
        lines = [json.loads(line) for line in (tmp_path / str(workers) / "accuracy_export.jsonl").read_text().splitlines()]
        assert len({line["worker_id"] for line in lines}) == workers
        graded.append(sorted((line["problem_id"], line["passed"], line["actual"], line["explanation"]) for line in lines))
    assert graded[0] == graded[1] and {passed for _, passed, *_ in graded[0]} == {True, False}


@pytest.mark.long
@pytest.mark.parametrize("share", [0.05, 0.5, 0.98])
def test_the_interval_of_a_run_holds_what_the_server_is(aiperf: Program, tmp_path: Path, share: float) -> None:
    rows = [{"question": f"Question: What is {number} plus 1?\nAnswer:", "answer": str(number + 1)} for number in range(200)]
    lines = [{"question": f"What is {number} plus 1?", "answer": f"So it is\n#### {number + 1}"} for number in range(200)]
    file, answers = write(tmp_path / "problems.jsonl", lines), write(tmp_path / "answers.jsonl", rows)
    with running(answers=answers, answer_form="hashes", right=share, seed=5, decode_ms=1) as server:
        done = aiperf(
            "profile", "--model", "m", "--url", server.url, "--endpoint-type", "completions", "--tokenizer", "builtin",
            "--ui", "none", "--accuracy-benchmark", "gsm8k", "--accuracy-data", file, "--concurrency", 8,
        )  # fmt: skip
        truth = server.truth()["requests"]
    assert done.code == 0, done.err
    overall = done.json()["accuracy.overall"]
    assert (overall["count"], overall["sum"]) == (200, sum(row["answers"][0]["right"] for row in truth))
    assert overall["ci_low"] <= share <= overall["ci_high"]
