"""Command lines of the reference: each is planned, or ends in sentences that name what can't be; none is started here."""

from __future__ import annotations

import json
import random
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf import logs
from aiperf.cli.main import main, profile_command
from aiperf.planning import configure
from aiperf.registry.registry import Registry
from aiperf.study.preparation import Preparation
from aiperf.study.request import StudyRequest

REFERENCE = Path(__file__).parent / "reference" / "options.json"
LINES, SEED = 300, 28
START = "profile --model m --url http://h:1 --tokenizer builtin"
CHAT = f"{START} --endpoint-type chat --streaming"
RECIPES = (
    f"{CHAT} --concurrency 10 --request-count 100 --isl 1000 --osl 500",
    f"{CHAT} --input-file trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --goodput"
    " 'time_to_first_token:250 inter_token_latency:10 request_latency:2000' --warmup-duration 30 --benchmark-duration 600"
    " --benchmark-grace-period 60 --artifact-dir artifacts/health-2026-01-01T00:00:00+00:00",
    *(f"{CHAT} --concurrency {c} --request-count 1000 --isl 1000 --osl 500 --random-seed 42"
      f" --artifact-dir artifacts/pareto-c{c}"
      for c in (10, 50, 100)),
    f"{CHAT} --concurrency 100 --request-count 2000 --isl 1000 --osl 500 --num-profile-runs 5 --confidence-level 0.95"
    " --profile-run-cooldown-seconds 30 --goodput 'time_to_first_token:300 inter_token_latency:8'",
    f"{CHAT} --public-dataset sharegpt --num-sessions 200 --concurrency 50 --input-file sharegpt.json",
    f"{CHAT} --input-file trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule"
    " --goodput 'time_to_first_token:400 request_latency:2000'",
    f"{START} --endpoint-type nim_embeddings --concurrency 32 --request-count 5000 --prompt-batch-size 16",
    f"{CHAT} --input-file conversations.jsonl --custom-dataset-type multi_turn --shared-system-prompt-length 1000"
    " --user-context-prompt-length 200 --num-sessions 50 --concurrency 25",
    f"{CHAT} --accuracy-benchmark mmlu --accuracy-n-shots 5 --accuracy-grader multiple_choice",
    f"{CHAT} --request-rate 20 --arrival-pattern poisson --concurrency 60 --benchmark-duration 120",
    f"{CHAT} --user-centric-rate 1 --num-users 15 --session-turns-mean 20 --benchmark-duration 300",
    f"{CHAT} --use-server-token-count",
    f"{CHAT} --gpu-telemetry http://node:9400", f"{CHAT} --gpu-telemetry pynvml", f"{CHAT} --gpu-telemetry",
    f"{CHAT} --request-rate 50 --arrival-pattern gamma --arrival-smoothness 0.5 --warmup-request-count 100"
    " --request-count 2000",
    f"{CHAT} --request-cancellation-rate 10 --request-cancellation-delay 0.5",
    f"{CHAT} --concurrency 100 --prefill-concurrency 8 --concurrency-ramp-duration 30 --request-count 2000",
    f"{CHAT} --profile-export-prefix /abs/path/run1",
)  # fmt: skip
"""R1 to R20, but those of other commands, which tests of these commands type."""
COMPANIONS = {
    "--warmup-": "--warmup-request-count 20", "--video-": "--video-width 8 --video-height 8", "--osl": "--osl 20",
    "--wait-for-model-": "--wait-for-model-timeout 1", "--server-profiler-": "--server-profiler",
    "--audio-": "--audio-length-mean 1",
    "--reset-kv-cache-": "--reset-kv-cache", "--image-": "--image-width-mean 8 --image-height-mean 8",
    "--user-centric": "--num-users 2",
    "--synthesis-": "--input-file trace.jsonl --custom-dataset-type mooncake_trace",
    "--benchmark-grace": "--benchmark-duration 20",
    "--fixed-schedule": "--fixed-schedule --input-file trace.jsonl --custom-dataset-type mooncake_trace",
    "--custom-dataset-type": "--input-file conversations.jsonl", "--rankings-": "--endpoint-type nim_rankings",
    "--warmup-request-rate": "--warmup-request-rate 5", "--warmup-arrival": "--warmup-request-rate 5",
    "--arrival": "--request-rate 5", "--request-rate-ramp": "--request-rate 5",
    "--request-cancellation": "--request-cancellation-rate 5",
    "--concurrency-ramp": "--concurrency 2", "--prefill-concurrency": "--streaming --concurrency 20",
}  # fmt: skip
"""What belongs to options that begin so."""
LOADS = (
    "", "--request-rate 5 --benchmark-duration 20 --streaming",
    "--concurrency 20 --request-count 50 --warmup-request-count 20 --streaming",
    "--input-file conversations.jsonl --num-sessions 20 --concurrency 4 --streaming",
    "--image-width-mean 8 --image-height-mean 8 --audio-length-mean 1 --request-count 20", "--isl 20 --osl 5 --random-seed 3",
)  # fmt: skip
"""What a drawn line begins with: loads to which most options belong."""
TEXTS = {
    "--input-file": "conversations.jsonl", "--custom-dataset-type": "multi_turn", "--public-dataset": "spec_bench",
    "--goodput": "request_latency:500", "--header": "X-Team:a", "--extra-inputs": "temperature:0.5", "--url": "http://h:2",
    "--endpoint-type": "chat", "--arrival-pattern": "poisson", "--warmup-arrival-pattern": "constant", "--ui-type": "simple",
    "--request-rate-series": "rates.json", "--seq-dist": "64,10:50;128,20:50", "--random-range-ratio": "0.5",
    "--system-prompt-file": "system.txt", "--transport": "http", "--dataset-sampling-strategy": "shuffle",
    "--random-seed": "7", "--config": "run.yaml", "--url-strategy": "round_robin", "--output-artifact-dir": "out",
    "--zmq-host": "127.0.0.1", "--zmq-ipc-path": "sockets", "--custom-endpoint": "/v1/x", "--audio-sample-rates": "16",
    "--audio-depths": "16", "--tokenizer": "builtin", "--video-codec": "libvpx-vp9", "--dataset-filter": "a=b",
    "--server-profiler-start-path": "/on", "--server-profiler-stop-path": "/off", "--reset-kv-cache-path": "/reset",
    "--benchmark-duration": "20", "--accuracy-grader": "math", "--accuracy-benchmark": "mmlu",
}  # fmt: skip
"""Values of options that take more than any text."""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.fixture
def play(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[list[str]], tuple[int, list[Any], str]]]:
    """Plays a line up to its plan: exit code, the plan's settings, standard error."""
    turn = json.dumps({"turns": [{"text": "a"}, {"text": "b"}]})
    files = {
        "trace.jsonl": '{"timestamp": 0, "input_length": 20, "output_length": 5, "hash_ids": [1]}\n',
        "conversations.jsonl": f"{turn}\n{turn}\n", "rates.json": "[[0, 1], [10, 5]]", "system.txt": "Be brief.",
        "sharegpt.json": '[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]',
        "run.yaml": "benchmark: {models: [m], endpoint: {urls: ['http://h:1']}}\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logs, "to_console", lambda *_, **__: None)  # its handler would outlive the captured stream
    planned: list[Any] = []

    def plan_alone(settings: Any, found: Registry) -> int:
        configure.plan(settings, found, lambda texts: None)
        planned.append(settings)
        return 0

    def study_alone(request: StudyRequest, *_: object, **__: object) -> tuple[None, int]:
        Preparation(request)
        planned.append(request.base)
        return None, 0

    monkeypatch.setattr("aiperf.run.run.profile", plan_alone)
    monkeypatch.setattr("aiperf.study.loop.run", study_alone)

    def go(words: list[str]) -> tuple[int, list[Any], str]:
        planned.clear()
        code = main(words, registry)
        return code, list(planned), capsys.readouterr().err

    yield go


def value_of(row: dict[str, Any], draw: random.Random) -> list[str]:
    flag = row["names"][0]
    if row["kind"] == "flag":
        return []
    if flag in TEXTS:
        return [TEXTS[flag]]
    if row.get("values"):
        return [draw.choice(row["values"])]
    return [draw.choice({"int": ["1", "2", "16"], "float": ["0.25", "0.5"]}.get(row["kind"], ["word"]))]


def drawn(known: set[str]) -> Iterator[list[str]]:
    """Lines of one to five options: every second one of those that are here alone."""
    rows = json.loads(REFERENCE.read_text())["profile"]
    own = [row for row in rows if row["names"][0] not in ("--model-names", "--tokenizer", "--url", "--config")]
    here = [row for row in own if row["names"][0] in known]
    draw = random.Random(SEED)
    for number in range(LINES):
        line = shlex.split(f"{START} {draw.choice(LOADS)}")
        free = [row for row in (here if number % 3 else own) if not set(row["names"]) & set(line)]
        for row in draw.sample(free, 1 + number % 3):
            first = shlex.split(f"{draw.choice(row['names'])} {' '.join(value_of(row, draw))}")
            added = [first]
            if number % 3:
                for beginning, words in COMPANIONS.items():
                    added += _pairs(words) if any(name.startswith(beginning) for name in row["names"]) else []
            for pieces in added:
                line += [] if pieces[0] in line else pieces
        yield line


def _pairs(line: str) -> list[list[str]]:
    """The options of a line, each with its value."""
    found: list[list[str]] = []
    for word in shlex.split(line):
        if word.startswith("-"):
            found.append([])
        found[-1].append(word)
    return found


def flags_of(line: list[str]) -> list[str]:
    return [word for word in line if word.startswith("-")]


def blocks_of(err: str) -> list[str]:
    """Each error with its hints."""
    return [block.rstrip() for block in err.split("error: ")[1:]]


@pytest.mark.parametrize("line", RECIPES)
def test_a_recipe_is_planned(play: Any, line: str) -> None:
    code, planned, err = play(shlex.split(line))
    assert (code, len(planned)) == (0, 1), err


@pytest.mark.parametrize(("words", "said"), [
    ("--accuracy-limit 5", "add --accuracy-benchmark, which chooses one"),
    ("--accuracy-benchmark mmul", "did you mean 'mmlu'?"),
    ("--accuracy-benchmark gsm8k --input-file trace.jsonl", "--accuracy-benchmark gsm8k has data of its own"),
    ("--accuracy-benchmark gsm8k --fixed-schedule", "the data set gsm8k has none"),
    ("--accuracy-benchmark gsm8k --endpoint-type embeddings", "--accuracy-benchmark needs answers in words"),
    ("--accuracy-benchmark gsm8k --accuracy-data x.jsonl --hf-revision v1", "--hf-revision has no use for a local copy"),
    ("--accuracy-benchmark mmlu --accuracy-n-shots 33", "--accuracy-n-shots: 33 is not allowed"),
])  # fmt: skip
def test_a_benchmark_that_cannot_be_asked_is_refused(play: Any, words: str, said: str) -> None:
    code, planned, err = play(shlex.split(f"{START} {words}"))
    assert (code, planned) in ((1, []), (2, [])) and said in err


def test_a_drawn_line_is_planned_or_refused_by_the_names_of_its_words(play: Any, registry: Registry) -> None:
    """No word is ignored: what is planned has all of them, and each that is unknown is named."""
    options = profile_command(registry, whole=True).options
    known = {flag for option in options for flag in (*option.spec.flags, option.spec.negative) if flag}
    ends: Counter[str] = Counter()
    for words in drawn(known):
        code, planned, err = play(words)
        flags = flags_of(words)
        if code == 0:
            assert len(planned) == 1 and set(flags) <= set(planned[0].typed.values()), words
        else:
            assert code in (1, 2) and "Traceback" not in err and blocks_of(err), (words, err)
            assert {flag for flag in flags if f"unknown option {flag}\n" in err} == set(flags) - known, (words, err)
            for block in blocks_of(err):
                assert any(flag in block for flag in flags), (words, block)
        ends["planned" if code == 0 else "refused"] += 1
    assert ends["planned"] > 60 and ends["refused"] > 60, ends
