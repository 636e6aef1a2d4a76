"""Packages that behave as badly as they can: the run beside them ends right, and each is named."""

from __future__ import annotations

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
    lines = [line for line in run_beside.err.splitlines() if " without " in line]
    both = "--acme-both: acme-rival 1.0.0 and acme-thief 6.6.6 declare it with equal priority, so nobody has it"
    assert lines == [
        "warning: exporters:thief of acme-thief 6.6.6 works without --osl: datasets:bailian_trace of"
        f" aiperf-dataset-bailian-trace 0.1.0 has it; without {both}; without --concurrency, --config, -f, endpoint.urls:"
        " aiperf itself has them",
        f"warning: exporters:rival of acme-rival 1.0.0 works without {both}",
    ]


def test_an_import_that_hangs_is_named_once_and_left_out(run_beside: Done) -> None:
    (line,) = [line for line in (run_beside.err + run_beside.out).splitlines() if "did not end within" in line]
    assert "metrics:asleep, metrics:sleeping_twin of acme-thief 6.6.6" in line


def test_a_thread_of_a_plugin_keeps_no_command_alive(robbed: Program) -> None:
    running = robbed.start("plugins", "hooks", "lingering")
    done = running.end(60)
    assert done.code == 0 and "aiperf_teardown" in done.out


def test_validate_names_every_loss_and_the_import_that_hangs(robbed: Program) -> None:
    done = robbed("plugins", "validate", "acme-thief")
    assert done.code == 1
    begin = "exporters:thief (acme-thief 6.6.6): it works without "
    for flag in ("--concurrency", "--config", "-f", "--osl", "--acme-both", "endpoint.urls"):
        assert any(line.startswith(f"{begin}{flag}, since ") for line in done.out.splitlines()), done.out
    hung = [line for line in done.out.splitlines() if "its import did not end within 1 s" in line]
    assert [line.partition(" ")[0] for line in hung] == ["metrics:asleep", "metrics:sleeping_twin"]
