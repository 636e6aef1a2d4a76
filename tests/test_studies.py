"""Repeats and sweeps, with the whole program: what the server saw, where the files lie, what is continued."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import aiperf
import ledger
import pytest
from aiperf.parts.processes import SideProcess
from aiperf.parts.samples import read_samples, sample_path
from aiperf.results import open_study
from aiperf.sdk.series import Sample, whole_samples
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program


@pytest.fixture
def study(tmp_path: Path, simulator: Simulator) -> Any:
    """Runs ``aiperf profile`` with more words, into ``out``."""
    ledger.install(tmp_path / "site")
    program = Program(tmp_path, site=tmp_path / "site")

    def run(*words: str | float, **variables: str) -> Done:
        program.environment |= variables
        return program(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 20, "--osl", 4,
            "--request-count", 4, "--extra-inputs", "ignore_eos:true", "--export-level", "summary",
            "--artifact-dir", tmp_path / "out", *words,
        )  # fmt: skip

    return run


def manifests(directory: Path) -> dict[str, dict[str, Any]]:
    """The manifests of all runs, by their directory."""
    paths = sorted(directory.rglob("run_manifest.json"))
    return {str(path.parent.relative_to(directory)): json.loads(path.read_text()) for path in paths}


def told(done: Done) -> dict[str, Any]:
    about: dict[str, Any] = json.loads((done.artifacts / "ledger.json").read_text())
    return about


def test_cells_and_trials_have_their_order_seeds_and_places(study: Any, simulator: Simulator) -> None:
    words = ("--concurrency", "1,2", "--num-profile-runs", 2, "--warmup-request-count", 3, "--no-sweep-table")
    done = study(*words)
    assert done.code == 0, done.err
    found = manifests(done.artifacts)
    places = ("trial_0001/concurrency_1", "trial_0001/concurrency_2", "trial_0002/concurrency_1", "trial_0002/concurrency_2")
    assert list(found) == [f"profile_runs/{place}" for place in places]
    assert [each["seed"] for each in found.values()] == [42, 43, 42, 43]
    assert simulator.summary()["requests"] == 2 * (3 + 4) + 2 * 4, "a cell warms up in its first run alone"
    assert told(done)["heard"] == 4 and list(told(done)["runs"]) == [
        "concurrency_1/trial_0001", "concurrency_2/trial_0001", "concurrency_1/trial_0002", "concurrency_2/trial_0002",
    ]  # fmt: skip
    again = study(*words)
    assert again.code == 0 and again.err.count("measured before") == 4
    assert simulator.summary()["requests"] == 22, "the same command runs nothing again"
    assert manifests(done.artifacts) == found and told(done)["heard"] == 4


def test_a_cell_sends_what_a_run_of_its_seed_sends(tmp_path: Path) -> None:
    """Judged by what the server received: as many turns, the same texts."""
    options: dict[str, Any] = {
        "model": "m", "streaming": True, "tokenizer": "builtin", "isl": 20, "osl": 4, "conversation_num": 4,
        "conversation_turn_mean": 2,
    }  # fmt: skip

    def received(server: Simulator) -> list[str]:
        requests = [row["body"] for row in server.truth()["requests"] if row["body"]]
        server.reset()
        return sorted(json.dumps(json.loads(body)["messages"][-1]) for body in requests)

    with running(truth_bodies=True, first_token_ms=5, decode_ms=1) as server:
        alone = []
        for concurrency, seed in ((1, 42), (2, 43), (3, 44)):
            aiperf.profile(
                url=server.url, concurrency=concurrency, random_seed=seed, artifact_dir=tmp_path / f"alone{seed}", **options
            )
            alone.append(received(server))
        cells: list[list[str]] = []
        aiperf.sweep(
            url=server.url, concurrency=[1, 2, 3], artifact_dir=tmp_path / "cells",
            on_cell=lambda run: cells.append(received(server)), **options,
        )  # fmt: skip
    assert cells == alone and [len(each) for each in cells] == [8, 8, 8]
    assert cells[0] != cells[1], "each cell has its own seed"


def test_nothing_of_a_study_lies_inside_a_load(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=5) as server:
        study = aiperf.sweep(
            url=server.url, model="m", streaming=True, tokenizer="builtin", isl=20, osl=30, request_count=4, concurrency=[1, 2],
            num_profile_runs=2, artifact_dir=tmp_path,
        )  # fmt: skip
    runs = [run.directory for run in study.runs]
    times = [json.loads((run / "journal" / "run-times.json").read_text()) for run in runs]
    loads = [(each.pop("begin_ns"), each.pop("last_answer_ns")) for each in times]
    instants = [instant for each in times for instant in each.values()]
    offset_ns = _offset_ns(runs[0])
    written = [path for path in tmp_path.rglob("*") if path.is_file() and not {"journal", "logs"} & set(path.parts)]
    instants += [path.stat().st_mtime_ns - offset_ns for path in written]
    tick_ns = 10_000_000  # a file has the time of the last tick
    inside = [instant for begin_ns, end_ns in loads for instant in instants if begin_ns < instant < end_ns - tick_ns]
    assert len(loads) == 4 and min(end_ns - begin_ns for begin_ns, end_ns in loads) > 30_000_000
    assert len(written) > 40 and len(instants) > 60 and not inside


def _offset_ns(run: Path) -> int:
    """How far the wall clock is before the monotonic one."""
    clock = json.loads((run / "journal" / "run.json").read_text())["clock"]
    return int(clock["started_wall_ns"]) - int(clock["started_mono_ns"])


def test_what_is_missing_runs_and_the_rest_stays(study: Any, simulator: Simulator) -> None:
    words = ("--concurrency", "1,2,3,4")
    done = study(*words)
    found = manifests(done.artifacts)
    cells = [done.artifacts / f"concurrency_{level}" for level in (1, 2, 3, 4)]
    (cells[0] / ".aiperf_results_ready.json").unlink()
    (cells[0] / "profile_export_aiperf.json").unlink()
    (cells[1] / "run_manifest.json").unlink()
    (cells[2] / "run_manifest.json").write_text('{"label": "concur')
    simulator.reset()
    again = study(*words)
    assert again.code == 0, again.err
    assert simulator.summary()["requests"] == 4, "one cell was half"
    assert (cells[0] / "profile_export_aiperf.json").exists(), "made of its journal"
    assert (done.artifacts / "concurrency_2.half").is_dir() and "it is in concurrency_2.half" in again.err
    assert "the journal is whole, and the run counts" in again.err
    now = manifests(done.artifacts)
    same = [name for name in found if now[name]["run_id"] == found[name]["run_id"]]
    assert same == ["concurrency_1", "concurrency_3", "concurrency_4"]


def test_other_options_are_refused_with_the_difference(study: Any, simulator: Simulator) -> None:
    assert study("--concurrency", "1,2").code == 0
    simulator.reset()
    other = study("--concurrency", "1,4", "--goodput", "request_latency:100")
    assert other.code == 1 and simulator.summary()["requests"] == 0
    assert "values of profiling.concurrency was [1,2], is [1,4]" in other.err
    assert "--goodput was not given, is request_latency:100" in other.err and "--no-resume" in other.err
    aside = study("--concurrency", "1,4", "--no-resume")
    assert aside.code == 0 and simulator.summary()["requests"] == 8
    assert (aside.artifacts / "set_aside.earlier" / "concurrency_2" / "run_manifest.json").exists()


def test_a_cell_that_fails_leaves_the_others_whole(study: Any) -> None:
    done = study("--variant", "good: concurrency=1", "--variant", "bad: endpoint=/nowhere", "--variant", "last: osl=2")
    assert done.code == 1
    assert "bad  failed: no request succeeded" in done.err and "1 of 3 runs failed: bad" in done.err
    runs = told(done)["runs"]
    assert runs["good/trial_0001"] == runs["last/trial_0001"] == 4 and "no request succeeded" in runs["bad/trial_0001"]
    assert "good" in done.out and "last" in done.out


@pytest.mark.parametrize("value", ["api-key=sk-SECRET1234", "header=X-Key: sk-SECRET1234", "url=http://u:sk-SECRET1234@h"])
def test_a_secret_can_not_differ_between_cells(study: Any, tmp_path: Path, value: str) -> None:
    done = study("--variant", f"a: {value}", "--variant", "b: concurrency=2")
    assert done.code == 2 and "has a secret, and can't differ between cells" in done.err
    assert "SECRET" not in done.err + done.out and not (tmp_path / "out").exists()


def test_variants_change_what_a_file_computes(study: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text('variables: {n: 1}\nbenchmark: {profiling: {concurrency: "{{ n }}"}}\n')
    wrong = study("--config", path, "--variant", "a: variables.n=0", "--variant", "b: request-count=6")
    assert wrong.code and "0 is not allowed" in wrong.err and "error: a: " in wrong.err, wrong.err


def test_a_filter_of_a_file_narrows_the_best_cells(study: Any, tmp_path: Path) -> None:
    filters = "[{metricTag: time_to_first_token, op: lt, threshold: 0.0001}]"
    path = tmp_path / "run.yaml"
    path.write_text(f"sweep:\n  type: grid\n  parameters: {{concurrency: [1, 2]}}\n  slaFilters: {filters}\nbenchmark: {{}}\n")
    done = study("--config", path)
    assert done.code == 0 and "0 of 2 cells hold time_to_first_token:p95:lt:0.0001" in done.out, done.err
    found = json.loads((done.artifacts / "sweep_aggregate" / "profile_export_aiperf_sweep.json").read_text())
    assert found["metadata"]["sla_constraints"]["infeasible_count"] == 2 and found["pareto_optimal"] == []
    assert [str(each) for each in open_study(done.artifacts).study.sla_filters] == ["time_to_first_token:p95:lt:0.0001"]
    path.write_text(path.read_text().replace("op: lt", "op: less"))
    wrong = study("--config", path)
    assert wrong.code == 2 and "(run.yaml:4): 'time_to_first_token:p95:less:0.0001' must be TAG:STAT:OP:NUMBER" in wrong.err


def contents(directory: Path) -> dict[str, bytes]:
    """All files that are made of journals."""
    paths = (path for path in directory.rglob("*") if path.is_file() and not {"journal", "logs"} & set(path.parts))
    found = {str(path.relative_to(directory)): path for path in paths if not path.name.endswith((".lock", "_manifest.json"))}
    return {name: path.read_bytes() for name, path in found.items() if path.name != "inputs.json"}


def test_a_report_makes_the_same_files_of_the_journals(study: Any, tmp_path: Path, simulator: Simulator) -> None:
    done = study("--variant", "one: concurrency=1", "--variant", "two: request-count=3", "--num-profile-runs", 2,
                 "--variant", "none: url=localhost:1", "--parameter-sweep-mode", "independent")  # fmt: skip
    assert done.code == 1 and "none/trial_0001  failed" in done.err
    before, sent = contents(done.artifacts), simulator.summary()["requests"]
    for name in before:
        (done.artifacts / name).unlink()
    report = Program(tmp_path, site=tmp_path / "site")
    again = report("report", "out")
    assert again.code == 0, again.err
    assert contents(done.artifacts) == before and simulator.summary()["requests"] == sent
    table = done.out[done.out.index("cell ") : done.out.index("Aggregate of")]
    assert table in again.out and "none" in table
    other = report("report", "out", "--output", "other")
    assert other.code == 0 and contents(tmp_path / "other").keys() <= before.keys()
    (done.artifacts / "study_manifest.json").unlink()
    lost = report("report", "out")
    assert lost.code == 1 and "no study_manifest.json" in lost.err
    assert "aiperf report out/one/profile_runs/trial_0001" in lost.err


def test_an_exporter_that_raises_behind_the_last_run_is_named(study: Any) -> None:
    done = study("--num-profile-runs", 2, **{ledger.FAILS: "1"})
    assert done.code == 1 and "the ledger is full" in done.err and "exporters:ledger" in done.err
    assert sorted(manifests(done.artifacts)) == ["profile_runs/run_0001", "profile_runs/run_0002"]
    assert (done.artifacts / "profile_runs" / "run_0002" / "profile_export_aiperf.json").exists()


@pytest.mark.parametrize(("words", "said"), [
    (("--concurrency", "1,0"), "concurrency_0: --concurrency: 0 is not allowed"),
    (("--concurrency", "1,1"), "1 stands twice"),
    (("--concurrency", "1,,2"), "has an empty value"),
    (("--concurrency", "1,2,3", "--max-cells", "2"), "the sweep has 3 cells, and --max-cells allows 2"),
    (("--confidence-level", "0.9"), "--confidence-level needs --num-profile-runs of 2 or more"),
    (("--profile-run-cooldown-seconds", "1"), "--profile-run-cooldown-seconds needs"),
    (("--no-set-consistent-seed",), "--no-set-consistent-seed needs"),
    (("--sweep-type", "grid"), "--sweep-type needs several values"),
    (("--concurrency", "1,2", "--vary-seed-per-trial"), "--vary-seed-per-trial needs --num-profile-runs"),
    (("--num-profile-runs", "3", "--convergence-mode", "cv"), "--convergence-mode needs --convergence-metric: without it no"),
    (
        ("--num-profile-runs", "3", "--convergence-metric", "request_latency", "--convergence-mode", "distribution",
         "--convergence-stat", "p50"), "--convergence-stat is of no use with --convergence-mode distribution",
    ),
    (("--num-profile-runs", "11"), "--num-profile-runs: 11 is not allowed; must be at most 10"),
    (("--num-profile-runs", "2", "--objective", "request_latency"), "--objective needs several values"),
    (("--concurrency", "1,2", "--objective", "request_latency"), "must be TAG:STAT:max or TAG:STAT:min"),
    (("--concurrency", "1,2", "--parameter-sweep-same-seed"), "--parameter-sweep-same-seed needs --random-seed"),
    (("--concurrency", "1,2", "--variant", "a: osl=2", "--variant", "b: osl=3"), "exclude each other"),
    (("--variant", "a: osl=2"), "is given once"),
    (("--variant", "a: osl=2", "--variant", "b: ols=3"), "there is no option 'ols'"),
    (("--concurrency", "1,2", "--sweep-type", "nonsense"), "--sweep-type: no planner plugin is called 'nonsense'"),
])  # fmt: skip
def test_a_sentence_names_the_option_that_is_wrong(study: Any, simulator: Simulator, words: Any, said: str) -> None:
    done = study(*words)
    assert done.code in (1, 2) and said in done.err, done.err
    assert simulator.summary()["requests"] == 0 and "Traceback" not in done.err


def test_a_dry_run_lists_the_runs_and_sends_nothing(study: Any, simulator: Simulator) -> None:
    words = ("--concurrency", "1,2", "--num-profile-runs", 2, "--profile-run-cooldown-seconds", 30, "--dry-run")
    done = study(*words)
    assert done.code == 0 and "4 runs, below" in done.out and "concurrency_2/trial_0002" in done.out
    assert "30 s are known of loads and pauses" in done.out and "POST" in done.out
    about = json.loads(study(*words, "--json").out)
    assert [each["seed"] for each in about["study"]["runs"]] == [42, 43, 42, 43]
    assert about["first_run"]["load"][0]["requests"] == 4
    assert simulator.summary()["requests"] == 0 and not done.artifacts.exists()


def test_python_gets_each_run_and_continues(
    tmp_path: Path, study: Any, monkeypatch: pytest.MonkeyPatch, simulator: Simulator
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    heard: list[Any] = []

    def swept() -> Any:
        return aiperf.sweep(
            "--streaming --isl 20 --osl 4 --no-server-metrics", model="m", url=simulator.url, tokenizer="builtin",
            request_count=4, concurrency=[1, 2], artifact_dir=tmp_path / "swept", on_cell=heard.append,
        )  # fmt: skip

    study = swept()
    assert study.complete and [run.cell.parameters for run in study.runs] == [{"concurrency": 1}, {"concurrency": 2}]
    assert [run.summary.valid for run in study.runs] == [4, 4]
    assert study.runs[1].summary.directory == str(tmp_path / "swept" / "concurrency_2")
    shutil.rmtree(tmp_path / "swept" / "concurrency_2")
    assert [run.resumed for run in swept().runs] == [True, False] and len(heard) == 4
    with pytest.raises(aiperf.UsageError, match="concurrency asks for several runs"):
        aiperf.profile(model="m", concurrency=[1, 2])


def test_a_run_with_the_data_set_of_another_stands_alone(study: Any, tmp_path: Path) -> None:
    done = study("--concurrency", "1,2", "--random-seed", 7, "--parameter-sweep-same-seed")
    assert done.code == 0, done.err
    first, second = (done.artifacts / f"concurrency_{level}" / "journal" / "dataset.bodies" for level in (1, 2))
    assert first.stat().st_ino == second.stat().st_ino, "equal data sets are one file in two directories"
    shutil.rmtree(done.artifacts / "concurrency_1")
    for command in ("report", "validate"):
        alone = Program(tmp_path)(command, done.artifacts / "concurrency_2")
        assert alone.code == 0, alone.out + alone.err


def test_distributions_of_runs_are_compared(simulator: Simulator, tmp_path: Path) -> None:
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 20, "--osl", 4,
        "--request-count", 4, "--artifact-dir", tmp_path / "out", "--num-profile-runs", 3,
        "--convergence-metric", "request_latency", "--convergence-mode", "distribution", "--convergence-min-runs", 2,
    )  # fmt: skip
    assert done.code == 0, done.err
    (collated,) = done.artifacts.rglob("*_collated.json")
    runs = json.loads(collated.read_text())["metrics"]["request_latency"]["per_run"]
    assert len(runs) >= 2 and {run["count"] for run in runs} == {4}


def test_a_file_and_a_command_line_give_the_same_tree(study: Any, simulator: Simulator, tmp_path: Path) -> None:
    def shape(folder: Path) -> dict[str, str]:
        """The files, without what differs between two runs by itself, and how many requests each run sent."""
        files = sorted(path for path in folder.rglob("*") if path.is_file() and "journal" not in path.parts)
        found = {str(path.relative_to(folder)): "" for path in files}
        for path in folder.rglob("profile_export_aiperf.json"):
            summary = json.loads(path.read_text())
            seed = summary["run_info"]["random_seed"]
            found[str(path.relative_to(folder))] = f"{summary['request_count']['avg']:g} requests, seed {seed}"
        return found

    line = study("--concurrency", "1,2", "--num-profile-runs", 2)
    assert line.code == 0, line.err
    (tmp_path / "run.yaml").write_text(json.dumps({
        "schemaVersion": "2.0", "multiRun": {"numRuns": 2}, "sweep": {"type": "grid", "parameters": {"concurrency": [1, 2]}},
        "benchmark": {
            "model": "m", "endpoint": {"url": simulator.url, "streaming": True, "extra": {"ignore_eos": True}},
            "tokenizer": {"name": "builtin"}, "dataset": {"type": "synthetic", "prompts": {"isl": 20, "osl": 4}},
            "profiling": {"type": "concurrency", "requests": 4}, "artifacts": {"records": False},
        },
    }))  # fmt: skip
    done = Program(tmp_path)("profile", "--config", tmp_path / "run.yaml", "--artifact-dir", tmp_path / "filed")
    assert done.code == 0, done.err
    own = shape(line.artifacts)
    assert own.pop("ledger.json") == "" and len(own) > 20
    assert shape(tmp_path / "filed") == own


def test_a_cell_waits_until_the_servers_queue_is_empty(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=5, decode_batch_us=0, metrics="vllm") as server:
        body = json.dumps({"model": "m", "prompt": "Count.", "max_tokens": 1200, "ignore_eos": True, "stream": True}).encode()
        foreign = Request(f"{server.url}/v1/completions", body, {"Content-Type": "application/json", "X-Request-ID": "foreign"})
        answer = urlopen(foreign, timeout=60)
        answer.readline()  # it is being worked on
        study = aiperf.sweep(
            "--streaming --isl 20 --osl 4", model="m", url=server.url, tokenizer="builtin", request_count=4,
            concurrency=[1, 2], artifact_dir=tmp_path / "out",
        )  # fmt: skip
        answer.read()
        rows = server.truth()["requests"]
    assert study.complete and [run.summary and run.summary.valid for run in study.runs] == [4, 4]
    (ended_ns,) = (row["ended_mono_ns"] for row in rows if row["request_id"] == "foreign")
    later = sorted(row["received_mono_ns"] for row in rows)[-4:]
    assert ended_ns <= later[0], "the second cell begins behind the request that others sent"


def test_a_killed_sampling_process_is_replaced_for_the_next_cell(
    tmp_path: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[SideProcess] = []

    class Seen(SideProcess):
        def __init__(self, *words: Any, **options: Any) -> None:
            super().__init__(*words, **options)
            made.append(self)

    def kill(run: Any) -> None:
        if len(made) == 1:
            with suppress(ProcessLookupError):  # it was too slow at its end
                os.kill(made[0].pid, signal.SIGKILL)

    monkeypatch.setattr("aiperf_companion_telemetry.SideProcess", Seen)
    study = aiperf.sweep(
        f"--streaming --isl 20 --osl 4 --server-metrics {simulator.url}/metrics", model="m", url=simulator.url,
        tokenizer="builtin", request_count=4, concurrency=[1, 2, 3], artifact_dir=tmp_path / "out", on_cell=kill,
    )  # fmt: skip
    assert len(made) >= 2, "one that is too slow at its end is replaced, too"
    assert [run.summary and run.summary.valid for run in study.runs] == [4, 4, 4]
    cells = [tmp_path / "out" / f"concurrency_{number}" for number in (1, 2, 3)]
    with_samples = [cell for cell in cells if edges(cell)]
    assert with_samples, "a busy machine may miss the samples of a short cell, and not of all"
    assert [cell for cell in with_samples if not (cell / "server_metrics_export.json").exists()] == []


def edges(cell: Path) -> set[str]:
    """Edges of phases at which the cell has samples."""
    path = sample_path(cell / "journal", 0)
    lines = whole_samples(read_samples(path)) if path.exists() else ()
    return {each.moment.edge for each in lines if isinstance(each, Sample) and each.moment.edge is not None}
