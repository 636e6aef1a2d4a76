"""Third-party packages: installed as wheels they equal the packages here, and a broken one harms no other."""

from __future__ import annotations

import asyncio
import csv
import importlib.util
import json
import math
import re
import threading
import tomllib
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.results import open_run
from aiperf.sdk.categories import CATEGORIES
from aiperf_command_simulate.testing import Simulator, running
from environments import Shelf, suite
from program import Done, Program, bytes_of, wait_for
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)

STRANGERS = {path.parent.name: path.parent for path in sorted((ROOT / "tests" / "strangers").glob("*/pyproject.toml"))}
FIVE = ("endpoint", "dataset", "exporter", "metric", "grader")
"""The categories that a user writes first; the package ``sundries`` has the others."""
RUN = ("--model", "m", "--tokenizer", "builtin", "--isl", 20, "--osl", 6, "--request-count", 12, "--ui", "none")


def project(folder: Path) -> tuple[str, str]:
    """Name and version of the distribution in a folder."""
    declared = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return declared["name"], declared["version"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the suite and a stranger of each kind."""
    work = tmp_path_factory.mktemp("strangers")
    folders = {project(folder)[0]: folder for folder in STRANGERS.values()}
    return Shelf(work / "shelf", folders).environment(work / "environment", [*suite(), "aiperf-command-plot", *folders])


@pytest.fixture
def aiperf(python: Path, tmp_path: Path) -> Program:
    made = Program(tmp_path, python=python)
    made.environment["AIPERF_CACHE_DIR"] = str(python.parents[2] / "cache")
    return made


def test_the_five_packages_are_short() -> None:
    folders = [STRANGERS[word] for word in FIVE]
    files = [path for folder in folders for ending in ("py", "toml", "yaml") for path in folder.rglob(f"*.{ending}")]
    assert sum(bool(line.strip()) for path in files for line in path.read_text().splitlines()) <= 160


def test_a_third_party_option_is_in_the_help(aiperf: Program) -> None:
    done = aiperf("profile", "--help")
    _, _, below = done.out.partition("\nParrot:\n")
    assert "--parrot-greeting TEXT" in below.partition("\n\n")[0]
    installed = done.out.partition("--endpoint-type TYPE\n")[2].partition("\n  -")[0]
    assert "parrot" in installed


def test_a_third_party_option_is_in_the_schema_and_the_page(aiperf: Program) -> None:
    schema = json.loads(aiperf("plugins", "options", "--json").out)["properties"]
    greeting = schema["endpoints:parrot"]["properties"]["greeting"]
    assert (greeting["type"], greeting["default"], greeting["flags"]) == ("string", "Please:", ["--parrot-greeting"])
    page = aiperf("plugins", "options", "--markdown").out
    row = "| `--parrot-greeting` | TEXT | Please: | What every prompt begins with. |"
    assert row in page.partition("## `endpoints:parrot`")[2].partition("\n## ")[0]


def test_a_configuration_file_sets_a_third_party_option(aiperf: Program, simulator: Simulator) -> None:
    (aiperf.folder / "run.yaml").write_text(
        f"benchmark:\n  endpoint: {{url: '{simulator.url}', type: parrot}}\n"
        "  plugins: {endpoints:parrot: {greeting: 'Ahoy,'}}\n"
    )
    done = aiperf("profile", "--config", "run.yaml", *RUN)
    assert done.code == 0, done.err
    bodies = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    assert all(session["payloads"][0]["prompt"].startswith("Ahoy, ") for session in bodies)
    (aiperf.folder / "run.yaml").write_text("benchmark:\n  model: m\n  plugins:\n    endpoints:parrot: {greetings: Ahoy}\n")
    refused = aiperf("profile", "--config", "run.yaml", *RUN[2:])
    assert refused.code == 2
    assert "benchmark.plugins.endpoints:parrot.greetings (run.yaml:4): there is no such key\n  did you mean" in refused.err


def test_a_third_party_format_of_configuration_files_equals_ours(aiperf: Program, simulator: Simulator) -> None:
    notes = f"--url {simulator.url}\n--endpoint-type parrot\n--parrot-greeting Ahoy,\n--osl 3\n"
    (aiperf.folder / "run.notes").write_text(notes)
    done = aiperf("profile", "--config", "run.notes", *RUN)
    assert done.code == 0, done.err
    bodies = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    assert all(session["payloads"][0]["prompt"].startswith("Ahoy, ") for session in bodies)
    assert {row["completion_tokens"] for row in simulator.truth()["requests"]} == {6}, "what is typed wins"
    (aiperf.folder / "run.notes").write_text("--loud\n--request-count none\n")
    refused = aiperf("profile", "--config", "run.notes", "--model", "m")
    assert refused.code == 2 and refused.err.splitlines() == [
        "error: --loud (run.notes:1): no flag is called so",
        "error: --request-count (run.notes:2): 'none' is not a whole number",
    ]


def test_third_party_packages_are_listed_and_have_no_fault(aiperf: Program) -> None:
    packages = {row["distribution"]: row["version"] for row in json.loads(aiperf("plugins", "--json").out)["packages"]}
    assert all(packages[name] == version for name, version in map(project, STRANGERS.values()))
    done = aiperf("plugins", "validate", "--json")
    assert done.code == 0 and json.loads(done.out)["faults"] == []


def test_one_run_uses_third_party_and_first_party_plugins(aiperf: Program, simulator: Simulator) -> None:
    greeting = ("--parrot-greeting", "Ahoy,")
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "parrot", "--streaming", *greeting,
        "--custom-dataset-type", "riddles", "--accuracy-grader", "judge", "--tokenizer", "builtin", "--request-count", 12,
        "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    results = done.json()
    used = {(row["distribution"], row["category"], row["name"], row["version"]) for row in results["plugins"]["used"]}
    assert used >= {
        ("acme-parrot", "endpoints", "parrot", "3.1.4"), ("acme-riddles", "datasets", "riddles", "0.2.0"),
        ("acme-judge", "graders", "judge", "1.1.0"), ("acme-ledger", "exporters", "ledger", "1.0.7"),
        ("acme-patience", "metrics", "patience", "2.5.0"), ("acme-judge", "metrics", "wisdom", "1.1.0"),
    }  # fmt: skip

    share = results["patience"]["avg"]
    assert 0 < share <= 100 and results["patience"]["unit"] == "%"
    assert "Patience (%)" in done.out
    rows = {row[0]: row for row in csv.reader((done.artifacts / "profile_export_aiperf.csv").read_text().splitlines()) if row}
    assert rows["Patience (%)"][1] == f"{share:.2f}"
    assert [0 < line["metrics"]["patience"]["value"] <= 100 for line in done.lines("profile_export.jsonl")] == [True] * 12

    assert f"patience={share}\n" in (done.artifacts / "ledger.txt").read_text()
    assert f"Ledger: {done.artifacts / 'ledger.txt'}" in done.out
    bodies = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    assert all(session["payloads"][0]["prompt"].startswith("Ahoy, What ") for session in bodies)
    assert simulator.summary()["requests"] == 12
    right = [line["metrics"]["wisdom"]["value"] for line in done.lines("profile_export.jsonl")]
    assert set(right) <= {0.0, 1.0} and results["wisdom"]["avg"] == pytest.approx(sum(right) / 12)
    assert "Wisdom (ratio)" in done.out


def test_a_slow_grader_of_a_third_party_grades_in_its_own_process_before_the_results(
    aiperf: Program, simulator: Simulator
) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "chat", "--streaming", "--ui", "none",
        "--custom-dataset-type", "riddles", "--accuracy-grader", "jury", "--tokenizer", "builtin", "--request-count", 6,
        "--export-level", "raw",
    )  # fmt: skip
    assert done.code == 0, done.err
    right = [line["metrics"]["wisdom"]["value"] for line in done.lines("profile_export.jsonl")]
    assert len(right) == 6 and set(right) <= {0.0, 1.0} and done.json()["wisdom"]["avg"] == pytest.approx(sum(right) / 6)
    outcomes = [json.loads(line) for line in (done.artifacts / "journal" / "grades").read_text().splitlines()]
    told = [outcome["grade"]["explanation"].split(", ") for outcome in outcomes]
    assert len(outcomes) == 6 and len({process for process, *_ in told}) == 1
    assert all(reason in ("stop", "length") and texts == "1 text" for _, _, reason, texts in told)
    again = aiperf("report", done.artifacts, "--accuracy-grader", "judge", "--json")
    assert again.code == 0, again.err
    used = {row["name"] for row in json.loads(again.out)["plugins"]["used"] if row["category"] == "graders"}
    assert used == {"judge"}


QUICK = {"decode_ms": 0, "prefill_us_per_token": 0, "seed": 4}


def graded(done: Done, truth: dict[str, Any]) -> list[tuple[bool, float | None]]:
    """For each request, whether the server was right, and what its grade says; None for one without."""
    right = {row["request_id"]: row["answers"][0]["right"] for row in truth["requests"]}
    lines = done.lines("profile_export.jsonl")
    values = [line["metrics"].get("wisdom", {"value": None})["value"] for line in lines]
    return [(right[line["metadata"]["x_request_id"]], value) for line, value in zip(lines, values, strict=True)]


def json_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_a_judge_models_failures_leave_answers_ungraded(aiperf: Program, tmp_path: Path) -> None:
    wrong = {"piano": "guitar", "towel": "sponge"}
    asked = {"piano": "What has keys and opens no door?", "towel": "What gets wetter the more it dries?"}
    answers = [{"question": asked[right], "answer": right, "wrong": [other]} for right, other in wrong.items()]
    verdicts = [
        {"question": f"Expected: {right}\nAnswer: {said}", "answer": "RIGHT" if said == right else "Wrong, it is another."}
        for right, other in wrong.items() for said in (right, other)
    ]  # fmt: skip
    line = ("--custom-dataset-type", "riddles", "--tokenizer", "builtin", "--request-count", 24, "--ui", "none")
    refused = aiperf("profile", "--model", "m", *line, "--accuracy-grader", "referee")
    assert refused.code == 1 and "add --referee-url URL" in refused.err, refused.err
    with (
        running(answers=json_lines(tmp_path / "answers", answers), right=0.5, **QUICK) as server,
        running(answers=json_lines(tmp_path / "verdicts", verdicts), faults=["fail=500@0.3"], **QUICK) as judge,
    ):
        judged = ("--accuracy-grader", "referee", "--referee-url", judge.url)
        done = aiperf("profile", "--model", "m", "--url", server.url, "--endpoint-type", "chat", *line, *judged)
        pairs, outcomes = graded(done, server.truth()), judge.summary()["outcomes"]
    assert len(pairs) == 24 and outcomes["completed"] + outcomes["failed"] == 24 and outcomes["failed"] >= 2
    assert all(value is None or value == right for right, value in pairs)
    assert {value for _, value in pairs} == {0.0, 1.0, None}
    assert sum(value is None for _, value in pairs) == outcomes["failed"]
    told = f"acme-tribunal 0.2.3 left {outcomes['failed']} of 24 answers ungraded: the grader failed: HTTPError"
    assert done.code == 1 and told in " ".join(done.out.split()), done.out


def test_a_scenario_and_a_data_set_whose_conversations_start_others(aiperf: Program) -> None:
    with running(truth_bodies=True, **QUICK) as server:
        done = aiperf(
            "profile", "--model", "m", "--url", server.url, "--endpoint-type", "chat", "--streaming", "--ui", "none",
            "--scenario", "potluck", "--tokenizer", "builtin", "--num-sessions", 3,
        )  # fmt: skip
        seen = server.truth()["requests"]
    assert done.code == 0, done.err
    assert all(json.loads(request["body"])["dish"] == "soup" for request in seen), "the scenario fills in a field"
    results = done.json()
    assert results["metadata"] == {"scenario": "Potluck", "everybody_ate": True, "complaints": []}
    assert results["dishes"] == {"unit": "dishes", "avg": 15.0} and "Scenario Potluck: the run counts" in done.out
    refused = aiperf("profile", "--model", "m", "--scenario", "potluck", "--concurrency", 3, "--tokenizer", "builtin")
    assert refused.code == 1 and "--concurrency 3: Potluck requires 2: the table has two ends" in refused.err
    trees: dict[str, list[dict[str, Any]]] = {}
    for request in seen:
        trees.setdefault(request["correlation_id"][-12:], []).append(request)
    assert [len(tree) for tree in trees.values()] == [5, 5, 5]
    for tree in trees.values():
        tree.sort(key=lambda request: request["received_mono_ns"])
        said = [[message["content"] for message in json.loads(request["body"])["messages"]] for request in tree]
        parts = [[f"write the {part}"] for part in ("end", "front", "middle")]
        assert said[0] == ["divide the work"] and sorted(said[1:4]) == parts
        assert said[4][0] == "divide the work" and said[4][-1] == "put it together"
        assert tree[4]["received_mono_ns"] >= max(request["last_mono_ns"] for request in tree[1:4])
    validated = aiperf("plugins", "validate", "acme-clan")
    assert validated.code == 0, validated.out + validated.err


def wilson(right: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share, of 95 %."""
    share, spread = right / count, z * z / count
    middle, half = share + spread / 2, z * math.sqrt(share * (1 - share) / count + spread / count / 4)
    return (middle - half) / (1 + spread), (middle + half) / (1 + spread)


def test_under_overload_what_was_answered_is_graded_and_the_rest_counted_by_cause(aiperf: Program, tmp_path: Path) -> None:
    rows = [
        {"question": "What has keys and opens no door?", "answer": "piano", "wrong": ["a grand piano"]},
        {"question": "What gets wetter the more it dries?", "answer": "towel", "wrong": ["a towel"]},
    ]
    overload = {"max_running": 2, "max_queue": 21, "first_token_ms": 4, "faults": ["fail=429@0.05", "cut=1@0.1"], **QUICK}
    with running(answers=json_lines(tmp_path / "answers", rows), right=0.7, **overload) as server:
        done = aiperf(
            "profile", "--model", "m", "--url", server.url, "--endpoint-type", "chat", "--streaming", "--ui", "none",
            "--custom-dataset-type", "riddles", "--accuracy-grader", "exact_match", "--tokenizer", "builtin",
            "--request-count", 500, "--concurrency", 24, "--failed-request-threshold", 1,
        )  # fmt: skip
        truth = server.truth()
    assert done.code == 0, done.err
    rows_of = [row for row in truth["requests"] if row["answers"]]
    answered = {row["request_id"]: row["answers"][0]["right"] for row in rows_of if row["outcome"] == "completed"}
    values = {line["metadata"]["x_request_id"]: line["metrics"].get("wisdom") for line in done.lines("profile_export.jsonl")}
    assert {name: value["value"] for name, value in values.items() if value is not None} == answered, "each by its own problem"
    outcomes, errors = truth["summary"]["outcomes"], Counter[str]()
    for error in done.json()["error_summary"]:
        errors[error["error_details"]["type"]] += error["count"]
    assert errors == {"Too Many Requests": outcomes["refused"], "ConnectionResetError": outcomes["cut"]}
    assert outcomes["refused"] and outcomes["cut"] and len(answered) >= 30, outcomes  # by a full queue, too, if all are quick
    assert len(values) == 500 == len(answered) + outcomes["refused"] + outcomes["cut"]
    drawn = sum(row["answers"][0]["right"] for row in rows_of) / len(rows_of)
    low, high = wilson(sum(answered.values()), len(answered))
    assert low <= drawn <= high and low <= done.json()["wisdom"]["avg"] <= high
    told = done.json()["accuracy"]
    assert (told["graded"], told["correct"]) == (len(answered), sum(answered.values()))
    assert (told["failed"], told["ungraded_count"]) == (outcomes["refused"] + outcomes["cut"], 0)
    overall = done.json()["accuracy.overall"]
    assert (overall["ci_low"], overall["ci_high"]) == (pytest.approx(low, abs=1e-3), pytest.approx(high, abs=1e-3))


@pytest.mark.parametrize(("endpoint", "further"), [
    ("chat", ("--streaming",)), pytest.param("responses", ("--streaming",), marks=pytest.mark.long),
    pytest.param("messages", (), marks=pytest.mark.long), pytest.param("ollama", (), marks=pytest.mark.long),
])  # fmt: skip
def test_a_grader_of_tool_calls_compares_names_and_arguments(
    aiperf: Program, tmp_path: Path, endpoint: str, further: tuple[str, ...]
) -> None:
    things = ("milk", "bread", 'a "big" box', "two\nlines", "tea", "salt", "rice", "oil")
    rows = [{"question": f"Errand {number}: what do we need?", "answer": thing} for number, thing in enumerate(things)]
    with running(answers=json_lines(tmp_path / "answers", rows), right=0.5, faults=["call"], **QUICK) as server:
        done = aiperf(
            "profile", "--model", "m", "--url", server.url, "--endpoint-type", endpoint, "--accuracy-benchmark", "errands",
            "--tokenizer", "builtin", "--ui", "none", *further,
        )  # fmt: skip
        assert done.code == 0, done.err
        pairs = graded(done, server.truth())
    assert sorted(pairs) == sorted((right, float(right)) for right, _ in pairs)
    assert len(pairs) == 8 and {value for _, value in pairs} == {0.0, 1.0}


def test_a_benchmark_grades_with_its_own_grader_and_yields_to_the_user(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "chat", "--accuracy-benchmark", "quiz",
        "--ui", "none", "--tokenizer", "builtin", "--extra-inputs", "temperature:0.7", "--export-outputs-json",
    )  # fmt: skip
    assert done.code == 0, done.err
    used = {(row["category"], row["name"]) for row in done.json()["plugins"]["used"]}
    assert used >= {("datasets", "quiz"), ("graders", "jury")}
    bodies = [one["payloads"][0] for one in json.loads((done.artifacts / "inputs.json").read_text())["data"]]
    assert len(bodies) == 4
    assert all(body.items() >= {"temperature": 0.7, "seed": 7, "stop": ["\n"]}.items() for body in bodies)
    items = json.loads((done.artifacts / "outputs.json").read_text())["data"]
    told = sorted((item["conversation_id"], item["repeat"]) for item in items)
    assert told == [(f"riddle-{place}", repeat) for place in range(2) for repeat in range(2)], "each once, and no more"
    assert [item["settings"] for item in items] == [{"temperature": 0.7, "stop": ["\n"], "seed": 7}] * 4
    assert [line["metadata"]["repeat"] for line in done.lines("profile_export.jsonl")].count(1) == 2


@pytest.mark.parametrize("load", [
    ("--concurrency", 3), ("--request-rate", 100, "--arrival-pattern", "poisson"),
    ("--user-centric-rate", 100, "--num-users", 3), ("--concurrency", 2, "--workers", 2, "--record-processors", 2),
], ids=["burst", "rate", "users", "shards"])  # fmt: skip
def test_a_benchmark_asks_each_problem_once(load: tuple[str | int, ...], aiperf: Program, simulator: Simulator) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "chat", "--accuracy-benchmark", "quiz",
        "--ui", "none", "--tokenizer", "builtin", "--grading-processes", 2, *load,
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = [line["metadata"] for line in done.lines("profile_export.jsonl")]
    asked = sorted((row["conversation_id"], row["repeat"]) for row in rows)
    assert asked == [(f"riddle-{place}", repeat) for place in range(2) for repeat in range(2)]
    assert simulator.summary()["requests"] == 4
    outcomes = [json.loads(line) for line in (done.artifacts / "journal" / "grades").read_text().splitlines()]
    told = sorted(outcome["grade"]["explanation"].split(", ")[1] for outcome in outcomes)
    assert told == ["riddle-0", "riddle-0", "riddle-1", "riddle-1"], "graded against the problem that was asked"


def test_ctrl_c_while_answers_are_graded_keeps_the_grades(aiperf: Program, simulator: Simulator) -> None:
    aiperf.environment["ACME_JURY_CASES"] = "1"
    run = aiperf.start(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "chat", "--ui", "none", "--custom-dataset-type",
        "riddles", "--accuracy-grader", "jury", "--grading-processes", 2, "--tokenizer", "builtin", "--request-count", 6,
    )  # fmt: skip
    grades = run.artifacts / "journal" / "grades"
    wait_for(lambda: grades.exists() and grades.read_bytes().count(b"\n") == 2)
    run.hears("Grading")
    run.interrupt()
    done = run.end()
    assert done.code == 130, done.err
    assert "4 answers are not graded yet: aiperf report grades them" in done.out + done.err
    assert done.json()["wisdom"]["count"] == 2 and done.json()["was_cancelled"] is False
    assert run.survivors() == []
    del aiperf.environment["ACME_JURY_CASES"]
    again = aiperf("report", done.artifacts, "--json")
    assert again.code == 0 and json.loads(again.out)["wisdom"]["count"] == 6, again.err
    assert grades.read_bytes().count(b"\n") == 6


def test_a_data_set_of_many_names_is_chosen_by_one(aiperf: Program, simulator: Simulator) -> None:
    assert "--public-dataset acme-house | acme-bath" in " ".join(aiperf("plugins", "datasets").out.split())
    line = ("profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--ui", "none", "--osl", 3)
    assert "did you mean 'acme_bath'?" in aiperf(*line, "--public-dataset", "acme-baht").err
    done = aiperf(*line, "--public-dataset", "Acme_Bath")
    assert done.code == 0, done.err
    assert "gets wetter" in (bodies := (done.artifacts / "inputs.json").read_text()) and "opens no door" not in bodies
    assert [row["completion_tokens"] for row in simulator.truth()["requests"]] == [3], "each riddle once, with the option"


def test_plugins_of_all_other_categories_take_part_in_a_run(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--url", simulator.url.replace("127.0.0.1", "localhost"),
        "--url-strategy", "counterclockwise", "--tokenizer", "letters", "--isl", 20, "--osl", 6, "--thrift", 4,
        "--num-dataset-entries", 5, "--dataset-sampling-strategy", "backwards", "--request-rate", 200, "--arrival-pattern",
        "lumps", "--concurrency", 8, "--concurrency-ramp-duration", 0.1, "--ramp", "leaps", "--request-count", 20,
        "--transport", "string", "--engine", "shed", "--ui-type", "bell", "--plugin", "series:ebb=acme-sundries",
    )  # fmt: skip
    assert done.code == 0, done.err
    used = {row["category"]: row["version"] for row in done.json()["plugins"]["used"] if row["distribution"] == "acme-sundries"}
    assert set(used.values()) == {"0.9.1"} and sorted(used) == [
        "arrivals", "companions", "engines", "hooks", "ramps", "samplers", "series", "tables", "telemetry", "tokenizers",
        "transports", "uis", "url_strategies", "verdicts",
    ]  # fmt: skip

    seen = sorted(simulator.truth()["requests"], key=lambda row: row["received_mono_ns"])
    assert {row["completion_tokens"] for row in seen} == {4}, "the hook had its way with every request"
    arrivals = done.lines("profile_export_arrivals.jsonl")
    due_ms = sorted(round(row["due_ns"] / 1e6) for row in arrivals)
    assert due_ms[0::2] == due_ms[1::2][: len(due_ms[0::2])] or due_ms[1:-1:2] == due_ms[2::2], "they come in twos"
    asked = [line["metadata"]["conversation_id"] for line in done.lines("profile_export.jsonl")]
    bodies = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    stored = [session["session_id"] for session in bodies]
    assert sorted(asked) == sorted(stored * 4) and stored[4] in asked[:3]
    assert {len(session["payloads"][0]["messages"][0]["content"]) for session in bodies} == {20}, "a token a letter"
    log = (done.artifacts / "logs" / "aiperf.log").read_text()
    assert "20 requests through a string in the shed" in log
    assert "ding!" in done.err
    (tea,) = [sentence for sentence in done.json()["warnings"] if " of tea " in sentence]
    took = re.fullmatch(r"4 cups of tea before profiling, which took (\d+) ns", tea)
    assert took is not None and int(took[1]) == pytest.approx(done.json()["benchmark_duration"]["avg"] * 1e9, rel=0.5)
    assert any(b'"water"' in bytes_of(file) for file in (done.artifacts / "journal").glob("telemetry-*.samples"))
    (tides,) = [source for source in done.json()["telemetry"] if source["source"] == "tides"]
    (water,) = [each for each in tides["series"] if each["name"] == "water"]
    assert water["stats"] == {"min": 2.5, "max": 2.5}, "a series has its extremes, as the stranger says"

    (row,) = done.json()["logbook"]
    sailing = done.json()["sailing"]
    assert (sailing["ship"], sailing["soundings"] >= row["soundings"]) == ({"name": "Perseverance"}, True)
    length = done.json()["benchmark_duration"]["avg"]
    assert sailing["home_s"] >= 0.9 * length
    assert (row["phase"], row["requests"]) == (0, 20) and row["soundings"] >= 1 and row["length"] >= 0.9 * length
    assert "Logbook" in done.out and "written in ink" in done.out
    again = aiperf("report", done.artifacts)
    assert again.code == 0 and (done.json()["logbook"], done.json()["sailing"]) == ([row], sailing), again.err
    assert open_run(done.artifacts).tables()["logbook"] == [row]

    (found,) = [each for each in done.json()["measurement"]["findings"] if each["package"] == "acme-sundries 0.9.1"]
    assert (found["kind"], found["level"], found["confidence"]) == ("high_water", "advice", 0.9)
    assert found["numbers"] == {"water_m": 2.5} and found["sentence"] in done.json()["warnings"]
    assert "the water stood at 2.5 m: wear boots" in done.out

    told = aiperf("report", done.artifacts, "--definitions")
    assert told.code == 0 and "patient" in told.out
    (figure,) = json.loads(aiperf("plot", done.artifacts, "--only", "odometer", "--json").out)
    assert figure["plot"] == "odometer" and figure["series"][0]["y"] == [float(n) for n in range(1, 21)]
    assert aiperf("greet", "Ada").out == "Hello, Ada!\n"
    assert aiperf("greet", "twice", "Ada").out == "Hello again, Ada!\n"
    assert "twice  Says hello a second time." in aiperf("greet", "--help").out


def test_a_third_party_engine_of_sites_is_short_and_has_the_workers(aiperf: Program, simulator: Simulator) -> None:
    code = [path for ending in ("py", "yaml", "toml") for path in STRANGERS["annex"].rglob(f"*.{ending}")]
    assert sum(bool(line.strip()) for path in code for line in path.read_text().splitlines()) <= 60
    validated = aiperf("plugins", "validate", "acme-annex")
    assert validated.code == 0 and "not checked" not in validated.err, "its manifest brings what the contract needs"
    for room in ("attic", "barn"):
        (aiperf.folder / room).mkdir()
    there = ("--engine", "annex", "--annex-rooms", "attic,barn")
    done = aiperf("profile", "--url", simulator.url, *RUN, "--request-rate", 200, *there)
    assert done.code == 0, done.err
    rows = done.lines("profile_export_arrivals.jsonl")
    assert sorted((row["n"], row["worker"]) for row in rows) == [(n, f"worker-{n % 2}") for n in range(12)]
    assert [row["distribution"] for row in done.json()["plugins"]["used"] if row["category"] == "engines"] == ["acme-annex"]


def test_a_third_party_reducer_makes_the_results_where_it_is_pinned(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf("profile", "--url", simulator.url, "--plugin", "reducers:abacus=acme-sundries", *RUN)
    assert done.code == 0, done.err
    results = done.json()
    used = [(row["distribution"], row["name"]) for row in results["plugins"]["used"] if row["category"] == "reducers"]
    assert used == [("acme-sundries", "abacus")]
    seen = [(row["last_mono_ns"] - row["received_mono_ns"]) / 1e6 for row in simulator.truth()["requests"]]
    assert results["bead"]["count"] == len(seen) == 12
    assert sum(seen) / 12 < results["bead"]["avg"] < sum(seen) / 12 + 50, "from the start of a request to its end"
    assert "request_latency" not in results and not list((done.artifacts / "journal").glob("columns-*"))
    assert "Bead (ms)" in done.out and "Phase profiling: 12 succeeded, 0 failed" in done.out
    assert "Bead (ms)" in (done.artifacts / "profile_export_aiperf.csv").read_text()

    (line,) = [line for line in done.err.splitlines() if "makes no rows" in line]
    assert "reducers:abacus of acme-sundries 0.9.1" in line and "profile_export.jsonl" in line
    assert not (done.artifacts / "profile_export.jsonl").exists()
    again = aiperf("report", done.artifacts, "--json")
    assert again.code == 0 and json.loads(again.out)["bead"] == results["bead"], "the run's own reducer makes the report"


def test_a_third_party_reducer_is_used_where_ours_is_not(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf("profile", "--url", simulator.url, "--disable-plugin", "reducers:columns", *RUN)
    assert done.code == 0, done.err
    assert done.json()["bead"]["count"] == 12


def test_third_party_telemetry_reaches_every_output(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf("profile", "--url", simulator.url, "--slice-duration", 0.2, "--request-rate", 40, *RUN)
    assert done.code == 0, done.err
    (source,) = [source for source in done.json()["telemetry"] if source["source"] == "vitals"]
    assert (source["distribution"], source["version"], source["failed"]) == ("acme-vitals", "1.3.0", 0)
    main = [phase["index"] for phase in done.json()["phases"] if phase["kind"] == "profiling"]
    series = {(row["name"], *row["labels"].values()): row for row in source["series"] if [row["phase"]] == main}
    assert {name for name, *_ in series} == {"machine", "load", "cpu_time"} and len(series) == 8
    load, spent = series["load", "1m"], series["cpu_time", "user"]
    assert load["unit"] == "tasks" and load["description"] == "Tasks that ran or waited"
    assert load["stats"]["min"] <= load["stats"]["p50"] <= load["stats"]["p99"] <= load["stats"]["max"]
    assert spent["stats"]["total"] >= 0 and spent["kind"] == "counter"

    slices = json.loads((done.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    rows = [row for one in slices for row in one["telemetry"]]
    parts = [row for row in rows if (row["name"], row.get("labels")) == ("cpu_time", {"mode": "user"})]
    assert sum(row["stats"]["total"] for row in parts) == pytest.approx(spent["stats"]["total"])
    assert "Telemetry: vitals" in done.out and "cpu_time mode=user (s)" in done.out
    raw = [each for each in open_run(done.artifacts).telemetry() if each.source == "vitals"]
    samples = {(each.name, *each.labels.values()): each for each in raw}
    assert samples.keys() == series.keys() and samples["load", "1m"].kind == "gauge"


def test_a_source_with_two_targets_counts_what_each_server_counted(aiperf: Program, simulator: Simulator) -> None:
    with running(first_token_ms=20) as other:
        asked: list[str | float | Path] = [*RUN[:-4], "--url", simulator.url, "--url", other.url]
        asked += ["--warmup-request-count", 10, "--turnstiles", 0.1]
        asked += ["--request-count", 100, "--concurrency", 4, "--slice-duration", 0.1, "--ui", "none"]
        for _ in range(5):  # on a very busy machine the source may come later than the load, or a sample later than its edge
            simulator.reset()
            other.reset()
            done = aiperf("profile", *asked)
            assert done.code == 0, done.err
            (source,) = [source for source in done.json()["telemetry"] if source["source"] == "turnstiles"]
            late = any({"late_s", "unsettled_phases"} & target.keys() for target in source["targets"])
            if not late and "gave no sample in time" not in (done.artifacts / "logs" / "aiperf.log").read_text():
                break
        counted = {server.url: server.summary()["requests"] for server in (simulator, other)}
    assert sum(counted.values()) == 110
    totals = {(row["phase"], row["target"]): row["stats"]["total"] for row in source["series"] if row["name"] == "visitors"}
    assert {url: totals[0, url] + totals[1, url] for url in counted} == counted
    assert [sum(total for (phase, _), total in totals.items() if phase == index) for index in (0, 1)] == [10, 100]
    slices = json.loads((done.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    parts = [row for one in slices for row in one["telemetry"] if row["name"] == "visitors"]
    assert sum(row["stats"]["total"] for row in parts) == pytest.approx(100)
    about = {target["name"]: target for target in source["targets"]}
    assert about.keys() == counted.keys()
    for target in about.values():
        assert target["samples"] >= 5 and target["failed"] == 0 and "unsettled_phases" not in target
        assert target["first_fetch_ns"] < target["last_update_ns"] <= target["last_fetch_ns"]
        assert target["avg_fetch_latency_ms"] > 0 and target["unique_updates"] <= target["samples"]
    raw = [each for each in open_run(done.artifacts).telemetry() if (each.source, each.name) == ("turnstiles", "visitors")]
    assert {each.target: each.values[-1] for each in raw} == counted
    assert aiperf("report", done.artifacts).code == 0
    assert source in done.json()["telemetry"]


def test_a_third_party_command_runs_loads_and_shows_them_on_its_display(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf("sweep", simulator.url, 1, 3)
    assert done.code == 0, done.err
    rows = [re.fullmatch(r"concurrency (\d): (\d+) requests, p50 ([0-9.]+) ms", line) for line in done.out.splitlines()]
    found = [row.groups() for row in rows if row is not None]
    assert len(found) == len(rows) and [row[:2] for row in found] == [("1", "4"), ("3", "12")], "nothing else is printed"
    for level, _, p50 in found:
        summary = json.loads((done.artifacts / "sweep" / level / "profile_export_aiperf.json").read_text())
        assert p50 == f"{summary['time_to_first_token']['p50']:.2f}"
        used = [(row["category"], row["name"], row["version"]) for row in summary["plugins"]["used"]]
        assert ("uis", "ticker", "2.1.0") in used
    ticks = [line for line in done.err.splitlines() if line.startswith("tick: ")]
    assert ticks.count("tick: over") == 1 and any(tick.startswith("tick: profiling ") for tick in ticks)

    refused = aiperf("sweep", simulator.url, "many")
    assert refused.code == 2 and "takes whole numbers after the URL, not many" in refused.err
    failed = aiperf("sweep", "http:///", 1)
    assert failed.code in (1, 2) and failed.err.startswith("error: url: "), "an error of the run is the command's"


def test_a_third_party_ramp_shapes_the_rise_of_the_rate(aiperf: Program, simulator: Simulator) -> None:
    rate = ("--request-rate", 200, "--arrival-pattern", "constant", "--request-rate-ramp-duration", 1, "--ramp", "leaps")
    done = aiperf("profile", "--url", simulator.url, *rate, *RUN[:8], "--request-count", 80, "--ui", "none")
    assert done.code == 0, done.err
    due_s = sorted(row["due_ns"] / 1e9 for row in done.lines("profile_export_arrivals.jsonl"))
    since_s = [each - due_s[0] + 1 / 20 for each in due_s]
    quarters = [sum(n / 4 <= each < (n + 1) / 4 for each in since_s) for n in range(4)]
    # 20 requests/s that leap to 65, 110 and 155; a straight line would have 10, 21, 32 and the rest.
    assert quarters == pytest.approx([5.0, 16.25, 27.5, 31.25], abs=1.5)


def test_a_third_party_url_strategy_chooses_the_url_of_a_session(aiperf: Program, simulator: Simulator) -> None:
    urls = [simulator.url, simulator.url.replace("127.0.0.1", "localhost")]
    places = ("--url", urls[0], "--url", urls[1], "--url-strategy", "counterclockwise", "--concurrency", 1)
    done = aiperf("profile", *places, *RUN)
    assert done.code == 0, done.err
    arrivals = sorted(done.lines("profile_export_arrivals.jsonl"), key=lambda row: row["started_ns"])
    assert [row["url"] for row in arrivals] == [urls[1], urls[0]] * 6


def test_a_third_party_schedule_sets_the_due_times(aiperf: Program, simulator: Simulator) -> None:
    beat = ("--request-rate", 1, "--metronome-seconds", 0.02)
    done = aiperf("profile", "--model", "m", "--url", simulator.url, "--tokenizer", "letters", *beat, *RUN[4:])
    assert done.code == 0, done.err
    due_ms = sorted(row["due_ns"] / 1e6 for row in done.lines("profile_export_arrivals.jsonl"))
    assert [each - due_ms[0] for each in due_ms] == pytest.approx([20.0 * n for n in range(12)])


def test_a_third_party_schedule_is_chosen_by_name(aiperf: Program, simulator: Simulator) -> None:
    line = ("--scheduling-mode", "metronome", "--tokenizer", "letters", *RUN[4:])
    done = aiperf("profile", "--model", "m", "--url", simulator.url, *line)
    assert done.code == 0, done.err
    due_ms = sorted(row["due_ns"] / 1e6 for row in done.lines("profile_export_arrivals.jsonl"))
    assert [each - due_ms[0] for each in due_ms] == pytest.approx([100.0 * n for n in range(12)])
    assert "metronome" in aiperf("profile", "--help").out


def test_a_strangers_driver_sends_the_requests(aiperf: Program, simulator: Simulator) -> None:
    one = ("--concurrency", 4, "--workers-max", 1)
    done = aiperf("profile", "--url", simulator.url, *RUN[:6], "--scheduling-mode", "dominoes", *RUN[6:], *one)
    assert done.code == 0, done.err
    assert ("acme-sundries", "drivers", "domino") in {
        (row["distribution"], row["category"], row["name"]) for row in done.json()["plugins"]["used"]
    }
    rows = sorted(simulator.truth()["requests"], key=lambda row: row["received_mono_ns"])
    assert len(rows) == 12
    assert all(earlier["last_mono_ns"] <= later["received_mono_ns"] for earlier, later in pairwise(rows)), "one after the other"


# Broken ones, laid beside the good ones as an installer would have left them

MISSING = "a_package_that_nobody_has"
GOOD = """schema_version: 1
api: ">=1,<2"
plugins:
  - {{category: {category}, name: {name}, summary: A stranger.}}
"""
READS = """schema_version: 1
api: ">=1,<2"
plugins:
  - {category: datasets, name: rotten, summary: Would read anything., capabilities: {reads: true}}
"""
SUFFIX = READS.replace("datasets", "configurations").replace("reads: true", "suffixes: [.rotten]")
CLASH = """schema_version: 1
api: ">=1,<2"
plugins:
  - category: endpoints
    name: NAME
    summary: Says where.
    options:
      - {field: where, flags: [--where], help: Where., type: TYPE, metavar: PLACE}
"""

JUDGE = "class Thing:\n    def __init__(self, options): pass\n    def judge(self, evidence): ACT\n"
GUEST = """
from aiperf.sdk.companion import Companion

class Thing(Companion):
    def phase_ended(self, phase, at_ns):
        raise LookupError("zzz")
"""


def bad(category: str) -> str:
    """The package whose plugin of that category fails to import."""
    return f"bad-{category.replace('_', '-')}"


@dataclass(frozen=True)
class Overlay:
    """A folder of installed packages, which comes before the environment's own."""

    folder: Path

    def add(self, distribution: str, category: str, name: str, *, code: str = "", manifest: str | None = "") -> None:
        """An installed distribution with one plugin.  *manifest*: "" writes a sound one, None writes none."""
        module = distribution.replace("-", "_")
        package = self.folder / module
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(code)
        if manifest is not None:
            (package / "aiperf.yaml").write_text(manifest or GOOD.format(category=category, name=name))
        info = self.folder / f"{module}-0.9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.9\n")
        (info / "entry_points.txt").write_text(f"[aiperf.{category}]\n{name} = {module}:Thing\n")

    def add_every_kind_of_broken_one(self) -> None:
        for category in CATEGORIES:
            manifest = {"datasets": READS, "configurations": SUFFIX}.get(category, "")
            self.add(bad(category), category, "rotten", code=f"import {MISSING}\n", manifest=manifest)
        self.add("bad-exit", "metrics", "quits", code="raise SystemExit(3)\n")
        self.add("bad-judge", "verdicts", "asleep", code=JUDGE.replace("ACT", "raise LookupError('zzz')"))
        self.add("bad-finding", "verdicts", "wordy", code=JUDGE.replace("ACT", "return ['guilty']"))
        self.add("bad-guest", "companions", "clumsy", code=GUEST)
        self.add("bad-empty", "exporters", "lacking")
        self.add("bad-hookless", "hooks", "hookless", code="class Thing:\n    pass\n")
        self.add("bad-yaml", "endpoints", "garbled", manifest="plugins: [")
        self.add("bad-api", "endpoints", "newer", manifest=GOOD.format(category="endpoints", name="newer").replace("<2", ">=9"))
        self.add("bad-silent", "endpoints", "silent", manifest=None)
        self.add("bad-word", "endpoint", "misspelt")
        self.add("acme-one", "endpoints", "twin")
        self.add("acme-two", "endpoints", "twin")
        self.add("acme-here", "endpoints", "here", manifest=CLASH.replace("NAME", "here").replace("TYPE", "path"))
        self.add("acme-there", "endpoints", "there", manifest=CLASH.replace("NAME", "there").replace("TYPE", "int"))


@pytest.fixture(scope="module")
def crowd(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """An environment with every kind of broken package beside sound ones."""
    folder = tmp_path_factory.mktemp("crowd")
    Overlay(folder / "overlay").add_every_kind_of_broken_one()
    (folder / "asked.jsonl").write_text('{"text": "Who are they?"}\n')
    made = Program(folder, python=python)
    made.environment |= {"PYTHONPATH": str(folder / "overlay"), "AIPERF_CACHE_DIR": str(folder / "cache")}
    return made


@pytest.fixture(scope="module")
def among_them(crowd: Program, shared_simulator: Simulator) -> Done:
    """A run that chooses none of the broken plugins."""
    return crowd(
        "profile", "--model", "m", "--url", shared_simulator.url, "--endpoint-type", "parrot", "--streaming", "--tokenizer",
        "builtin", "--input-file", "asked.jsonl", "--request-count", 12, "--ui", "none",
    )  # fmt: skip


def test_broken_packages_do_not_change_a_run(among_them: Done) -> None:
    assert among_them.code == 1, "a companion failed: what it writes may be missing"
    results = among_them.json()
    assert results["request_count"]["avg"] == 12 and 0 < results["patience"]["avg"] <= 100
    assert not {row["distribution"] for row in results["plugins"]["used"]} & {"bad-transports", "bad-uis", "acme-two"}
    judged = {row["plugin"] for row in results["measurement"]["findings"]}
    assert judged >= {"harbour", "measurement"}, "the others judge"


@pytest.mark.parametrize(
    ("package", "named", "cause"),
    [
        ("bad-metrics 0.9", "rotten", f"No module named '{MISSING}'"),
        ("bad-exporters 0.9", "rotten", f"No module named '{MISSING}'"),
        ("bad-telemetry 0.9", "telemetry:rotten", f"No module named '{MISSING}'"),
        ("bad-reducers 0.9", "reducers:rotten", f"No module named '{MISSING}'"),
        ("bad-series 0.9", "series:rotten", f"No module named '{MISSING}'"),
        ("bad-hooks 0.9", "hooks:rotten", f"No module named '{MISSING}'"),
        ("bad-verdicts 0.9", "verdicts:rotten", f"No module named '{MISSING}'"),
        ("bad-companions 0.9", "companions:rotten", f"No module named '{MISSING}'"),
        ("bad-guest 0.9", "companions:clumsy", "failed: LookupError: zzz"),
        ("bad-judge 0.9", "verdicts:asleep", "failed: LookupError: zzz"),
        ("bad-finding 0.9", "verdicts:wordy", "failed: TypeError: judge gave str, not Finding"),
        ("bad-exit 0.9", "quits", "SystemExit: 3"),
        ("bad-empty 0.9", "lacking", "module 'bad_empty' has no attribute 'Thing'"),
        ("bad-hookless 0.9", "hooks:hookless", "implements no hook"),
        ("bad-yaml 0.9", "endpoints:garbled", "is not YAML"),
        ("bad-api 0.9", "endpoints:newer", "asks for plugin API >=1,>=9; this kernel has 1"),
        ("bad-silent 0.9", "endpoints:silent", "aiperf.yaml is missing"),
        ("bad-word 0.9", "endpoint:misspelt", "there is no plugin category 'endpoint'; did you mean 'endpoints'?"),
        ("acme-one 0.9 and acme-two 0.9", "endpoints:twin", "both provide it"),
    ],
)
def test_a_broken_package_is_named_in_one_line(among_them: Done, package: str, named: str, cause: str) -> None:
    logged, reported = ([line for line in said.splitlines() if package in line] for said in (among_them.err, among_them.out))
    (line,) = logged or reported
    assert named in line and cause in line


def test_packages_that_want_one_flag_are_each_named_and_work(among_them: Done) -> None:
    lines = [line for line in among_them.err.splitlines() if "without --where: acme-here 0.9 and acme-there 0.9" in line]
    assert [line.partition(" of ")[0] for line in lines] == ["warning: endpoints:here", "warning: endpoints:there"]


def test_a_broken_plugin_that_no_run_loads_is_not_mentioned(among_them: Done) -> None:
    loaded = {"metrics", "exporters", "telemetry", "reducers", "series", "hooks", "verdicts", "companions", "live"}
    said = among_them.err + among_them.out
    assert [category for category in CATEGORIES if f"{bad(category)} " in said and category not in loaded] == []


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ("rotten", f"endpoints:rotten of bad-endpoints 0.9 can't be imported: No module named '{MISSING}'"),
        ("newer", "asks for plugin API >=1,>=9"),
        ("silent", "aiperf.yaml is missing"),
        ("twin", "choose with --plugin endpoints:twin=acme-one"),
    ],
)
def test_a_broken_plugin_chosen_by_name_is_refused_before_load(
    crowd: Program, tmp_path: Path, chosen: str, sentence: str
) -> None:
    done = crowd("profile", "--model", "m", "--endpoint-type", chosen, "--artifact-dir", tmp_path / "none")
    assert done.code == 1
    assert any(sentence in line for line in done.err.splitlines() if line.startswith("error: ")), done.err
    assert not (tmp_path / "none" / "journal").exists()


@pytest.mark.parametrize(
    ("category", "words"),
    [
        ("arrivals", ["--tokenizer", "builtin", "--request-rate", 100, "--arrival-pattern", "rotten"]),
        ("configurations", ["--tokenizer", "builtin", "--config", "asked.rotten"]),
        ("datasets", ["--tokenizer", "builtin", "--input-file", "asked.jsonl", "--custom-dataset-type", "rotten"]),
        ("engines", ["--tokenizer", "builtin", "--engine", "rotten"]),
        ("graders", ["--tokenizer", "builtin", "--accuracy-grader", "rotten"]),
        ("ramps", ["--tokenizer", "builtin", "--concurrency", 4, "--concurrency-ramp-duration", 1, "--ramp", "rotten"]),
        ("samplers", ["--tokenizer", "builtin", "--dataset-sampling-strategy", "rotten"]),
        ("tokenizers", ["--tokenizer", "rotten"]),
        ("transports", ["--tokenizer", "builtin", "--transport", "rotten"]),
        ("uis", ["--tokenizer", "builtin", "--ui-type", "rotten"]),
        ("url_strategies", ["--tokenizer", "builtin", "--url", "http://127.0.0.1:9", "--url-strategy", "rotten"]),
    ],
)
def test_a_chosen_plugin_that_fails_to_import_ends_the_run(
    crowd: Program, simulator: Simulator, tmp_path: Path, category: str, words: list[str | int]
) -> None:
    done = crowd(
        "profile", "--model", "m", "--url", simulator.url, *words, "--request-count", 12, "--artifact-dir", tmp_path / "none"
    )
    assert done.code == 1, done.err
    (error,) = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert f"{category}:rotten of {bad(category)} 0.9 can't be imported: " in error and MISSING in error
    assert simulator.summary()["requests"] == 0


def test_commands_name_a_broken_package_and_work_without_it(crowd: Program, among_them: Done) -> None:
    compared = crowd("report", among_them.artifacts, "--definitions", "--json")
    assert compared.code == 1 and "patient" in json.loads(compared.out)
    drawn = crowd("plot", among_them.artifacts, "--json")
    assert drawn.code == 1 and "odometer" in {figure["plot"] for figure in json.loads(drawn.out)}
    absent = crowd("rotten")
    assert absent.code == 1 and absent.out == ""
    for done, category in ((compared, "definitions"), (drawn, "plots"), (absent, "commands")):
        error, *hints = done.err.splitlines()
        assert [hint for hint in hints if not hint.startswith("  pip install ")] == []
        assert f"{category}:rotten of {bad(category)} 0.9 can't be imported: " in error and MISSING in error


def test_broken_packages_are_listed_with_their_causes(crowd: Program) -> None:
    done = crowd("plugins", "validate")
    assert done.code == 1
    faults = [line for line in done.out.splitlines()[:-1] if " 0.9" in line]
    assert len(faults) == len(done.out.splitlines()) - 1, "the others are without a fault"
    packages = [line.partition(" (")[2].partition("): ")[0] for line in faults]
    assert packages.count("acme-one, acme-two") == 1
    assert all(packages.count(f"{bad(category)} 0.9") == 1 for category in CATEGORIES)
    broken = {row["name"] for row in json.loads(crowd("plugins", "--json").out)["broken"]}
    assert broken == {"garbled", "misspelt", "newer", "silent", "twin"}


@pytest.fixture
def overlay(aiperf: Program, tmp_path: Path) -> Overlay:
    aiperf.environment["PYTHONPATH"] = str(tmp_path / "overlay")
    return Overlay(tmp_path / "overlay")


BRITTLE_CODE = """
from aiperf_transport_sockets import KernelTransport

class Thing(KernelTransport):
    sent = 0

    def send(self, exchange):
        self.sent += 1
        self.loop.call_soon(self.broken if self.sent == 5 else super().send, exchange)

    def broken(self, exchange):
        raise ValueError("the glass is broken")
"""


def test_a_hook_that_fails_leaves_the_transport_to_the_plan(aiperf: Program, overlay: Overlay, simulator: Simulator) -> None:
    code = "import aiperf\nclass Thing:\n    @aiperf.hookimpl\n    def aiperf_make_transport(self):\n        return 1 / 0\n"
    overlay.add("bad-wires", "hooks", "wires", code=code)
    done = aiperf("profile", "--url", simulator.url, *RUN)
    sentence = "the plugin hooks:wires of bad-wires 0.9 failed in aiperf_make_transport: ZeroDivisionError: division by zero"
    assert done.code == 0 and "Traceback" not in done.err
    assert done.err.count(sentence) == 1, done.err
    assert simulator.summary()["requests"] > 0


ASKING = """
import importlib.util

import aiperf

class Thing:
    @aiperf.hookimpl
    def aiperf_make_schedule(self, context):
        assert importlib.util.find_spec("numpy") is not None
"""


def test_a_plugin_of_the_builder_may_ask_whether_a_module_is_there(
    aiperf: Program, overlay: Overlay, simulator: Simulator
) -> None:
    overlay.add("acme-asking", "hooks", "asking", code=ASKING)
    done = aiperf("profile", "--url", simulator.url, *RUN)
    assert done.code == 0 and "acme-asking" not in done.err, done.err


STUMBLING = """
from acme_parrot import Parrot
from aiperf import Capabilities, Endpoint, HttpRequest

class Thing(Endpoint):
    capabilities = Capabilities(
        path="/v1/completions", streaming=True, produces_tokens=True, tokenizes_input=True, multi_turn=True
    )

    def encode(self, turn):
        ENCODE
        return HttpRequest(self.path(streaming=True), b'{"model": "m", "prompt": "p", "stream": true, "max_tokens": 4}')

    def decode(self, event):
        DECODE
        return Parrot.decode(self, event)
"""
STUMBLES = """schema_version: 1
api: ">=1,<2"
plugins:
  - category: endpoints
    name: clumsy
    summary: Drops things.
    capabilities: {path: /v1/completions, streaming: true, produces_tokens: true, tokenizes_input: true, multi_turn: true}
"""


@pytest.mark.parametrize(
    ("encode", "decode", "message", "sent", "failed"),
    [
        ("", "raise KeyError('choices')", "the endpoint can't read the answer: KeyError: 'choices'", 12, 12),
        ("", "return 'Hi'", "the endpoint can't read the answer: decode returned str, not Delta", 12, 12),
        ("if turn.history[1:]: raise IndexError('long')", "", "the endpoint can't make the request: IndexError: long", 4, 8),
        ("if turn.history[1:]: return 'Hi'", "",
         "the endpoint can't make the request: TypeError: encode returned str, not HttpRequest", 4, 8),
    ],
    ids=["answer", "wrong delta", "request", "wrong request"],
)
def test_an_endpoint_that_fails_fails_its_requests_alone(
    aiperf: Program, overlay: Overlay, simulator: Simulator, encode: str, decode: str, message: str, sent: int, failed: int
) -> None:
    code = STUMBLING.replace("ENCODE", encode).replace("DECODE", decode)
    overlay.add("bad-hands", "endpoints", "clumsy", code=code, manifest=STUMBLES)
    turns = ("--conversation-num", 4, "--conversation-turn-mean", 3, "--conversation-turn-stddev", 0)
    limits = ("--streaming", "--concurrency", 2, "--prefill-concurrency", 1)
    done = aiperf("profile", "--url", simulator.url, "--endpoint-type", "clumsy", *turns, *limits, *RUN[:8], "--ui", "none")
    assert done.code == 1, done.err
    assert "Traceback" not in done.err and "exited with" not in done.err
    ((details, count),) = ((row["error_details"], row["count"]) for row in done.json()["error_summary"])
    assert (details["type"], details["message"], count) == ("EndpointError", message, failed)
    assert simulator.summary()["requests"] == sent
    arrivals = done.json()["measurement"]["arrivals"]
    assert (arrivals["planned"], arrivals["completed"]) == (12, 12 - failed)
    assert f"the plugin endpoints:clumsy of bad-hands 0.9 failed: {message}" in " ".join(done.out.split())


LACKING_CODE = """
from aiperf import BatchExporter

class Thing(BatchExporter):
    label, kind = "Lacking", "lacking.txt"

    def rows(self, scored):
        return b"row\\n" * len(scored.batch)

    def left_out(self):
        return ["lacking.txt has no prices: nobody names them"]
"""


def test_an_exporter_says_what_its_rows_lack(aiperf: Program, overlay: Overlay, simulator: Simulator) -> None:
    overlay.add("acme-lacking", "exporters", "lacking", code=LACKING_CODE)
    done = aiperf("profile", "--url", simulator.url, *RUN)
    assert done.code == 1
    assert (done.artifacts / "lacking.txt").read_text() == "row\n" * 12
    assert done.json()["warnings"].count("lacking.txt has no prices: nobody names them") == 1
    assert "lacking.txt has no prices: nobody names them" in done.out


@pytest.mark.traceback
def test_a_worker_that_a_plugin_breaks_is_named_and_replaced(
    aiperf: Program, overlay: Overlay, simulator: Simulator
) -> None:
    overlay.add("bad-glass", "transports", "brittle", code=BRITTLE_CODE)
    done = aiperf("profile", "--url", simulator.url, "--transport", "brittle", *RUN)
    assert done.code == 1 and "Traceback" not in done.err, done.err
    assert "worker 0 failed: ValueError: the glass is broken" in done.err
    assert "worker 0 exited with 70; what it had in flight is counted as unfinished, and another one goes on" in done.err
    assert "the glass is broken" in (done.artifacts / "logs" / "aiperf.log").read_text()
    arrivals = done.json()["measurement"]["arrivals"]
    assert arrivals["planned"] == 12 == sum(arrivals[what] for what in ("completed", "unfinished", "never_sent"))
    assert arrivals["completed"] == simulator.summary()["requests"] > 4


# A protocol that is not HTTP: calls of messages, an endpoint and a transport of their own


class CallServer:
    """The server of ``acme-frames`` in a thread of its own."""

    def __init__(self, pause_s: float = 0.0) -> None:
        from acme_frames.server import Server

        self._loop = asyncio.new_event_loop()
        self.server = Server(pause_s=pause_s)
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.server.__aenter__(), self._loop).result(60)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.__aexit__(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[CallServer]:
    monkeypatch.syspath_prepend(STRANGERS["frames"] / "src")
    server = CallServer(pause_s=0.05)  # a busy machine must not merge two messages into one read
    yield server
    server.close()


def framed(aiperf: Program, calls: CallServer, *words: str | float) -> Done:
    load = ("--tokenizer", "builtin", "--isl", 20, "--osl", 5, "--request-count", 6, "--concurrency", 2, "--ui", "none")
    return aiperf("profile", "--model", "m", "--url", calls.server.url, "--endpoint-type", "framed", *load, *words)


def test_each_message_of_a_streamed_call_is_an_event(aiperf: Program, calls: CallServer) -> None:
    done = framed(aiperf, calls, "--streaming", "--use-server-token-count", "--export-http-trace", "--export-level", "raw")
    assert done.code == 0, done.err
    assert [path for path, _ in calls.server.calls] == ["/acme.Text/GenerateStream"] * 6
    assert {call["max_tokens"] for _, call in calls.server.calls} == {5}
    results, records = done.json(), done.lines("profile_export.jsonl")
    assert results["request_count"]["avg"] == 6 and results["output_sequence_length"]["avg"] == 5, "the trailers have the count"
    assert [len(record["metrics"]["inter_chunk_latency"]["value"]) for record in records] == [4] * 6
    assert all(min(record["metrics"]["inter_chunk_latency"]["value"]) >= 3.9 for record in records), "as the server paused"
    assert [record["trace_data"]["response_chunks_count"] for record in records] == [5] * 6
    assert [record["trace_data"]["response_trailers"] for record in records] == [{"status": "0", "tokens": "5"}] * 6
    raw = [[msgspec.msgpack.decode(b64decode(one["raw_bytes"]))["text"] for one in line["responses"]]
           for line in done.lines("profile_export_raw.jsonl")]  # fmt: skip
    assert raw == [[f"word{i} " for i in range(5)]] * 6
    measured = results["measurement"]
    assert (measured["clock"], measured["stamps_missing"]) == ("read", 0)
    assert not [reason for reason in measured["reasons"] if "stamp" in reason]


def test_the_type_asks_its_server_once_it_is_ready(aiperf: Program, calls: CallServer) -> None:
    calls.server.most_tokens, calls.server.unready = 3, 2
    waiting = ("--wait-for-model-timeout", 60, "--wait-for-model-interval", 0.02, "--workers", 2)
    done = framed(aiperf, calls, "--streaming", *waiting)
    assert done.code == 0, done.err
    assert [call["max_tokens"] for _, call in calls.server.calls] == [3] * 6, "the limit reaches every worker"
    assert calls.server.described == 4, "two calls too early, one that is ready, and one question"
    run = json.loads((done.artifacts / "journal" / "run.json").read_text())
    assert run["plan"]["target"]["prepared"] == {"most_tokens": 3}


def test_a_server_that_gives_no_answer_is_a_sentence(aiperf: Program, calls: CallServer) -> None:
    done = aiperf("profile", "--endpoint-type", "framed", "--url", "frames://127.0.0.1:9", *RUN)
    assert done.code == 1 and "Traceback" not in done.err and not calls.server.calls, done.err
    assert "frames://127.0.0.1:9 gives no answer to /acme.Text/Describe: 127.0.0.1:9: " in done.err
    assert "--wait-for-model-timeout waits for it" in done.err


def test_a_unary_call_is_one_message(aiperf: Program, calls: CallServer) -> None:
    done = framed(aiperf, calls)
    assert done.code == 0, done.err
    assert [path for path, _ in calls.server.calls] == ["/acme.Text/Generate"] * 6
    assert done.json()["request_count"]["avg"] == 6
    used = {row["name"] for row in done.json()["plugins"]["used"] if row["distribution"] == "acme-frames"}
    assert used == {"framed", "frames"}


def test_the_status_in_the_trailers_is_the_requests_error(aiperf: Program, calls: CallServer) -> None:
    done = framed(aiperf, calls, "--streaming", "--extra-inputs", "refuse:true")
    assert done.code == 1 and len(calls.server.calls) == 6
    errors = [record["error"] for record in done.lines("profile_export.jsonl")]
    assert errors == [{"code": 8, "type": "CallFailed", "message": "the quota is spent"}] * 6


def test_a_bare_address_is_of_the_types_first_scheme(aiperf: Program, calls: CallServer) -> None:
    done = aiperf("profile", "--endpoint-type", "framed", "--url", f"localhost:{calls.server.port}", *RUN, "--dry-run")
    assert done.code == 0 and f"frames://localhost:{calls.server.port}" in done.out, done.err
    usual = aiperf("profile", "--endpoint-type", "framed", *RUN, "--dry-run")
    assert usual.code == 0 and "frames://localhost:7000" in usual.out, usual.err
    gateway = aiperf("profile", "--endpoint-type", "framed", "--url", "http://localhost:1", *RUN, "--dry-run")
    assert gateway.code == 0 and "http://localhost:1/v1/call" in gateway.out, gateway.err
    assert not calls.server.calls


def test_resets_go_to_the_http_server_that_is_named(aiperf: Program, calls: CallServer, simulator: Simulator) -> None:
    alone = framed(aiperf, calls, "--reset-kv-cache")
    assert alone.code == 1 and f"--reset-kv-cache asks over HTTP, and {calls.server.url} is none" in alone.err, alone.err
    assert not calls.server.calls
    done = framed(aiperf, calls, "--reset-kv-cache", "--server-control-url", simulator.url)
    assert done.code == 0, done.err
    assert len(calls.server.calls) == 6 and done.json()["input_config"]["endpoint"]["control_urls"] == [simulator.url]


def test_a_url_of_another_protocol_is_refused_for_the_endpoint(aiperf: Program, calls: CallServer) -> None:
    done = aiperf("profile", "--url", "frames://localhost:1", *RUN)
    said = "'frames://localhost:1' has the scheme 'frames', and the endpoint type 'chat' takes http"
    assert done.code == 1 and said in done.err and "or use --endpoint-type framed" in done.err, done.err
    mixed = aiperf("profile", "--endpoint-type", "framed", "--url", "frames://localhost:1", "--url", "http://localhost:1", *RUN)
    assert mixed.code == 1 and "are made for one of them" in mixed.err, mixed.err
    unknown = aiperf("profile", "--url", "telex://localhost:1", *RUN)
    assert unknown.code == 1 and "has the scheme 'telex'; only " in unknown.err and "frames" in unknown.err
    assert not calls.server.calls


# Bidirectional calls, over a transport that the endpoint names


def test_a_bidirectional_call_sends_while_it_reads(aiperf: Program, simulator: Simulator) -> None:
    load = ("--tokenizer", "builtin", "--isl", 8, "--request-count", 6, "--concurrency", 3, "--ui", "none")
    url = simulator.url.replace("http://", "grpc://")
    done = aiperf("profile", "--model", "m", "--endpoint-type", "dialogue", "--streaming", "--url", url, *load,
                  "--streams-per-connection", 2, "--export-http-trace")  # fmt: skip
    assert done.code == 0, done.err
    results, records = done.json(), done.lines("profile_export.jsonl")
    assert results["request_count"]["avg"] == 6 and results["measurement"]["streams_per_connection"] == 2
    traces = [record["trace_data"] for record in records]
    assert all(trace["response_trailers"] == {"grpc-status": "0"} for trace in traces)
    for record, trace in zip(records, traces, strict=True):
        gaps = record["metrics"]["inter_chunk_latency"]["value"]
        spoken_ms = (trace["request_send_end_ns"] - trace["request_send_start_ns"]) / 1e6
        assert gaps and spoken_ms >= 20 * len(gaps), "each word waits for 20 ms; some may be read at once"
        first = trace["request_send_start_ns"] + 1e6 * record["metrics"]["time_to_first_token"]["value"]
        assert first < trace["request_send_end_ns"], "the answer began while the prompt was spoken"


def test_an_endpoint_of_parts_is_refused_on_transports_without(aiperf: Program) -> None:
    done = aiperf("profile", "--endpoint-type", "dialogue", "--url", "http://127.0.0.1:9", "--transport", "kernel", *RUN)
    said = "requests of the type 'dialogue' to http URLs go through the transport 'http2', and --transport names 'kernel'"
    assert done.code == 1 and said in done.err and "Traceback" not in done.err, done.err
