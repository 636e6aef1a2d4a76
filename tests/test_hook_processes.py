"""In which process, and how often, each hook is called: what the reference says, recorded in a real run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf.sdk import hooks
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program
from test_strangers import Overlay

OF_FILES = ("aiperf_local_copy", "aiperf_recognise_file")
OF_GUIDES = ("aiperf_where_is", "aiperf_unknown_plugin", "aiperf_unknown_option", "aiperf_unknown_command")
HOOKS = tuple(name for name in vars(hooks) if name.startswith("aiperf_") and name not in (*OF_FILES, *OF_GUIDES))
"""All but those of runs with an input file, and of words that nothing installed has."""
RECORDER = f"""
import json, os, sys
from aiperf import hookimpl
from aiperf.sdk import hooks

def recorder(name):
    def called(self):
        words = sys.orig_argv
        module = words[words.index("-m") + 1] if "-m" in words else "aiperf"
        with open(os.environ["HOOK_RECORD"], "a") as file:
            file.write(json.dumps([name, module, os.getpid(), os.getppid()]) + "\\n")
    return hookimpl(called)

Thing = type("Thing", (), {{name: recorder(name) for name in {HOOKS!r}}})
"""
SOURCE = """
from aiperf import Point, TelemetrySource

class Thing(TelemetrySource):
    interval_s = 0.1

    def sample(self):
        yield Point("water", 2.5, unit="m")
"""
PARENT, BUILDER, WORKER, REDUCER, SOURCE_PROCESS = "parent", "builder", "worker", "reducer", "telemetry"
MODULES = {
    "aiperf.worker.process": WORKER, "aiperf.run.reducer_process": REDUCER,
    "aiperf_companion_telemetry.process": SOURCE_PROCESS,
}  # fmt: skip
REQUESTS, WARMUP = 10, 4


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[str, str, int]]]:
    """(hook, process, pid) of every call in a run of two phases and two workers with one telemetry source."""
    folder = tmp_path_factory.mktemp("recorded")
    overlay = Overlay(folder / "overlay")
    overlay.add("acme-recorder", "hooks", "recorder", code=RECORDER)
    overlay.add("acme-tides", "telemetry", "tides", code=SOURCE)
    aiperf = Program(folder)
    record = folder / "record.jsonl"
    aiperf.environment |= {
        "PYTHONPATH": str(overlay.folder), "AIPERF_CACHE_DIR": str(folder / "cache"), "HOOK_RECORD": str(record),
        "AIPERF_WORKERS": "2",
    }  # fmt: skip
    with running(first_token_ms=100, decode_ms=1, decode_batch_us=0) as simulator:
        done = profile(aiperf, simulator)
        assert done.code == 0, done.err
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    parent = next(pid for hook, _, pid, _ in rows if hook == "aiperf_plan_validated")
    roles = {pid: MODULES.get(module, PARENT if pid == parent else BUILDER) for _, module, pid, _ in rows}
    yield [(hook, roles[pid], pid) for hook, _, pid, _ in rows]


def profile(aiperf: Program, simulator: Simulator) -> Done:
    return aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10, "--osl", 4,
        "--request-rate", 20, "--request-count", REQUESTS, "--warmup-request-count", WARMUP, "--workers-max", 2, "--ui", "none",
    )  # fmt: skip


def test_hooks_are_called_where_and_as_often_as_the_reference_says(calls: list[tuple[str, str, int]]) -> None:
    counts = Counter((hook, role) for hook, role, _ in calls)
    often = {
        ("aiperf_snapshot", PARENT), ("aiperf_batch_reduced", REDUCER), ("aiperf_samples_arrived", SOURCE_PROCESS),
    }  # fmt: skip
    exact = {key: count for key, count in counts.items() if key not in often}
    assert exact == {
        ("aiperf_plan_validated", PARENT): 1,
        ("aiperf_make_schedule", BUILDER): 2,
        ("aiperf_make_transport", WORKER): 2,
        ("aiperf_run_configured", PARENT): 1,
        ("aiperf_request_prepared", WORKER): REQUESTS + WARMUP,
        ("aiperf_phase_started", PARENT): 2,
        ("aiperf_phase_ended", PARENT): 2,
        ("aiperf_reduction_ended", REDUCER): 1,
        ("aiperf_summary_made", PARENT): 1,
        ("aiperf_export", PARENT): 1,
        ("aiperf_run_ended", PARENT): 1,
        ("aiperf_teardown", PARENT): 1,
    }
    assert often <= set(counts) and {hook for hook, _ in counts} == set(HOOKS)
    assert counts["aiperf_samples_arrived", SOURCE_PROCESS] >= 4  # both edges of two phases


def test_each_run_of_a_study_is_torn_down_behind_its_files(tmp_path: Path, simulator: Simulator) -> None:
    overlay = Overlay(tmp_path / "overlay")
    overlay.add("acme-recorder", "hooks", "recorder", code=RECORDER)
    aiperf, record = Program(tmp_path), tmp_path / "record.jsonl"
    aiperf.environment |= {"PYTHONPATH": str(overlay.folder), "HOOK_RECORD": str(record)}
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 10, "--osl", 2,
        "--request-count", 2, "--num-profile-runs", 3, "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    parent = rows[0][2]
    last = ("aiperf_export", "aiperf_run_ended", "aiperf_teardown")
    assert [hook for hook, _, pid, _ in rows if pid == parent and hook in last] == [*last] * 3
    ends = [hook for hook, _, pid, _ in rows if pid == parent and hook in ("aiperf_run_configured", "aiperf_teardown")]
    assert ends == ["aiperf_run_configured", "aiperf_teardown"] * 3


SLEEPER = """
import time

from aiperf import hookimpl

class Thing:
    @hookimpl
    def aiperf_request_prepared(self, request):
        time.sleep(0.08)
"""


def test_a_slow_hook_is_named_by_the_verdict_and_by_a_report(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "overlay")
    overlay.add("acme-sleeper", "hooks", "sleeper", code=SLEEPER)
    idle = SLEEPER.replace("aiperf_request_prepared(self, request)", "aiperf_teardown(self)")
    for name in ("another", "tidy"):  # before it and behind it in the order of names
        overlay.add(f"acme-{name}", "hooks", name, code=idle)
    aiperf = Program(tmp_path)
    aiperf.environment |= {"PYTHONPATH": str(overlay.folder), "AIPERF_CACHE_DIR": str(tmp_path / "cache")}
    with running(first_token_ms=5) as simulator:
        done = profile(aiperf, simulator)
    assert done.code == 0, done.err
    measured = done.json()["measurement"]
    assert (measured["verdict"], measured.get("scope")) == ("suspect", None)
    late = next(reason for reason in measured["reasons"] if reason.startswith("arrivals left"))
    assert "the client could not keep up; hooks:sleeper took" in late
    assert late.endswith("% of a worker's time to prepare requests: make it faster")
    assert aiperf("report", done.artifacts).code == 0
    assert done.json()["measurement"] == measured


WARNER = """
import logging

from aiperf import hookimpl

class Thing:
    @hookimpl
    def aiperf_batch_reduced(self, batch):
        logging.getLogger("acme.warner").warning("%d odd answers, with the key %s", 3, "sk-0123456789")
"""


def test_what_a_plugin_warns_of_in_a_reducer_is_a_warning_of_the_run(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "overlay")
    overlay.add("acme-warner", "hooks", "warner", code=WARNER)
    aiperf = Program(tmp_path)
    aiperf.environment |= {
        "PYTHONPATH": str(overlay.folder), "AIPERF_CACHE_DIR": str(tmp_path / "cache"), "AIPERF_API_KEY": "sk-0123456789",
    }  # fmt: skip
    with running(first_token_ms=1) as simulator:
        done = profile(aiperf, simulator)
    sentence = "acme.warner: 3 odd answers, with the key <redacted>"
    assert done.json()["warnings"].count(sentence) == 1
    assert sentence in done.err
    assert "sk-0123456789" not in (done.artifacts / "logs" / "aiperf.log").read_text()


TALKER = f"""
import logging, os, sys
from aiperf import hookimpl

def talker(name):
    def called(self):
        logging.getLogger("acme.talker").warning("%s has the key %s", name, "sk-0123456789")
        print(name, "prints the key sk-0123456789", file=sys.stderr)
        os.write(2, f"{{name}} was called\\n".encode())
    return hookimpl(called)

Thing = type("Thing", (), {{name: talker(name) for name in {HOOKS!r}}})
"""


def test_what_plugins_log_and_print_has_no_secret_in_any_process(tmp_path: Path) -> None:
    overlay = Overlay(tmp_path / "overlay")
    overlay.add("acme-talker", "hooks", "talker", code=TALKER)
    overlay.add("acme-tides", "telemetry", "tides", code=SOURCE)
    aiperf = Program(tmp_path)
    aiperf.environment |= {
        "PYTHONPATH": str(overlay.folder), "AIPERF_CACHE_DIR": str(tmp_path / "cache"), "AIPERF_API_KEY": "sk-0123456789",
    }  # fmt: skip
    with running(first_token_ms=1) as simulator:
        done = profile(aiperf, simulator)
    assert done.code == 0, done.err
    log = (done.artifacts / "logs" / "aiperf.log").read_text()
    # In a worker, a reducer, the builder, a source's process and the parent.
    for hook in ("request_prepared", "batch_reduced", "make_schedule", "samples_arrived", "plan_validated"):
        assert f"aiperf_{hook} was called" in log + done.err
        assert f"aiperf_{hook} has the key <redacted>" in log + done.err
        assert f"aiperf_{hook} prints the key <redacted>" in log + done.err
    assert "sk-0123456789" not in log + done.err + done.out


def test_hooks_of_the_parent_come_in_the_order_of_the_reference(calls: list[tuple[str, str, int]]) -> None:
    parent = [hook for hook, role, _ in calls if role == PARENT and hook != "aiperf_snapshot"]
    phase = ["aiperf_phase_started", "aiperf_phase_ended"]
    assert parent == [
        "aiperf_plan_validated", "aiperf_run_configured", *phase, *phase, "aiperf_summary_made", "aiperf_export",
        "aiperf_run_ended", "aiperf_teardown",
    ]  # fmt: skip


def test_each_worker_makes_its_transport_once(calls: list[tuple[str, str, int]]) -> None:
    assert len({pid for hook, _, pid in calls if hook == "aiperf_make_transport"}) == 2


def test_the_record_names_no_unknown_process(calls: list[tuple[str, str, int]]) -> None:
    assert {role for _, role, _ in calls} == {PARENT, BUILDER, WORKER, REDUCER, SOURCE_PROCESS}
    assert len({pid for _, role, pid in calls if role == PARENT}) == 1
