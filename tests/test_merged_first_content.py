"""First contents that a busy client reads merged: bounds hold what their own stamps said, in every file.

A run's journal is changed as if the worker had read late: the first read of each answer is merged into the second one.  What
the run said before is the truth; where its worker did read late, that is an interval itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiperf.parts import journal
from aiperf.parts.segments import HIDDEN_MOST
from aiperf_command_simulate.testing import running
from program import Done, Program

REQUESTS = 40
OF_REQUESTS = (
    "time_to_first_token", "time_to_first_output_token", "decode_duration", "inter_token_latency",
    "output_token_throughput_per_user", "prefill_throughput_per_user", "usage_inter_token_latency",
)  # fmt: skip
OF_TIME = ("effective_prefill_concurrency", "effective_decode_concurrency")
OF_OBJECTIVES = (
    "good_request_count", "good_request_fraction", "goodput", "slo_time_to_first_token_failed_alone",
    "slo_time_to_first_token_p50_attained", "slo_time_to_first_token_p50_margin",
)  # fmt: skip
_FIELDS = len(journal.CHUNK_FIELDS)
Entry = Mapping[str, Any]


def merge_first_reads(path: Path) -> None:
    """Let the first read of each request of a segment come with the second one."""
    begun: dict[int, bytes] = {}
    frames = []
    for frame in journal.frames(path):
        payload, count = frame.payload, frame.count
        if frame.kind == journal.CHUNKS:
            rows = np.frombuffer(payload, np.int64, count * _FIELDS).reshape(count, _FIELDS).copy()
            ends = count * _FIELDS * 8 + np.cumsum(rows[:, 3])
            kept, bodies = [], []
            for row, end in zip(rows, ends.tolist(), strict=True):
                number, body = int(row[0]), payload[end - int(row[3]) : end]
                if number not in begun:
                    begun[number] = body
                    continue
                if begun[number]:
                    body, begun[number] = begun[number] + body, b""
                    # Without the second read's word on when its socket was empty: the first read's piece was not in it then.
                    row[3:] = len(body), (max(0, int(row[4])) & HIDDEN_MOST) + 1
                kept.append(row)
                bodies.append(body)
            payload, count = b"".join([*(row.tobytes() for row in kept), *bodies]), len(kept)
        frames.append(journal.pack(frame.kind, payload, frame.mono_ns, frame.wall_ns, count, frame.number))
    path.write_bytes(b"".join(frames))


def fewest_reads(folder: Path) -> int:
    """Of the requests in a journal, the reads of the one that has fewest."""
    reads: Counter[int] = Counter()
    for segment in folder.glob("shard-*.seg"):
        for frame in journal.frames(segment):
            if frame.kind == journal.CHUNKS:
                rows = np.frombuffer(frame.payload, np.int64, frame.count * _FIELDS).reshape(frame.count, _FIELDS)
                reads.update(rows[:, 0].tolist())
    return min(reads.values())


class Both:
    """What a run said, and what its report says of merged reads: the summary, the lines, and the slices."""

    def __init__(self, done: Done) -> None:
        self.summary = done.json()
        self.lines = done.lines("profile_export.jsonl")
        self.slices = json.loads((done.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Both, Both]:
    aiperf = Program(tmp_path_factory.mktemp("merged"))
    with running(first_token_ms=30, decode_ms=8) as one, running(first_token_ms=50, decode_ms=8) as other:
        for _ in range(10):
            done = aiperf(
                "profile", "--model", "sim", "--url", one.url, "--url", other.url, "--endpoint-type", "completions",
                "--streaming", "--tokenizer", "builtin", "--isl", "20", "--osl", "12", "--request-count", str(REQUESTS),
                "--concurrency", "4", "--goodput", "time_to_first_token:42", "inter_token_latency:500",
                "time_to_first_token:p50<42", "--slice-duration", "0.5", "--export-level", "raw", "--ui", "none",
            )  # fmt: skip
            if fewest_reads(done.artifacts / "journal") > 2:
                break  # on a very busy machine an answer may come in two reads, and has no duration where they are one
    assert done.code == 0, done.err
    before = Both(done)
    folder = done.artifacts / "journal"
    for segment in folder.glob("shard-*.seg"):
        merge_first_reads(segment)
    for stale in (*folder.glob("columns-*"), folder / "summary.msgpack"):
        stale.unlink()
    again = aiperf("report", done.artifacts)
    assert "Traceback" not in again.err
    return done, before, Both(done)


Reports = tuple[Done, Both, Both]


def between(truth: Entry, found: Entry) -> None:
    """The statistics are within their bounds, and so is the truth."""
    lower, upper = found.get("lower", found), found.get("upper", found)
    least, most = truth.get("lower", truth), truth.get("upper", truth)
    for name in {"avg", "p50", "p99", "min", "max"} & truth.keys() & found.keys():
        close = 1e-6 * abs(truth[name]) + 1e-6
        assert lower[name] - close <= most[name] and least[name] <= upper[name] + close, (name, truth, found)
        assert lower[name] - close <= found[name] <= upper[name] + close, (name, found)


def test_every_line_and_the_summary_have_the_truth_between_their_bounds(reports: Reports) -> None:
    _, before, after = reports
    truth = {line["metadata"]["x_request_id"]: line["metrics"] for line in before.lines}
    assert len(after.lines) == REQUESTS
    for line in after.lines:
        known = truth[line["metadata"]["x_request_id"]]
        for tag in OF_REQUESTS:
            if "intervals" in known[tag]:
                continue
            metric, own = line["metrics"][tag], known[tag]["value"]
            (upper,) = metric["intervals"]["upper"]
            (lower,) = metric["intervals"].get("lower", [0.0])
            assert lower - 1e-6 <= own <= upper + 1e-6, (tag, own, metric)
            assert lower <= metric["value"] <= upper
    for tag in (*OF_REQUESTS, *OF_TIME):
        assert after.summary[tag]["lower"]["avg"] < after.summary[tag]["upper"]["avg"], tag
        between(before.summary[tag], after.summary[tag])


def test_slices_and_urls_have_bounds_too(reports: Reports) -> None:
    _, before, after = reports
    for tag in OF_REQUESTS:
        for truth, found in zip(before.slices, after.slices, strict=True):
            assert (tag in truth) == (tag in found)
            if tag in truth:
                assert "lower" in found[tag]
                between(truth[tag], found[tag])
        for truth, found in zip(before.summary["urls"], after.summary["urls"], strict=True):
            between(truth["metrics"][tag], found["metrics"][tag])
            assert "lower" in found["metrics"][tag]


def test_objectives_on_the_first_token_have_a_range(reports: Reports) -> None:
    _, before, after = reports
    for tag in OF_OBJECTIVES:
        between(before.summary[tag], after.summary[tag])
    found = after.summary["good_request_count"]
    assert found["lower"]["avg"] < REQUESTS / 2 < found["upper"]["avg"]
    seconds = after.summary["benchmark_duration"]["avg"]
    assert after.summary["goodput"]["upper"]["avg"] * seconds == pytest.approx(found["upper"]["avg"])


def test_the_verdict_says_which_statistics_are_uncertain(reports: Reports) -> None:
    _, _, after = reports
    (finding,) = (each for each in after.summary["measurement"]["findings"] if each["kind"] == "merged_chunks")
    assert finding["scope"] == "first token and inter-chunk"
    assert f"the first content of {REQUESTS} of {REQUESTS} answers reached us merged" in finding["sentence"]
    assert finding["numbers"]["merged_first"] == REQUESTS


def test_all_files_of_bounds_agree(aiperf: Program, reports: Reports) -> None:
    done, _, _ = reports
    judged = aiperf("validate", done.artifacts)
    assert judged.out.splitlines()[-1].endswith(" 1 fault") and "columns-0.0: is missing" in judged.out, judged.out
    path = done.artifacts / "profile_export_aiperf.json"
    text = path.read_text()
    try:
        for tag in ("time_to_first_token", "good_request_count"):
            changed = json.loads(text)
            changed[tag]["upper"]["avg"] += 1.0
            path.write_text(json.dumps(changed))
            assert f"{tag}.upper.avg is" in aiperf("validate", done.artifacts).out
    finally:
        path.write_text(text)


def test_a_raw_line_says_after_when_and_by_when_the_first_content_came(reports: Reports) -> None:
    done, _, _ = reports
    for line in done.lines("profile_export_raw.jsonl"):
        first, second, *_ = line["responses"]
        assert line["start_perf_ns"] <= first["after_perf_ns"] <= first["perf_ns"] == second["perf_ns"]
