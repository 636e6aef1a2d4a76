"""A disk that fills in the middle of a run.  A limit on file sizes stands in for it: writes beyond it fail the same way."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running

LIMIT = 120_000
PROGRAM = [sys.executable, "-m", "aiperf"]


def raw_run(url: str, directory: Path) -> list[str]:
    """A run whose file of what was sent and said is larger than any of its journal."""
    return [
        *PROGRAM, "profile", "--model", "sim", "--url", url, "--streaming", "--tokenizer", "builtin", "--request-count", "10",
        "--isl", "10", "--osl", "60", "--export-level", "raw", "--artifact-dir", str(directory), "--ui", "none",
    ]  # fmt: skip


def scarce(words: list[str], limit: int) -> subprocess.CompletedProcess[str]:
    """The command where no file can be larger than *limit* bytes."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(words, preexec_fn=limited, capture_output=True, text=True, timeout=180, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_full_disk_stops_the_load_with_a_partial_report(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0, truth_log=100) as simulator:
        words = [
            *PROGRAM, "profile", "--model", "sim", "--url", simulator.url, "--streaming", "--tokenizer", "builtin",
            "--concurrency", "4", "--benchmark-duration", "600", "--isl", "10", "--osl", "20", "--num-dataset-entries", "5",
            "--export-level", "summary", "--artifact-dir", str(tmp_path), "--ui", "none",
        ]  # fmt: skip
        done = scarce(words, LIMIT)
        assert simulator.summary()["in_flight"] == 0
    assert done.returncode == 1
    assert "can't be written: File too large" in done.stderr
    results = json.loads((tmp_path / "profile_export_aiperf.json").read_text())
    assert results["is_complete"] is False
    assert results["request_count"]["avg"] > 0


def assert_all_but_one(done: subprocess.CompletedProcess[str], directory: Path) -> None:
    assert done.returncode == 1
    assert "the plugin exporters:raw" in done.stderr and "File too large" in done.stderr
    assert [path.name for path in directory.iterdir() if "draft" in path.name] == []
    assert "JSON Export" in done.stdout, "the others are written"
    assert json.loads((directory / ".aiperf_results_ready.json").read_text())["partial"] is True


def test_a_disk_full_during_export_is_reported_and_a_report_recovers(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1, truth_log=100) as simulator:
        assert subprocess.run(raw_run(simulator.url, tmp_path), capture_output=True, timeout=180, check=False).returncode == 0
        raw = tmp_path / "profile_export_raw.jsonl"
        before = raw.read_bytes()
        plugin_options = max(path.stat().st_size for path in tmp_path.rglob("*") if path != raw)
        assert plugin_options < 0.9 * len(before), "there is a limit that this one file alone exceeds"
        limit = (plugin_options + len(before)) // 2
        second = tmp_path / "second"
        assert_all_but_one(scarce(raw_run(simulator.url, second), limit), second)
    assert not (second / raw.name).exists()
    assert json.loads((second / "profile_export_aiperf.json").read_text())["request_count"]["avg"] == 10

    assert_all_but_one(scarce([*PROGRAM, "report", str(tmp_path)], limit), tmp_path)
    assert raw.read_bytes() == before, "no half of a file in its place"

    assert subprocess.run([*PROGRAM, "report", str(second)], capture_output=True, timeout=180, check=False).returncode == 0
    assert len((second / raw.name).read_text().splitlines()) == 10


SMALL_DISK = """
mount -t tmpfs -o size=3m none "$1" || exit 77
shift
out=$1; shift
"$@"; code=$?
cp -r "$DISK"/. "$out"
exit $code
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="a small disk is made with unshare")
@pytest.mark.parametrize("level", ["records", "summary"])
def test_a_disk_without_any_space_left_still_gives_a_report(tmp_path: Path, level: str) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    disk.mkdir()
    out.mkdir()
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0, truth_log=100) as simulator:
        words = [
            *PROGRAM, "profile", "--model", "sim", "--url", simulator.url, "--streaming", "--tokenizer", "builtin",
            "--concurrency", "4", "--benchmark-duration", "600", "--isl", "10", "--osl", "20", "--num-dataset-entries", "5",
            "--export-level", level, "--artifact-dir", str(disk / "run"), "--ui", "none",
        ]  # fmt: skip
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", SMALL_DISK, "sh", str(disk), str(out), *words],
            env={**os.environ, "DISK": str(disk)}, capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
    if done.returncode in (1, 77) and not (out / "run").exists():
        pytest.skip("this user can't mount a file system")
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stderr
    assert f"{disk / 'run' / 'journal'} can't be written: No space left on device" in done.stderr
    results = json.loads((out / "run" / "profile_export_aiperf.json").read_text())
    assert results["is_complete"] is False and results["request_count"]["avg"] > 0
    assert "No space left on device" in results["incomplete_reason"]
    assert [path.name for path in out.rglob("*") if "draft" in path.name] == []
    records = out / "run" / "profile_export.jsonl"
    assert not records.exists()
    assert ("aiperf report" in done.stderr) == (level == "records"), "how to get the files that had no room"

    again = subprocess.run([*PROGRAM, "report", str(out / "run")], capture_output=True, text=True, timeout=180, check=False)
    assert "Traceback" not in again.stderr
    if level == "records":
        assert len(records.read_text().splitlines()) >= results["request_count"]["avg"], "nothing observed is lost"
