"""The matrix of SPEED-Bench: every number by hand, and where it comes from."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import AiperfError, UsageError
from aiperf_command_speed_bench_report import SpeedBenchReport
from aiperf_command_speed_bench_report.contract import SpeedBenchReportContract
from aiperf_command_speed_bench_report.options import SpeedBenchReportOptions

ACCEPTED, DRAFTS, DRAFTED = (f"vllm:spec_decode_num_{name}" for name in ("accepted_tokens", "drafts", "draft_tokens"))


class TestItKeepsTheContract(SpeedBenchReportContract):
    pass


def gauges(*values: float) -> dict[str, Any]:
    return {"type": "gauge", "series": [{"endpoint_url": "u", "stats": {"avg": value}} for value in values]}


def counters(*values: float) -> dict[str, Any]:
    return {"type": "counter", "series": [{"endpoint_url": "u", "stats": {"total": value, "rate": 1.0}} for value in values]}


def run(path: Path, dataset: str = "speed_bench_math", servers: dict[str, Any] | None = None, *, key: str = "format",
        model: str = "m", prefix: str = "", **summary: Any) -> Path:  # fmt: skip
    """A directory of the reference."""
    path.mkdir(parents=True)
    configuration = {"models": {"items": [{"name": model}]}, "datasets": [{"name": "main"}, {key: dataset}]}
    document = {"schema_version": "1.4", "input_config": configuration, **summary}
    names = (f"{prefix}.json", f"{prefix}_server_metrics.json") if prefix else ("", "")
    (path / (names[0] or "profile_export_aiperf.json")).write_text(json.dumps(document))
    if prefix:
        (path / f"{prefix}.csv").write_text("")
    if servers is not None:
        (path / (names[1] or "server_metrics_export.json")).write_text(json.dumps({"metrics": servers}))
    return path


def report(tmp_path: Path, *paths: Path, code: int = 0, **options: Any) -> list[list[str]]:
    """The rows of the CSV."""
    output = tmp_path / "out" / "matrix.csv"
    assert SpeedBenchReport().run(SpeedBenchReportOptions(output=output, **options), list(map(str, paths))) == code
    return list(csv.reader(output.read_text().splitlines()))


@pytest.mark.parametrize(
    ("servers", "cell", "origin"),
    [
        ({"sglang:spec_accept_length": gauges(2.0, 3.0), ACCEPTED: counters(9), DRAFTS: counters(1)}, "2.50",
         "sglang:spec_accept_length of the servers"),
        ({"vllm:spec_decode_mean_accepted_length": gauges(2.25)}, "2.25",
         "vllm:spec_decode_mean_accepted_length of the servers"),
        ({"trtllm:spec_accept_length": gauges(1.5)}, "1.50", "trtllm:spec_accept_length of the servers"),
        ({"trtllm_spec_decode_acceptance_length": gauges(1.75)}, "1.75", "trtllm_spec_decode_acceptance_length of the servers"),
        ({ACCEPTED: counters(10, 30), DRAFTS: counters(5, 11)}, "3.50",
         f"{ACCEPTED} / spec_decode_num_drafts of the servers"),
        ({f"{ACCEPTED}_total": counters(10), f"{DRAFTS}_total": counters(8)}, "2.25",
         f"{ACCEPTED} / spec_decode_num_drafts of the servers"),
        ({"other": gauges(9), "my_Spec_Accepted_Length": gauges(4)}, "4.00", "my_Spec_Accepted_Length of the servers"),
        ({ACCEPTED: counters(10), DRAFTS: counters(0)}, "1.25", "spec_decode_acceptance_length of the requests"),
        ({"sglang:spec_accept_length": {"series": [{"stats": {"avg": None}}, 5]}, "odd": 3}, "1.25",
         "spec_decode_acceptance_length of the requests"),
        (None, "1.25", "spec_decode_acceptance_length of the requests"),
    ],
)  # fmt: skip
def test_the_acceptance_length_comes_from_the_first_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], servers: dict[str, Any] | None, cell: str, origin: str
) -> None:
    path = run(tmp_path / "a", servers=servers, spec_decode_acceptance_length={"unit": "ratio", "avg": 1.25})
    assert report(tmp_path, path) == [["Model", "math", "Overall"], ["m", cell, cell]]
    assert f"from {origin}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("servers", "cell"),
    [
        ({"sglang:spec_accept_rate": gauges(0.5, 0.7), ACCEPTED: counters(9), DRAFTED: counters(9)}, "0.60"),
        ({"vllm:spec_decode_draft_acceptance_rate": gauges(0.55)}, "0.55"),
        ({"trtllm:spec_accept_rate": gauges(0.35)}, "0.35"),
        ({ACCEPTED: counters(10, 30), DRAFTED: counters(50, 50)}, "0.40"),
        ({f"trtllm_spec_decode_num_{name}_tokens_total": counters(value) for name, value in (("accepted", 3), ("draft", 4))},
         "0.75"),
        ({"sglang:spec_accept_length": gauges(2.0)}, "0.62"),
    ],
)  # fmt: skip
def test_the_acceptance_rate_is_a_share(tmp_path: Path, servers: dict[str, Any], cell: str) -> None:
    path = run(tmp_path / "a", servers=servers, spec_decode_draft_acceptance_rate={"unit": "%", "avg": 62.4})
    assert report(tmp_path, path, metric="accept_rate")[1] == ["m", cell, cell]


def test_series_of_the_profiling_phase_stand_in_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals = ((0, ACCEPTED, 100.0), (1, ACCEPTED, 5.0), (1, f"{ACCEPTED}_per_pos", 7.0), (0, DRAFTS, 1.0), (1, DRAFTS, 4.0))
    series = [{"phase": phase, "name": f"{name}_total", "stats": {"total": total}} for phase, name, total in totals]
    path = run(
        tmp_path / "a",
        phases=[{"name": "w", "kind": "warmup", "index": 0}, {"name": "p", "kind": "profiling", "index": 1}],
        telemetry=[{"source": "gpu", "series": [{"phase": 1, "name": ACCEPTED, "stats": {"total": 99}}]},
                   {"source": "server_metrics", "series": series}],
    )  # fmt: skip
    assert report(tmp_path, path)[1] == ["m", "2.25", "2.25"]
    assert "of the servers in the summary" in capsys.readouterr().out


def test_categories_have_the_order_of_their_kind(tmp_path: Path) -> None:
    for place, name in enumerate(("speed_bench_writing", "speed_bench_coding", "speed_bench_math")):
        run(tmp_path / "a" / name, name, output_token_throughput={"unit": "tokens/sec", "avg": 10.0 * (place + 1)})
    run(tmp_path / "a" / "other", "speed_bench_coding", model="a", output_token_throughput={"avg": 1.005})
    assert report(tmp_path, tmp_path / "a", metric="throughput") == [
        ["Model", "coding", "math", "writing", "Overall"], ["a", "1.00", "", "", "1.00"],
        ["m", "20.00", "30.00", "10.00", "20.00"],
    ]  # fmt: skip
    run(tmp_path / "a" / "al", "spec_al_gsm8k", key="dataset", output_token_throughput={"avg": 5.0})
    header, *_ = report(tmp_path, tmp_path / "a", metric="throughput")
    assert header == ["Model", "coding", "gsm8k", "math", "writing", "Overall"]


def test_repeats_are_averaged_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for place, length in enumerate((2.0, 2.5, 3.3)):
        run(tmp_path / f"r{place}", servers={"sglang:spec_accept_length": gauges(length)}, prefix="" if place else "mine")
    run(tmp_path / "q", "speed_bench_qa", spec_decode_acceptance_length={"avg": 1.4})
    rows = report(tmp_path, *(tmp_path / name for name in ("r0", "r1", "r2", "q")))
    assert rows == [["Model", "math", "qa", "Overall"], ["m", "2.60", "1.40", "2.00"]]
    out = capsys.readouterr().out
    assert "m, math: the mean of 3 runs\n" in out
    assert "from sglang:spec_accept_length of the servers: r0, r1, r2\n" in out
    assert "from spec_decode_acceptance_length of the requests: q\n" in out


def test_a_table_alone_writes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "a", output_token_throughput={"avg": 5.0}, model="odd\x1b[31m")
    run(tmp_path / "b", "speed_bench_qa", output_token_throughput={"avg": 1234.0})
    assert SpeedBenchReport().run(SpeedBenchReportOptions(format="table", metric="throughput"), [str(tmp_path)]) == 0
    assert "m            -  1234.00  1234.00\nodd [31m  5.00        -     5.00\n" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.csv"))


def test_a_formula_is_no_formula_in_the_file(tmp_path: Path) -> None:
    path = run(tmp_path / "a", "speed_bench_@x", model="=cmd|calc", output_token_throughput={"avg": 5.0})
    rows = report(tmp_path, path, metric="throughput", format="csv")
    assert rows == [["Model", "'@x", "Overall"], ["'=cmd|calc", "5.00", "5.00"]]


def test_a_run_without_a_category_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = run(tmp_path / "good", spec_decode_acceptance_length={"avg": 2.0})
    silent = run(tmp_path / "silent", "speed_bench_qa")
    odd = run(tmp_path / "odd", "sharegpt", spec_decode_acceptance_length={"avg": 9.0})
    assert report(tmp_path, good, silent, odd)[1] == ["m", "2.00", "", "2.00"]
    told = capsys.readouterr().err
    assert f"warning: {odd} is skipped: its data set is none of speed_bench_* and spec_al_*\n" in told
    assert f"warning: {silent} has no accept_length: neither its servers' metrics nor their answers" in told


def test_a_broken_run_is_named_and_the_others_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "good", spec_decode_acceptance_length={"avg": 2.0})
    (run(tmp_path / "bad") / "server_metrics_export.json").write_text('{"metrics"')
    (run(tmp_path / "worse") / "profile_export_aiperf.json").write_text("{")
    assert report(tmp_path, tmp_path, code=1)[1] == ["m", "2.00", "2.00"]
    told = capsys.readouterr().err
    assert "bad is left out: " in told and "worse is left out: " in told and "Traceback" not in told


def test_nothing_to_report_is_an_error(tmp_path: Path) -> None:
    command, options = SpeedBenchReport(), SpeedBenchReportOptions(output=tmp_path / "x.csv")
    with pytest.raises(UsageError, match="needs a directory"):
        command.run(options, ())
    with pytest.raises(AiperfError, match="is not there"):
        command.run(options, [str(tmp_path / "absent")])
    with pytest.raises(AiperfError, match="no run of SPEED-Bench is there"):
        command.run(options, [str(run(tmp_path / "odd", "sharegpt"))])
    path = run(tmp_path / "silent")
    with pytest.raises(AiperfError, match="no run has accept_length"):
        command.run(options, [str(path)])
    (tmp_path / "file").touch()
    with pytest.raises(AiperfError, match="can't be written"):
        command.run(SpeedBenchReportOptions(output=tmp_path / "file" / "x.csv", metric="throughput"),
                    [str(run(tmp_path / "full", output_token_throughput={"avg": 1.0}))])  # fmt: skip
