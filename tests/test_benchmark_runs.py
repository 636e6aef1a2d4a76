"""Benchmarks in whole runs against a server that knows the answers: each problem is asked once, as the endpoint type has it.

The default suite has one endpoint type for each benchmark, all in one set of processes; ``long`` has every other one.
"""

from __future__ import annotations

import base64
import csv
import json
import pickle
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiperf import Conversation
from aiperf.registry.registry import Registry
from aiperf.results import open_run
from aiperf_benchmarks.contract import CHAT, TEXT, opened, write
from aiperf_command_validate.results import check
from aiperf_command_validate.schemas import schemas
from aiperf_dataset_mmlu.dataset import Mmlu
from aiperf_dataset_public.testing import Repository, running_hub
from aiperf_grading.engine import installed
from aiperf_testing.manifests import row_of
from program import Program

BENCHMARKS = (
    "mmlu", "mmlu_pro", "aime", "aime24", "aime25", "hellaswag", "bigbench", "math_500", "gsm8k", "gpqa_diamond",
    "lcb_codegeneration",
)  # fmt: skip
ENDPOINTS = ("chat", "completions", "responses", "messages")
BUDGETS = {
    "chat": "max_completion_tokens", "completions": "max_tokens", "responses": "max_output_tokens", "messages": "max_tokens",
}  # fmt: skip
"""Names of the longest answer."""
PROGRAM = """
import json, sys
import aiperf

with aiperf.Run() as run:
    for options in json.load(sys.stdin):
        run.profile(**options)
"""


class Case(NamedTuple):
    benchmark: str
    endpoint: str


USUAL = [Case(name, ENDPOINTS[number % 4]) for number, name in enumerate(BENCHMARKS)]
OTHERS = [Case(name, endpoint) for name in BENCHMARKS for endpoint in ENDPOINTS if Case(name, endpoint) not in USUAL]


class Teacher:
    """A server that answers what it knows.  answers: by the question, which is the end of the prompt.  asked: all bodies."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.url = ""

    def reply(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((path, body))
        last = texts_of(path, body)[-1][1]
        answer = self.answers.get(last, "I don't know.")
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "input_tokens": 1, "output_tokens": 1}
        if path.endswith("/chat/completions"):
            choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
            return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
        if path.endswith("/completions"):
            return {"id": "1", "choices": [{"index": 0, "text": answer, "finish_reason": "stop"}], "usage": usage}
        if path.endswith("/responses"):
            content = [{"type": "output_text", "text": answer}]
            item = {"type": "message", "role": "assistant", "content": content}
            return {"id": "1", "object": "response", "status": "completed", "output": [item], "usage": usage}
        block = {"type": "text", "text": answer}
        return {"id": "1", "type": "message", "role": "assistant", "content": [block], "stop_reason": "end_turn",
                "usage": usage}  # fmt: skip


def texts_of(path: str, body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each message that a body has, the system prompt first; of a prompt without roles one."""
    if "prompt" in body:
        return [("user", body["prompt"])]
    system = body.get("system") or body.get("instructions")
    messages = body["messages"] if "messages" in body else body["input"]
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    found = [(message["role"], text_of(message["content"])) for message in messages]
    return ([("system", text_of(system))] if system else []) + found


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.fixture
def teacher() -> Iterator[Teacher]:
    teacher = Teacher()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps(teacher.reply(self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    teacher.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield teacher
    server.shutdown()
    server.server_close()
    thread.join()


def package_of(name: str) -> str:
    return "aime" if name.startswith("aime") else name


def prepared(folder: Path, name: str) -> tuple[Path, list[dict[str, Any]]]:
    """A file with six problems of the benchmark, and its rows."""
    contract = import_module(f"aiperf_dataset_{package_of(name)}.contract")
    rows = contract.sample(6, bare=True) if name in ("aime24", "aime25") else contract.sample(6)
    if name == "lcb_codegeneration":  # the private ones are published as a text, pickled, compressed, in base64
        for row in rows:
            packed = zlib.compress(pickle.dumps(row["private_test_cases"]))
            row["private_test_cases"] = base64.b64encode(packed).decode()
    return write(folder / f"{name}.jsonl", rows), rows


def wanted(name: str, file: Path, endpoint: str) -> list[Conversation]:
    (point,) = entry_points(group="aiperf.datasets", name=package_of(name))
    kind = point.load()
    return list(opened(kind, name, file, can=TEXT if endpoint == "completions" else CHAT))


def right_answer(name: str, number: int, expected: str) -> str:
    if name == "lcb_codegeneration":
        function = f"class Solution:\n    def add(self, a):\n        return a + {number}"
        return f"```python\n{function if number % 2 else f'print(int(input()) + {number})'}\n```"
    forms = {"mmlu_pro": "The answer is ({}).", "gpqa_diamond": "Answer: {}", "mmlu": "{}"}
    return forms.get(name, "\\boxed{{{}}}" if name.startswith("aime") else "{}").format(expected.strip())


def played(teacher: Teacher, folder: Path, cases: list[Case]) -> None:
    """Run the cases one after the other, and compare what the server saw and what was graded with the data set."""
    plans, told = [], {}
    for case in cases:
        file, _ = prepared(folder, case.benchmark)
        told[case] = wanted(case.benchmark, file, case.endpoint)
        for number, one in enumerate(told[case]):
            teacher.answers[one.turns[0].text] = right_answer(case.benchmark, number, one.turns[0].expected or "")
        plan: dict[str, Any] = {
            "model": "m", "url": teacher.url, "tokenizer": "builtin", "endpoint_type": case.endpoint, "concurrency": 2,
            "accuracy_benchmark": case.benchmark, "accuracy_data": str(file), "server_metrics": False, "workers_max": 1,
            "artifact_dir": str(folder / "-".join(case)),
        }  # fmt: skip
        if case.benchmark == "lcb_codegeneration":
            plan["accuracy_allow_code_execution"] = "unisolated"
        plans.append(plan)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(plans), capture_output=True, text=True, check=False, timeout=600
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = list(teacher.asked)
    for case in cases:
        mine, seen = seen[: len(told[case])], seen[len(told[case]) :]
        compare(case, told[case], mine)
        graded = list(open_run(folder / "-".join(case)).batches())
        assert sum(len(batch) for batch in graded) == len(told[case]), case
        with (folder / "-".join(case) / "accuracy_results.csv").open() as table:  # it has grades of slow graders, too
            *_, overall = csv.DictReader(table)
        count = str(len(told[case]))
        assert (overall["task"], overall["correct"], overall["total"]) == ("OVERALL", count, count), case
        summary = json.loads((folder / "-".join(case) / "profile_export_aiperf.json").read_text())
        symbolic = case.benchmark == "math_500" or case.benchmark.startswith("aime")
        assert summary["accuracy"]["symbolic_engine"] == (installed() if symbolic else None), case
    assert seen == []


def compare(case: Case, told: list[Conversation], seen: list[tuple[str, dict[str, Any]]]) -> None:
    """What was asked is what the data set has, each problem once."""
    as_asked = sorted(json.dumps(texts_of(path, body)) for path, body in seen)
    as_told = []
    for one in told:
        messages = [(message.role, message.text) for message in one.prelude] + [("user", one.turns[0].text)]
        as_told.append(json.dumps(messages))
    assert as_asked == sorted(as_told), case
    for _, body in seen:
        assert body[BUDGETS[case.endpoint]] == told[0].turns[0].max_tokens and body["temperature"] == 0, case


def test_a_benchmark_asks_each_problem_once(teacher: Teacher, tmp_path: Path) -> None:
    played(teacher, tmp_path, USUAL)


@pytest.mark.long
def test_a_benchmark_asks_every_type_of_endpoint(teacher: Teacher, tmp_path: Path) -> None:
    played(teacher, tmp_path, OTHERS)


def test_mmlu_is_fetched_and_then_read_without_a_network(aiperf: Program, teacher: Teacher) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file, rows = prepared(aiperf.folder, "mmlu")
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for folder in (row["subject"], "all"):
            parts.setdefault(f"{folder}/{row['split']}-00000-of-00001.parquet", []).append(row)
    files: dict[str, bytes] = {}
    for name, some in parts.items():
        out = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.Table.from_pylist(some).drop_columns(["split"]), out)
        files[name] = out.getvalue().to_pybytes()
    told = wanted("mmlu", file, "chat")
    teacher.answers = {one.turns[0].text: (one.turns[0].expected or "").strip() for one in told}
    commit = row_of("datasets", Mmlu).capabilities["names"]["mmlu"]["revision"]
    with running_hub() as hub:
        hub.add(Repository("lighteval/mmlu")).commit(files, commit=commit)
        aiperf.environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(aiperf.folder / "home")}
        done = aiperf("datasets", "fetch", "mmlu")
        assert done.code == 0 and sorted(hub.fetched()) == sorted(files), done.err
    aiperf.environment |= {"HF_HUB_OFFLINE": "1"}
    # R9 of the recipes, as it stands.
    done = aiperf.line(
        f"aiperf profile --model m --url {teacher.url} --tokenizer builtin --endpoint-type chat --accuracy-benchmark mmlu"
        " --accuracy-n-shots 5 --accuracy-grader multiple_choice"
    )
    assert done.code == 0, done.err
    compare(Case("mmlu", "chat"), sorted(told, key=lambda one: one.turns[0].task or ""), teacher.asked)
    source = done.json()["dataset"]
    assert (source["commit"], source["problems"], source["tasks"]) == (commit, 6, ["anatomy", "astronomy"])
    assert source["settings"] == {"temperature": 0, "seed": 0, "stop": ["\n"], "max_tokens": 5}
    summary, lines = done.json(), done.lines("accuracy_export.jsonl")
    assert [line["passed"] for line in lines] == [True] * 6 and {line["grader_name"] for line in lines} == {"multiple_choice"}
    overall = summary["accuracy.overall"]
    assert (summary["accuracy"]["graded"], overall["avg"], overall["count"]) == (6, 1, 6)
    assert {tag for tag in summary if tag.startswith("accuracy.task.")} == {
        f"accuracy.task.{task}" for task in source["tasks"]
    }  # fmt: skip
    table = (done.artifacts / "accuracy_results.csv").read_text().splitlines()
    assert table[-1].startswith("OVERALL,6,6,0,1.0000,0,0,")
    registry = Registry.discover()
    assert check(done.artifacts, schemas(registry), registry).faults == []
