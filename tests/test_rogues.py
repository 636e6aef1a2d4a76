"""Packages that behave as badly as they can: the run beside them ends right, and each is named."""

from __future__ import annotations

import re
from pathlib import Path

import command_lines
import pytest
import rogues
from aiperf_command_simulate.testing import Simulator
from program import Done, Program

RUN = ("--model", "m", "--tokenizer", "builtin", "--isl", 20, "--request-count", 12, "--ui", "none")


@pytest.fixture(scope="module")
def robbed(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program beside a package that takes flags, time and threads, and beside a rival of it."""
    folder = tmp_path_factory.mktemp("robbed")
    rogues.install(folder / "site", "thief", "rival")
    made = Program(folder)
    made.environment |= {
        "PYTHONPATH": str(folder / "site"), "AIPERF_CACHE_DIR": str(folder / "cache"), "AIPERF_PLUGIN_IMPORT_TIMEOUT": "1",
    }  # fmt: skip
    return made


@pytest.fixture(scope="module")
def run_beside(robbed: Program, shared_simulator: Simulator) -> Done:
    return robbed(
        "profile", "--url", shared_simulator.url, "--concurrency", 3, "--osl", 5, "--thief", "mine", "--rival", "me", *RUN
    )


def test_a_run_beside_a_thief_ends_right(run_beside: Done) -> None:
    assert run_beside.code == 0, run_beside.err
    results = run_beside.json()
    assert results["request_count"]["avg"] == 12 and results["output_sequence_length"]["avg"] == 5
    assert results["input_config"]["phases"][0]["concurrency"] == 3


def test_both_work_but_for_the_flags_that_they_lost(run_beside: Done) -> None:
    thief = (run_beside.artifacts / "thief.txt").read_text()
    assert thief == "ThiefOptions(load=None, wait='no', length='no', place='no', both='no', own='mine')"
    assert (run_beside.artifacts / "rival.txt").read_text() == "RivalOptions(both=0, own='me')"


def test_who_lost_a_flag_is_named_in_a_line(run_beside: Done) -> None:
    owner = re.compile(r"datasets:\w+ of aiperf-dataset-[\w-]+ 0\.1\.0")  # the first of many data sets that have it
    lines = [owner.sub("DATASET", line) for line in run_beside.err.splitlines() if " without " in line]
    both = "--acme-both: acme-rival 1.0.0 and acme-thief 6.6.6 declare it with equal priority, so nobody has it"
    assert lines == [
        f"warning: exporters:thief of acme-thief 6.6.6 works without --osl: DATASET has it; without {both}; without"
        " --concurrency, --config, -f, endpoint.urls: aiperf itself has them",
        f"warning: exporters:rival of acme-rival 1.0.0 works without {both}",
    ]


def test_an_import_that_hangs_is_named_once_and_left_out(run_beside: Done) -> None:
    (line,) = [line for line in (run_beside.err + run_beside.out).splitlines() if "did not end within" in line]
    assert "metrics:asleep, metrics:sleeping_twin of acme-thief 6.6.6" in line


def test_a_thread_of_a_plugin_keeps_no_command_alive(robbed: Program) -> None:
    running = robbed.start("plugins", "hooks", "lingering")
    done = running.end(60)
    assert done.code == 0 and "aiperf_teardown" in done.out


def test_a_thread_of_a_plugin_keeps_no_command_lines_alive(
    robbed: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", robbed.environment["PYTHONPATH"])
    wrong = ["profile", "-m", "m", "--tokenizer", "builtin", "--request-rate", "-3"]
    (did,) = command_lines.run([{"words": wrong, "environment": {}}], tmp_path)
    assert did.code == 2 and "--request-rate: -3 is not allowed" in did.err


def test_validate_names_every_loss_and_the_import_that_hangs(robbed: Program) -> None:
    done = robbed("plugins", "validate", "acme-thief")
    assert done.code == 1
    begin = "exporters:thief (acme-thief 6.6.6): it works without "
    for flag in ("--concurrency", "--config", "-f", "--osl", "--acme-both", "endpoint.urls"):
        assert any(line.startswith(f"{begin}{flag}, since ") for line in done.out.splitlines()), done.out
    hung = [line for line in done.out.splitlines() if "its import did not end within 1 s" in line]
    assert [line.partition(" ")[0] for line in hung] == ["metrics:asleep", "metrics:sleeping_twin"]


@pytest.fixture(scope="module")
def offended(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The program beside a package that has every fault that ``validate`` finds."""
    folder = tmp_path_factory.mktemp("offended")
    rogues.install(folder / "site", "boor", "rival")
    made = Program(folder)
    made.environment |= {"PYTHONPATH": str(folder / "site"), "AIPERF_CACHE_DIR": str(folder / "cache")}
    return made


def test_a_run_beside_a_boor_ends_right(offended: Program, shared_simulator: Simulator) -> None:
    done = offended("profile", "--url", shared_simulator.url, "--osl", 5, *RUN)
    assert done.code == 0, done.err
    results = done.json()
    assert results["request_count"]["avg"] == 12 and results["output_sequence_length"]["avg"] == 5
    assert "bad_unit" not in results and "wrong_length" not in results
    said = done.err + done.out + (done.artifacts / "logs" / "aiperf.log").read_text()
    assert "metric bad_unit of acme-boor 0.0.1 is left out" in said
    endless = "sample() gave more than 200,000 points", "telemetry:endless of acme-boor 0.0.1 has given no sample"
    assert any(sentence in said for sentence in endless), said
    assert "metric wrong_length of acme-boor 0.0.1 is switched off" in said
    modes = {path.name: path.stat().st_mode & 0o777 for path in done.artifacts.rglob("*") if path.is_file()}
    assert not {name for name, mode in modes.items() if mode & 0o022}, "nobody else may write its files"


IMPORT = "endpoints:boorish (acme-boor 0.0.1): its import "


@pytest.fixture(scope="module")
def faults(offended: Program) -> list[str]:
    done = offended("plugins", "validate", "acme-boor")
    assert done.code == 1, done.err
    return done.out.splitlines()


@pytest.mark.parametrize(
    "fault",
    [
        f"{IMPORT}takes 2.",
        f"{IMPORT}prints 'Welcome to acme-boor!': write nothing there",
        f"{IMPORT}changes the working directory to /: leave it",
        f"{IMPORT}changes the umask from 022 to 000: leave it",
        f"{IMPORT}changes the environment (ACME_BOOR): leave it to the user",
        f"{IMPORT}takes the signal SIGTERM: leave it",
        f"{IMPORT}leaves the thread 'acme-boor': start it where it is used",
        "endpoints:boorish (acme-boor 0.0.1): its requirement acme-not-there>=7 is not installed: pip install",
        "telemetry:endless (acme-boor 0.0.1): there is something in every sample: sample() gave more than 200,000 points",
        "graders:dice (acme-boor 0.0.1): the same answer gets the same grade every time: the answer",
        "endpoints:boorish (acme-boor 0.0.1): garbage is a bad response that keeps its bytes: ",
        "endpoints:boorish (acme-boor 0.0.1): the path is the declared one: '/elsewhere' came where '/boorish' was expected",
        "endpoints:boorish (acme-boor 0.0.1): importing it stays light for workers: its module imports numpy",
        "metrics:bad_unit (acme-boor 0.0.1): ",
        "metrics:wrong_length (acme-boor 0.0.1): every request has its place: ",
        "samplers:twin (acme-boor, acme-rival): acme-boor 0.0.1 and acme-rival 1.0.0 both provide it; choose with",
    ],
)
def test_validate_finds_the_fault(faults: list[str], fault: str) -> None:
    assert any(line.startswith(fault) for line in faults), "\n".join(faults)


def test_no_fault_is_a_bare_assertion(faults: list[str]) -> None:
    assert [line for line in faults if "AssertionError" in line or line.endswith(": assert")] == []


def test_a_contested_package_is_checked_by_its_name(offended: Program) -> None:
    done = offended("plugins", "validate", "acme-rival")
    assert done.code == 1 and "did you mean" not in done.err
    assert done.out.splitlines()[-1].startswith("2 plugins checked"), done.out
