"""A run from a configuration file is the run that its flags would make."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from aiperf_command_simulate.testing import Simulator
from program import Done, Program, bytes_of
from requirements import ROOT

PAGE = ROOT / "docs" / "config.md"
FLAGS = (
    "--model", "my-model", "--tokenizer", "builtin", "--streaming", "--isl", 200, "--isl-stddev", 20, "--osl", 16,
    "--random-seed", 42, "--request-rate", 50, "--arrival-pattern", "poisson", "--concurrency", 20, "--request-count", 40,
    "--warmup-concurrency", 2, "--warmup-request-count", 4, "--warmup-alone", "--slice-duration", 0.5,
)  # fmt: skip


def example(folder: Path) -> None:
    """The page's file, where its commands look for it."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (folder / "run.yaml").write_text(text)


def commands() -> list[str]:
    (text,) = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return text.splitlines()  # type: ignore[no-any-return]


def due_times(done: Done) -> list[int]:
    """When the arrivals of profiling are due, in ns behind the first; the ledger has them in order of their ends."""
    due = sorted(row["due_ns"] for row in done.lines("profile_export_arrivals.jsonl") if row["phase"] == "profiling")
    return [at - due[0] for at in due]


def used(done: Done) -> set[tuple[str, str]]:
    """Category and name of each plugin that the results name."""
    return {(plugin["category"], plugin["name"]) for plugin in done.json()["plugins"]["used"]}


def test_the_commands_of_the_page_run(aiperf: Program, simulator: Simulator) -> None:
    example(aiperf.folder)
    aiperf.environment["SERVER"] = simulator.url
    first, second = commands()
    done = aiperf.line(first)
    assert done.code == 0, done.err
    results, bodies = done.json(), (done.artifacts / "inputs.json").read_text()
    due = due_times(done)
    assert results["goodput"]["avg"] > 0 and (done.artifacts / "profile_export_aiperf_timeslices.csv").exists()
    assert "CLI Command: aiperf profile --config run.yaml" in done.out
    assert ("configurations", "yaml") in used(done)
    seen = sorted(simulator.truth()["requests"], key=lambda row: row["received_mono_ns"])
    assert len(seen) == 44 and all(row["completion_tokens"] == 16 for row in seen)

    typed = aiperf("profile", "--url", simulator.url, *FLAGS)
    assert typed.code == 0, typed.err
    assert (typed.artifacts / "inputs.json").read_text() == bodies
    assert due_times(typed) == due
    assert not [name for category, name in used(typed) if category == "configurations"]
    assert typed.json()["input_config"]["phases"] == results["input_config"]["phases"]

    faster = aiperf.line(second)
    assert faster.code == 0, faster.err
    (summary,) = (aiperf.folder / "faster").glob("*aiperf.json")
    assert '"rate": 80' in summary.read_text()


def test_a_warmup_without_its_own_rate_is_a_burst(aiperf: Program, simulator: Simulator) -> None:
    (aiperf.folder / "run.yaml").write_text(
        f"benchmark:\n  model: m\n  tokenizer: builtin\n  endpoint: {{url: '{simulator.url}'}}\n"
        "  dataset: {isl: 20, osl: 4}\n"
        "  warmup: {type: concurrency, concurrency: 5, requests: 10}\n  profiling: {type: constant, rate: 50, requests: 5}\n"
    )
    done = aiperf("profile", "-f", "run.yaml", "--ui", "none")
    assert done.code == 0, done.err
    paced = [(row["phase"], "due_ns" in row) for row in done.lines("profile_export_arrivals.jsonl")]
    assert sorted(paced) == [("profiling", True)] * 5 + [("warmup", False)] * 10


def test_a_secret_comes_from_the_environment_and_goes_nowhere(aiperf: Program, simulator: Simulator) -> None:
    aiperf.environment["MY_SERVERS_KEY"] = "sk-hush-hush"
    (aiperf.folder / "run.yaml").write_text(
        f"benchmark:\n  model: m\n  tokenizer: builtin\n  endpoint: {{url: '{simulator.url}', apiKey: '${{MY_SERVERS_KEY}}'}}\n"
        "  dataset: {isl: 20, osl: 4}\n  phases: {type: concurrency, requests: 3}\ndisabled: [exporters:csv]\n"
    )
    done = aiperf("profile", "--config", "run.yaml", "--ui", "none", "--export-level", "raw")
    assert done.code == 0, done.err
    assert not list(done.artifacts.glob("*.csv")) and list(done.artifacts.glob("*aiperf.json"))
    held = [path for path in done.artifacts.rglob("*") if path.is_file() and b"sk-hush-hush" in bytes_of(path)]
    assert held == [] and "sk-hush-hush" not in done.out + done.err


def test_a_mistake_is_named_by_its_line_and_nothing_is_sent(aiperf: Program, simulator: Simulator) -> None:
    (aiperf.folder / "run.yaml").write_text(
        f"benchmark:\n  model: m\n  endpoint:\n    url: '{simulator.url}'\n    timeout: soon\n    tmeout: 3\n"
        "  phases: {type: concurrency, concurrency: 0, prefillConcurrency: 2}\n"
    )
    done = aiperf("profile", "--config", "run.yaml")
    assert done.code == 2
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert errors == [
        "error: benchmark.endpoint.tmeout (run.yaml:6): there is no such key",
        "error: benchmark.endpoint.timeout (run.yaml:5): 'soon' is not a number",
        "error: benchmark.phases.concurrency (run.yaml:7): 0 is not allowed; must be at least 1",
    ]
    assert simulator.summary()["requests"] == 0
    missing = aiperf("profile", "--config", "none.yaml")
    assert missing.code == 1
    assert missing.err == "error: --config none.yaml can't be read: No such file or directory\n  give the path of a YAML file\n"


def test_a_warmup_replays_recorded_times_before_a_burst(aiperf: Program, simulator: Simulator) -> None:
    rows = [{"timestamp": 60 * n, "input_length": 20 + n, "output_length": 4, "hash_ids": [n]} for n in range(6)]
    (aiperf.folder / "trace.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (aiperf.folder / "run.yaml").write_text(
        f"benchmark:\n  model: m\n  tokenizer: builtin\n  endpoint: {{url: '{simulator.url}'}}\n"
        "  dataset: {type: file, path: trace.jsonl, format: mooncake_trace}\n"
        "  warmup: {type: fixed_schedule, endOffset: 180}\n  profiling: {type: concurrency, concurrency: 2, requests: 6}\n"
    )
    done = aiperf("profile", "-f", "run.yaml", "--ui", "none")
    assert done.code == 0, done.err
    lengths = [row["prompt_tokens"] for row in simulator.truth()["requests"]]
    assert len(lengths) == 10 and not Counter(lengths[:4]) - Counter(lengths[4:]), "the warmup's four, then all six"
    arrivals = [row for row in done.lines("profile_export_arrivals.jsonl") if row["phase"] == "warmup"]
    first = min(row["due_ns"] for row in arrivals)
    assert sorted(row["due_ns"] - first for row in arrivals) == [60_000_000 * n for n in range(4)]
