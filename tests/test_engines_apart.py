"""A site engine with a process of its own, which hangs, dies and fails: the run goes on without it, or says so."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from aiperf import Run
from aiperf_command_simulate.testing import Simulator
from annex_runs import ledger
from program import Done, Program, Running, variables_of, wait_for
from rogues import install

ROOMS = ("attic", "barn")
HERMIT = "the plugin engines:hermit of acme-hermit 1.0"
LOAD = ("--request-rate", 40, "--request-count", 20)


@pytest.fixture
def aiperf(tmp_path: Path) -> Program:
    install(tmp_path / "packages", "hermit")
    folder = tmp_path / "runs"
    folder.mkdir()
    for room in ROOMS:
        (folder / room).mkdir()
    program = Program(folder, site=tmp_path / "packages")
    program.environment["AIPERF_PLUGIN_TIMEOUT"] = "3"
    return program


def start(aiperf: Program, simulator: Simulator, *more: str | int, whim: str = "") -> Running:
    return aiperf.start(
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 30, "--osl", 4, "--ui", "none",
        "--artifact-dir", "run", "--engine", "hermit", "--hermit-rooms", ",".join(ROOMS), *(more or LOAD),
        *(("--hermit-whim", whim) if whim else ()),
    )  # fmt: skip


def end(aiperf: Program, run: Running) -> Done:
    done = run.end()
    assert not any("engine_process" in command for command in run.survivors()), "the engine outlived the run"
    wait_for(lambda: run.survivors() == [] and sites(aiperf) == [])  # a site ends by itself where its engine was killed
    return Done(done.code, done.out, done.err, aiperf.folder / "run")


def sites(aiperf: Program) -> list[int]:
    """Processes of the sites."""
    places = [f"TMPDIR={(aiperf.folder / room).absolute()}".encode() for room in ROOMS]
    numbers = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    return [pid for pid in numbers if any(place in variables_of(pid) for place in places)]


def engine_of(run: Running) -> int:
    (pid,) = [pid for pid, command in run.processes().items() if "aiperf.sites.engine_process" in command]
    return pid


def test_an_engine_in_its_own_process_has_sites_like_any_other(aiperf: Program, simulator: Simulator) -> None:
    run = start(aiperf, simulator)
    run.hears("Phase profiling (profiling) started")
    pid = engine_of(run)
    done = end(aiperf, run)
    assert done.code == 0, done.err
    assert {row["x_request_id"] for row in ledger(done)} == {row["request_id"] for row in simulator.truth()["requests"]}
    assert Counter(row["site"] for row in ledger(done)) == {"attic": 10, "barn": 10}
    assert [list((aiperf.folder / room).iterdir()) for room in ROOMS] == [[], []], "the sites left files"
    assert (done.artifacts / "logs" / "engine.log").read_text() == f"the hermit is {pid}\n", "it printed elsewhere"


@pytest.mark.parametrize(("whim", "said"), [
    ("hang:host", f"{HERMIT} does not say within 3 s where the run listens\n  AIPERF_PLUGIN_TIMEOUT=SECONDS gives"),
    ("die:host", f"the process of {HERMIT} was killed by SIGKILL before it said where the run listens\n  "),
    ("raise:host", f"{HERMIT} can't say where the run listens: ZeroDivisionError: by the hermit\n"),
    ("refuse:host", "the hermit wants to be alone\n  come back tomorrow\n"),
    pytest.param("hang:address", f"{HERMIT} does not say within 3 s where site 0 connects\n", marks=pytest.mark.long),
    ("die:address", f"the process of {HERMIT} was killed by SIGKILL before it said where site 0 connects\n  "),
    ("die:start", f"site attic: its command exited with 1 (the process of {HERMIT} was killed by SIGKILL)"),
    pytest.param(
        "raise:start", "site barn: its command exited with 1 (ZeroDivisionError: by the hermit)", marks=pytest.mark.long
    ),
    ("refuse:start", "site barn: its command exited with 1 (the hermit wants to be alone; come back tomorrow)"),
])  # fmt: skip
def test_an_engine_that_fails_before_the_load_is_a_sentence(
    aiperf: Program, simulator: Simulator, whim: str, said: str
) -> None:
    done = end(aiperf, start(aiperf, simulator, whim=whim))
    assert done.code == 1 and f"error: {said}" in done.err, done.err
    assert "Traceback" not in done.err and simulator.summary()["requests"] == 0


@pytest.mark.long
def test_a_command_that_never_begins_is_named(aiperf: Program, simulator: Simulator) -> None:
    aiperf.environment["AIPERF_SERVICE_START_TIMEOUT"] = "3"
    done = end(aiperf, start(aiperf, simulator, whim="hang:start"))
    assert done.code == 1 and "barn" in done.err and simulator.summary()["requests"] == 0, done.err


@pytest.mark.long
@pytest.mark.parametrize("whim", ["hang:wait", "hang:kill"])
def test_an_engine_that_hangs_beside_the_load_changes_nothing(aiperf: Program, simulator: Simulator, whim: str) -> None:
    done = end(aiperf, start(aiperf, simulator, whim=whim))
    assert done.code == 0, done.err
    assert Counter(row["outcome"] for row in ledger(done)) == {"completed": 20}


def test_sites_are_lost_with_their_engine_and_what_came_counts(aiperf: Program, simulator: Simulator) -> None:
    run = start(aiperf, simulator, "--request-rate", 40, "--request-count", 400)
    run.hears("Phase profiling (profiling) started")
    columns = [aiperf.folder / "run" / "journal" / f"columns-{site}.0" for site in range(len(ROOMS))]
    wait_for(lambda: all(path.exists() and path.stat().st_size > 0 for path in columns))
    os.kill(engine_of(run), signal.SIGKILL)
    done = end(aiperf, run)
    lost = f"its command exited with 1 (the process of {HERMIT} was killed by SIGKILL)"
    assert done.code == 1 and f"results are partial: the site attic was lost: {lost}" in done.last_words, done.err
    rows = Counter(row["outcome"] for row in ledger(done))
    assert sum(rows.values()) == 400 and 0 < rows["completed"] <= simulator.summary()["requests"]


@pytest.mark.long
def test_an_engine_ends_with_its_run_that_was_killed(aiperf: Program, simulator: Simulator) -> None:
    run = start(aiperf, simulator, "--request-rate", 40, "--request-count", 4000, whim="hang:wait")
    run.hears("Phase profiling (profiling) started")
    run.process.kill()
    run.process.communicate()
    wait_for(lambda: run.survivors() == [] and sites(aiperf) == [])


def test_the_contract_runs_an_engine_as_a_run_does(aiperf: Program) -> None:
    done = aiperf("plugins", "validate", "acme-hermit")
    assert done.code == 0 and "1 plugin checked, no fault" in done.out and "not checked" not in done.err, done.out + done.err
    manifest = aiperf.folder.parent / "packages" / "acme_hermit" / "aiperf.yaml"
    manifest.write_text(manifest.read_text().replace(":HermitContract", ":DyingHermitContract"))
    fails = aiperf("plugins", "validate", "acme-hermit")
    assert fails.code == 1 and "engines:hermit (acme-hermit 1.0): killing a site ends no other" in fails.out + fails.err


def own_engines() -> list[int]:
    """Processes of engines that this process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"aiperf.sites.engine_process" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


@pytest.mark.long
def test_an_engine_serves_the_plans_of_a_run_and_is_replaced_where_it_died(
    aiperf: Program, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = aiperf.folder.parent / "packages"
    monkeypatch.chdir(aiperf.folder)
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(aiperf.folder.parent / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(packages))
    monkeypatch.syspath_prepend(packages)
    seen = []
    with Run() as run:
        for name in ("one", "two", "three"):
            summary = run.profile(
                model="m", url=simulator.url, tokenizer="builtin", isl=10, osl=2, request_rate=60, request_count=12,
                engine="hermit", hermit_rooms=ROOMS, artifact_dir=name,
            )  # fmt: skip
            assert summary.valid == 12
            seen += own_engines()
            if name == "two":
                os.kill(seen[-1], signal.SIGKILL)
    assert len(seen) == 3 and seen[0] == seen[1] != seen[2] and own_engines() == []
    assert len(simulator.truth()["requests"]) == 36
    wait_for(lambda: sites(aiperf) == [])
