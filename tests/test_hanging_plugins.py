"""Plugins that never return, end the process or print what steers a terminal, beside a good run, which ends right."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import busy_table
import pytest
import rogues
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program, Running
from test_strangers import Overlay

EXPORTER = """
import os, threading, time
from aiperf import SummaryExporter

class Thing(SummaryExporter):
    def export(self, summary):
        ACT
        return []
"""
HOOK = """
import os, threading, time
from aiperf import hookimpl

class Thing:
    @hookimpl
    def WHEN(self):
        ACT
"""
COMPANION = """
import time
from aiperf.sdk.companion import Companion

class Thing(Companion):
    def finish(self):
        ACT
"""
ENDPOINT = """
import threading
from aiperf import Capabilities, Endpoint, HttpRequest

class Thing(Endpoint):
    capabilities = Capabilities(path="/v1/completions", streaming=True, produces_tokens=True, tokenizes_input=True)

    def encode(self, turn):
        return HttpRequest(self.path(streaming=True), b'{"model": "m", "prompt": "x", "stream": true, "max_tokens": 3}')

    def decode(self, event):
        ACT
"""
MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - category: endpoints
    name: bad
    summary: Reads nothing.
    capabilities: {path: /v1/completions, streaming: true, produces_tokens: true, tokenizes_input: true}
"""
HANGS = "threading.Lock().acquire(); threading.Event().wait() or time.sleep(3600)"
LOOPS = "while True: pass"
SYNTHETIC = ("--isl", "10", "--osl", "4")
NAMED = "the plugin {0}:bad of acme-bad 0.9 "


@pytest.fixture(scope="module")
def simulator() -> object:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as server:
        yield server


def start(
    folder: Path, simulator: Simulator, category: str, code: str, *, limit: str = "1", data: Sequence[str] = SYNTHETIC
) -> Running:
    overlay = Overlay(folder / "overlay")
    overlay.add("acme-bad", category, "bad", code=code, manifest=MANIFEST if category == "endpoints" else "")
    aiperf = Program(folder)
    aiperf.environment |= {
        "PYTHONPATH": str(overlay.folder), "AIPERF_CACHE_DIR": str(folder / "cache"), "AIPERF_PLUGIN_TIMEOUT": limit,
    }  # fmt: skip
    return aiperf.start(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", *data, "--concurrency", 2,
        "--request-count", 6, "--ui", "none",
    )  # fmt: skip


def said(done: Done) -> str:
    """On the screen; of a reducer's plugins the report tells."""
    return done.err + json.dumps(done.json().get("failures", [])) + done.out


def check_good(done: Done) -> None:
    """All that the others write is there."""
    assert done.json()["request_count"]["avg"] == 6
    assert len(done.lines("profile_export.jsonl")) == 6
    assert (done.artifacts / "profile_export_aiperf.csv").exists()
    assert (done.artifacts / ".aiperf_results_ready.json").exists()


@pytest.mark.parametrize(
    ("category", "code", "exit_code"),
    [
        ("exporters", EXPORTER.replace("ACT", HANGS), 1),
        ("exporters", EXPORTER.replace("ACT", LOOPS), 1),
        ("hooks", HOOK.replace("WHEN", "aiperf_export").replace("ACT", HANGS), 1),
        ("hooks", HOOK.replace("WHEN", "aiperf_teardown").replace("ACT", HANGS), 1),
        ("hooks", HOOK.replace("WHEN", "aiperf_batch_reduced").replace("ACT", HANGS), 1),
        ("companions", COMPANION.replace("ACT", "time.sleep(3600)"), 1),
    ],
    ids=["exporter", "looping exporter", "hook", "last hook", "hook of the reducer", "companion"],
)
def test_what_hangs_is_left_behind_and_named(
    category: str, code: str, exit_code: int, simulator: Simulator, tmp_path: Path
) -> None:
    running = start(tmp_path, simulator, category, code)
    done = running.end()
    check_good(done)
    assert NAMED.format(category) in said(done)
    assert "it did nothing for 1 s, and was left behind" in said(done)
    assert done.code == exit_code, done.err
    assert running.survivors() == []


def test_the_second_interrupt_leaves_a_hanging_exporter_behind(simulator: Simulator, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    code = EXPORTER.replace("ACT", f"open({str(begun)!r}, 'w').close(); {HANGS}")
    running = start(tmp_path, simulator, "exporters", code, limit="600")
    over = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < over:
        time.sleep(0.02)
    time.sleep(0.7)
    running.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    running.process.send_signal(signal.SIGINT)
    done = running.end()
    check_good(done)
    assert "it had not returned at the second Ctrl-C, and was left behind" in done.err
    assert done.code == 130


@pytest.mark.parametrize(
    ("category", "code"),
    [
        ("exporters", "import os; os._exit(0)"),
        ("exporters", EXPORTER.replace("ACT", "os._exit(0)")),
        ("hooks", HOOK.replace("WHEN", "aiperf_plan_validated").replace("ACT", "os._exit(0)")),
        ("hooks", HOOK.replace("WHEN", "aiperf_summary_made").replace("ACT", "os._exit(0)")),
        ("hooks", HOOK.replace("WHEN", "aiperf_batch_reduced").replace("ACT", "os._exit(0)")),
    ],
    ids=["import", "exporter", "hook before the run", "hook", "hook of the reducer"],
)
def test_a_plugin_that_ends_the_process_is_named(category: str, code: str, simulator: Simulator, tmp_path: Path) -> None:
    done = start(tmp_path, simulator, category, code).end()
    check_good(done)
    assert NAMED.format(category) in said(done)
    assert "it called os._exit(0), which would have ended the run" in said(done)


@pytest.mark.parametrize(
    ("act", "cause"), [("threading.Event().wait()", "was left behind"), ("raise SystemExit(7)", "SystemExit: 7")]
)
def test_an_endpoint_that_reads_no_answer_loses_no_run(act: str, cause: str, simulator: Simulator, tmp_path: Path) -> None:
    code = ENDPOINT.replace("ACT", act)
    done = start(tmp_path, simulator, "endpoints", code, data=(*SYNTHETIC, "--endpoint-type", "bad")).end()
    rows = done.lines("profile_export.jsonl")
    assert len(rows) == 6 and all(cause in row["error"]["message"] for row in rows)
    assert NAMED.format("endpoints") in said(done)
    assert done.code == 1


def test_a_data_set_that_ends_its_process_is_named(simulator: Simulator, tmp_path: Path) -> None:
    code = "import os\nimport aiperf\nclass Thing(aiperf.Dataset):\n    def __iter__(self):\n        os._exit(0)\n"
    done = start(tmp_path, simulator, "datasets", code, data=("--custom-dataset-type", "bad")).end()
    assert "the plugin datasets:bad of acme-bad 0.9 " in done.err
    assert "it called os._exit(0), which would have ended the run" in done.err
    assert done.code == 1


def test_what_a_plugin_prints_and_raises_steers_no_terminal(simulator: Simulator, tmp_path: Path) -> None:
    act = r"print('clear\x1b[2J\x9b1m\u202e'); raise ValueError('red\x1b[31m\r\u2066')"
    done = start(tmp_path, simulator, "exporters", EXPORTER.replace("ACT", act)).end()
    check_good(done)
    log = (done.artifacts / "logs" / "aiperf.log").read_text()
    assert "clear" in done.out and "ValueError: red" in done.err
    assert not {"\x1b", "\x9b", "\u202e", "\u2066", "\r"} & {*done.out, *done.err, *log}


def test_a_run_beside_a_package_that_hangs_everywhere_ends_right(simulator: Simulator, tmp_path: Path) -> None:
    rogues.install(tmp_path / "site", "sloth")
    aiperf = Program(tmp_path)
    aiperf.environment |= {
        "PYTHONPATH": str(tmp_path / "site"), "AIPERF_CACHE_DIR": str(tmp_path / "cache"), "AIPERF_PLUGIN_TIMEOUT": "1",
    }  # fmt: skip
    running = aiperf.start(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--custom-dataset-type",
        "sloth", "--accuracy-grader", "sloth", "--ui", "sloth", "--concurrency", 2, "--request-count", 6,
    )  # fmt: skip
    done = running.end()
    check_good(done)
    assert done.code == 1
    for name in ("companions:sloth", "exporters:sloth", "exporters:sloth_rows", "graders:sloth", "hooks:sloth"):
        assert f"the plugin {name} of acme-sloth 9.9.9 failed" in said(done), name
    assert "aiperf_summary_made: RuntimeError: it called os._exit(0)" in said(done)
    assert not {"\x1b", "\x9b", "\u202e"} & {*done.out, *done.err}
    assert running.survivors() == []


@pytest.mark.parametrize("what", ["exporter", "grader", "display"])
def test_a_killed_run_whose_plugin_hangs_leaves_no_process(what: str, tmp_path: Path) -> None:
    assert busy_table.hanging_s(what, tmp_path) < 30
