"""A disk that fills in the middle of a run.  A limit on file sizes stands in for it: writes beyond it fail the same way."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

from aiperf_command_simulate.testing import running

LIMIT = 120_000


def limited() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


def test_a_full_disk_stops_the_load_is_said_and_leaves_a_partial_report(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0, truth_log=100) as simulator:
        done = subprocess.run(
            [
                sys.executable, "-m", "aiperf", "profile", "--model", "sim", "--url", simulator.url, "--streaming",
                "--tokenizer", "builtin", "--concurrency", "4", "--benchmark-duration", "60", "--isl", "10", "--osl", "20",
                "--num-dataset-entries", "5", "--export-level", "summary", "--artifact-dir", str(tmp_path), "--ui", "none",
            ],
            preexec_fn=limited, capture_output=True, text=True, timeout=50, check=False,
        )  # fmt: skip
        assert simulator.summary()["in_flight"] == 0
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert "can't be written: File too large" in done.stderr
    results = json.loads((tmp_path / "profile_export_aiperf.json").read_text())
    assert results["is_complete"] is False
    assert results["request_count"]["avg"] > 0


def test_a_disk_that_fills_while_results_are_exported_is_said_and_keeps_what_was_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aiperf"]
    with running(first_token_ms=5, decode_ms=1, truth_log=100) as simulator:
        words = [
            *command, "profile", "--model", "sim", "--url", simulator.url, "--streaming", "--tokenizer", "builtin",
            "--request-count", "10", "--isl", "10", "--osl", "60", "--export-level", "raw", "--artifact-dir", str(tmp_path),
            "--ui", "none",
        ]  # fmt: skip
        assert subprocess.run(words, capture_output=True, timeout=50, check=False).returncode == 0
    raw = tmp_path / "profile_export_raw.jsonl"
    before = raw.read_bytes()
    limit = len(before) - 1
    assert all(path.stat().st_size < limit for path in tmp_path.rglob("*") if path.suffix not in (".seg", raw.suffix))

    def scarce() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    again = [*command, "report", str(tmp_path)]
    done = subprocess.run(again, preexec_fn=scarce, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    assert "exporter plugin 'raw'" in done.stderr and "File too large" in done.stderr
    assert raw.read_bytes() == before, "no half of a file in its place"
    assert [path.name for path in tmp_path.iterdir() if "draft" in path.name] == []
    assert "JSON Export" in done.stdout, "the others are written"
    assert json.loads((tmp_path / ".aiperf_results_ready.json").read_text())["partial"] is True
