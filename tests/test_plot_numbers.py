"""Every number of every picture equals one that is computed here from the lines, by code that shares nothing with it."""

from __future__ import annotations

import json
import math
import random
import tarfile
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist, mean, stdev
from typing import Any

import pytest
from aiperf.registry.registry import Registry
from aiperf.results import CellRuns, FinishedRun, open_run
from aiperf.sdk.plot import Figure, Plot, PlotSeries

BEGIN_NS = 1_700_000_000_123_456_789
Line = dict[str, Any]


UNITS = {
    "request_latency": "ms", "time_to_first_token": "ms", "inter_token_latency": "ms", "output_token_throughput": "tokens/sec",
    "output_token_throughput_per_user": "tokens/sec/user", "request_throughput": "requests/sec",
    "effective_concurrency": "requests", "goodput": "requests/sec",
}  # fmt: skip


def draw(name: str, *runs: Any) -> Figure:
    plot: Plot = Registry.discover().load("plots", name)(None)
    figure = plot.draw(runs)
    assert figure is not None
    return figure


def written(folder: Path, seed: int, count: int = 300, concurrency: int = 7) -> FinishedRun:
    """A run with random numbers; in every tenth line a failure, in every seventeenth no first token."""
    dice = random.Random(seed)
    folder.mkdir()
    lines: list[Line] = []
    at = BEGIN_NS
    for n in range(count):
        at += dice.randrange(1, 40_000_000)
        latency = dice.lognormvariate(5, 0.6)
        first = latency * dice.uniform(0.05, 0.9)
        values = {
            "request_latency": latency, "time_to_first_token": first, "inter_token_latency": dice.uniform(5, 30),
            "effective_latency": latency + dice.random(), "output_sequence_length": dice.randrange(1, 300),
            "input_sequence_length": dice.randrange(1, 4000),
        }  # fmt: skip
        if n % 17 == 5:
            del values["time_to_first_token"]
        failed = n % 10 == 3
        end = at + round(latency * 1e6)
        about = {"request_start_ns": at, "request_end_ns": end, "due_ns": at - dice.randrange(9_000_000),
                 "benchmark_phase": "warmup" if n < 4 else "profiling"}  # fmt: skip
        kind = dice.choice(["ReadTimeout", "ServerError", "Refused"])
        error = {"type": kind, "code": 500 if kind == "ServerError" else None, "message": "m"} if failed else None
        metrics = {} if failed else {tag: {"value": value, "unit": "ms"} for tag, value in values.items()}
        lines.append({"metadata": about, "metrics": metrics, "error": error})
    dice.shuffle(lines)
    (folder / "profile_export.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    failures = sum(bool(line["error"]) for line in profiling(lines))
    summary: dict[str, Any] = {
        "error_request_count": {"unit": "requests", "avg": failures},
        "input_config": {"phases": [{"kind": "profiling", "concurrency": concurrency}]},
    }
    for tag, unit in UNITS.items():
        spread = {stat: dice.uniform(1, 900) for stat in ("avg", "p50", "p90", "p99", "std")}
        summary[tag] = {"unit": unit, **spread}
    slices = [
        {"start_ns": BEGIN_NS + n * 10**9, "end_ns": BEGIN_NS + (n + 1) * 10**9,
         **{tag: {"avg": dice.uniform(1, 900), "std": dice.random()} for tag in summary if tag != "input_config" and n % 5}}
        for n in range(12)
    ]  # fmt: skip
    (folder / "profile_export_aiperf_timeslices.json").write_text(json.dumps({"timeslices": slices}))
    (folder / "profile_export_aiperf.json").write_text(json.dumps(summary))
    gpu = [{"timestamp_ns": BEGIN_NS + n * 330_000_000, "dcgm_url": "u", "gpu_index": g, "gpu_uuid": f"GPU-{g}",
            "telemetry_data": {"gpu_utilization": dice.uniform(0, 100), "gpu_power_usage": dice.uniform(90, 700)}}
           for n in range(9) for g in range(2)]  # fmt: skip
    (folder / "gpu_telemetry_export.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gpu))
    server = [{"timestamp_ns": BEGIN_NS + n * 500_000_000, "endpoint_url": "v", "metrics": {
        "vllm:num_requests_running": [{"labels": {}, "value": dice.randrange(9)}],
        "vllm:kv_cache_usage_perc": [{"labels": {}, "value": dice.random()}]}} for n in range(7)]  # fmt: skip
    (folder / "server_metrics_export.jsonl").write_text("".join(json.dumps(row) + "\n" for row in server))
    return open_run(folder)


def profiling(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if line["metadata"]["benchmark_phase"] == "profiling"]


def read(run: FinishedRun) -> list[Line]:
    """The profiling lines, in the order of the file."""
    lines = [json.loads(line) for line in (run.directory / "profile_export.jsonl").read_text().splitlines()]
    return profiling([{"error": None, **line} for line in lines])


def report_of(run: FinishedRun) -> Any:
    return json.loads((run.directory / "profile_export_aiperf.json").read_text())


def unpacked(folder: Path, version: str) -> dict[str, FinishedRun]:
    """Runs that the reference of this version made, by name; of c4 some requests were cancelled."""
    with tarfile.open(Path(__file__).parent / "reference" / f"runs-{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return {name: open_run(folder / version / name) for name in ("c2", "c4", "c8")}


def made_by(run: FinishedRun) -> str:
    """The version of the reference that made the run; "" for a made-up one."""
    return str(report_of(run).get("aiperf_version", ""))


def good(run: FinishedRun, *tags: str) -> list[tuple[float, ...]]:
    """Start in exact ns, and the values of the tags, of each good request that has all of them, by start."""
    rows = [
        (line["metadata"]["request_start_ns"], *(line["metrics"][tag]["value"] for tag in tags))
        for line in read(run) if not line["error"] and all(tag in line["metrics"] for tag in tags)
    ]  # fmt: skip
    return sorted(rows)


def first_start(run: FinishedRun, *, failed: bool = False) -> int:
    return min(int(line["metadata"]["request_start_ns"]) for line in read(run) if failed or not line["error"])


def same(found: Any, wanted: Sequence[float], rel: float = 1e-9) -> None:
    """Both are equal to a billionth; instants are told to 256 ns, as doubles tell epoch times."""
    assert list(found) == pytest.approx(list(wanted), rel=rel, abs=6e-7)


def quantile(values: Sequence[float], percent: float) -> float:
    """Linear between the two neighbours, in exact arithmetic."""
    ordered = sorted(map(Fraction, values))
    at = Fraction(percent) / 100 * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (at - low))


MAKERS = ("", "0.7.0", "0.13.0")
"""A run that is made up here, and those of the reference."""


@pytest.fixture(scope="module", params=MAKERS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    folder = tmp_path_factory.mktemp("one")
    return unpacked(folder, request.param)["c4"] if request.param else written(folder / "run", 1)


@pytest.fixture(scope="module", params=MAKERS)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[FinishedRun]:
    folder = tmp_path_factory.mktemp("several")
    if request.param:
        known = unpacked(folder, request.param)
        return [known[name] for name in ("c8", "c2", "c4")]
    return [written(folder / f"c{load}", load, 40, load) for load in (32, 2, 8)]


@pytest.mark.parametrize(("name", "tag"), [("ttft_over_time", "time_to_first_token")])
def test_points_over_time_are_the_requests(run: FinishedRun, name: str, tag: str) -> None:
    (series,) = draw(name, run).series
    rows = good(run, tag)
    points = sorted(zip(series.x.tolist(), series.y.tolist(), strict=True))
    begin = rows[0][0]
    same([x for x, _ in points], [(at - begin) / 1e9 for at, _ in rows])
    same([y for _, y in points], [value for _, value in rows])


@pytest.mark.parametrize(("name", "tag"), [("itl_over_time", "inter_token_latency"), ("latency_over_time", "request_latency")])
def test_points_by_number_are_the_requests(run: FinishedRun, name: str, tag: str) -> None:
    figure = draw(name, run)
    values = [value for _, value in good(run, tag)]
    same(figure.series[0].x, range(1, len(values) + 1))
    same(figure.series[0].y, values)
    for percent, series in zip((50, 95, 99), figure.series[1:], strict=False):
        same(series.y, [quantile(values[max(0, n - 9) : n + 1], percent) for n in range(len(values))])
        same(series.x, range(1, len(values) + 1))


def test_rows_of_points_are_places_of_their_requests(run: FinishedRun) -> None:
    (series,) = draw("itl_over_time", run).series
    assert series.rows is not None
    same(run.column("inter_token_latency")[series.rows], series.y.tolist())


@pytest.mark.parametrize(
    ("name", "tag"), [("ttft_distribution", "time_to_first_token"), ("latency_distribution", "request_latency")]
)
def test_shares_are_of_all_requests(run: FinishedRun, name: str, tag: str) -> None:
    figure = draw(name, run)
    values = sorted(value for _, value in good(run, tag))
    every = len(values) + sum(bool(line["error"]) for line in read(run))
    same(figure.series[0].x, values)
    same(figure.series[0].y, [100 * (n + 1) / every for n in range(len(values))])
    report = json.loads((run.directory / "profile_export_aiperf.json").read_text())[tag]
    assert [mark.value for mark in figure.marks] == [report["p50"], report["p99"]]


def test_response_and_service_latency_are_shares_of_all(run: FinishedRun) -> None:
    if made_by(run):
        assert Registry.discover().load("plots", "response_and_service_latency")(None).draw([run]) is None
        return
    figure, tags = draw("response_and_service_latency", run), ("request_latency", "effective_latency")
    for series, tag in zip(figure.series, tags, strict=True):
        same(series.x, sorted(value for _, value in good(run, tag)))
        assert series.y[-1] == pytest.approx(100 * len(good(run, tag)) / len(read(run)), rel=1e-9)


def counted(series: PlotSeries, values: Sequence[float]) -> list[int]:
    """How many of the values lie in each bar; the last one has its right edge."""
    assert series.x_low is not None and series.x_high is not None
    bars = list(zip(series.x_low.tolist(), series.x_high.tolist(), strict=True))
    last = bars[-1][1]
    return [sum(low <= value < high or value == high == last for value in values) for low, high in bars]


@pytest.mark.parametrize(("name", "tag"), [("ttft_histogram", "time_to_first_token"), ("latency_histogram", "request_latency")])
def test_bars_of_a_histogram_have_all_requests(run: FinishedRun, name: str, tag: str) -> None:
    (series,) = draw(name, run).series
    values = [value for _, value in good(run, tag)]
    assert series.y.tolist() == counted(series, values) and sum(series.y) == len(values)


def test_cells_of_the_heat_map_have_all_requests(run: FinishedRun) -> None:
    (cells,) = draw("latency_heat_map", run).series
    assert cells.values is not None
    rows = good(run, "request_latency")
    points = [((at - rows[0][0]) / 1e9, value) for at, value in rows]
    edges = zip(*(getattr(cells, end).tolist() for end in ("x_low", "x_high", "y_low", "y_high", "values")), strict=True)
    for left, right, bottom, top, count in edges:
        assert sum(left <= x < right and bottom <= y < top for x, y in points) == count
    assert sum(cells.values.tolist()) == len(points)


def test_points_by_prompt_length_are_the_requests(run: FinishedRun) -> None:
    wanted = sorted((length, ttft) for _, length, ttft in good(run, "input_sequence_length", "time_to_first_token"))
    if made_by(run):
        assert len({length for length, _ in wanted}) == 1, "one length has no slope"
        assert Registry.discover().load("plots", "ttft_by_prompt_length")(None).draw([run]) is None
        return
    (series,) = draw("ttft_by_prompt_length", run).series
    assert sorted(zip(series.x.tolist(), series.y.tolist(), strict=True)) == wanted


def under_way(spans: Sequence[tuple[float, float, float]], at: float) -> float:
    return math.fsum(weight for begin, end, weight in spans if begin <= at < end)


def test_requests_in_flight_have_begun_and_not_ended(run: FinishedRun) -> None:
    (series,) = draw("requests_in_flight", run).series
    begin = first_start(run, failed=True)
    instants = [(line["metadata"]["request_start_ns"], line["metadata"]["request_end_ns"]) for line in read(run)]
    for x, y in zip(series.x.tolist(), series.y.tolist(), strict=True):
        after = begin + x * 1e9 + 1000  # instants are told to 256 ns
        assert y == sum(start <= after < end for start, end in instants)


def test_token_rate_spreads_each_answer_over_its_generation(run: FinishedRun) -> None:
    (series,) = draw("dispersed_throughput_over_time", run).series
    (first, *_) = draw("gpu_utilization_and_throughput_over_time", run).series
    begin, spans = first_start(run), []
    for line in read(run):
        metrics, about = line["metrics"], line["metadata"]
        if not line["error"] and {"time_to_first_token", "output_sequence_length"} <= metrics.keys():
            start = (about["request_start_ns"] - begin) / 1e9 + metrics["time_to_first_token"]["value"] / 1e3
            end = (about["request_end_ns"] - begin) / 1e9
            spans.append((start, end, metrics["output_sequence_length"]["value"] / (end - start)))
    every = list(zip(series.x.tolist(), series.y.tolist(), strict=True))
    for (x, y), (following, _) in pairwise(every):
        if following - x > 1e-5:
            assert y == pytest.approx(under_way(spans, (x + following) / 2), rel=2e-5, abs=1e-6)
    assert every[-1][1] == 0
    same(first.y, series.y.tolist())


def test_arrivals_are_counted_when_they_are_due_and_when_they_start(run: FinishedRun) -> None:
    if made_by(run):
        assert Registry.discover().load("plots", "arrivals_asked_and_delivered")(None).draw([run]) is None
        return
    due, started = draw("arrivals_asked_and_delivered", run).series
    about = [line["metadata"] for line in read(run)]
    begin = min(each["due_ns"] for each in about)
    for series, field in ((due, "due_ns"), (started, "request_start_ns")):
        moments = sorted((each[field] - begin) / 1e9 for each in about)
        for x, y in zip(series.x.tolist(), series.y.tolist(), strict=True):
            assert y == sum(moment <= x + 6e-7 for moment in moments)
        assert series.y[-1] == len(about)


def test_failures_stand_in_the_window_of_their_end(run: FinishedRun) -> None:
    begin, seen = first_start(run, failed=True), 0
    for series in draw("failures_over_time", run).series:
        assert series.y_low is not None
        failed = [(line["metadata"], line["error"]) for line in read(run) if line["error"]]
        named = [(" ".join(filter(None, (str(error["code"] or ""), error["type"]))), about) for about, error in failed]
        ends = [(about["request_end_ns"] - begin) / 1e9 for name, about in named if name == series.name]
        assert (series.y - series.y_low).tolist() == counted(series, ends)
        seen += len(ends)
    assert seen == sum(bool(line["error"]) for line in read(run))


@pytest.mark.parametrize("name", ["ttft_timeline", "request_timeline"])
def test_lanes_have_the_stages_of_each_request(run: FinishedRun, name: str) -> None:
    figure = draw(name, run)
    wait, rest = figure.series
    ends = {line["metadata"]["request_start_ns"]: line["metadata"]["request_end_ns"] for line in read(run)}
    every = good(run, "time_to_first_token")
    rows = every[:: math.ceil(len(every) / 200) if name == "ttft_timeline" else 1]
    begin = every[0][0]
    assert wait.x_low is not None and rest.x_high is not None
    same(wait.x_low, [(at - begin) / 1e9 for at, _ in rows])
    same(wait.x_high, [(at - begin) / 1e9 + ttft / 1e3 for at, ttft in rows])
    same(rest.x_high, [(ends[int(at)] - begin) / 1e9 for at, _ in rows])
    placed = list(zip(wait.y.tolist(), wait.x_low.tolist(), rest.x_high.tolist(), strict=True))
    for number in range(len(figure.lanes)):
        bars = [(low, high) for lane, low, high in placed if lane == number]
        assert bars and all(high <= low for (_, high), (low, _) in pairwise(bars)), "one at a time"


@pytest.mark.parametrize(
    ("name", "tag"),
    [("timeslices_ttft", "time_to_first_token"), ("timeslices_itl", "inter_token_latency"),
     ("timeslices_throughput", "output_token_throughput"), ("timeslices_latency", "request_latency")],
)  # fmt: skip
def test_slices_are_those_of_the_file(run: FinishedRun, name: str, tag: str) -> None:
    figure = draw(name, run)
    document = json.loads((run.directory / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    report = json.loads((run.directory / "profile_export_aiperf.json").read_text())[tag]
    wanted = {}
    for each in (each for each in document if tag in each):
        spread = [one.get("std") for one in (report, each[tag])]
        outside = None not in spread and abs(each[tag]["avg"] - report["avg"]) > sum(spread)
        wanted[each.get("start_ns", each.get("timeslice_index", 0) * 500_000_000)] = (each[tag]["avg"], outside)
    begin = min(wanted)
    found = {}
    for series in figure.series:
        assert series.x_low is not None
        for low, value in zip(series.x_low.tolist(), series.y.tolist(), strict=True):
            found[begin + round(low * 1e3) * 10**6] = (value, series.name.startswith("outside"))
    assert found == wanted and [line.value for line in figure.lines] == [report["avg"]]


@pytest.mark.parametrize(
    ("name", "metric"),
    [("gpu_utilization_and_throughput_over_time", "gpu_utilization"),
     ("gpu_power_and_throughput_over_time", "gpu_power_usage")],
)  # fmt: skip
def test_samples_of_gpus_are_those_of_the_file(run: FinishedRun, name: str, metric: str) -> None:
    series = [each for each in draw(name, run).series if each.axis == "y2"]
    rows = [json.loads(line) for line in (run.directory / "gpu_telemetry_export.jsonl").read_text().splitlines()]
    begin = first_start(run)
    assert len(series) == 2
    newer = {"gpu_utilization": "nvidia_gpu_utilization", "gpu_power_usage": "nvidia_power_usage"}[metric]
    for number, each in enumerate(series):
        mine = [row for row in rows if row["gpu_index"] == number]
        same(each.y, [row["telemetry_data"][newer if newer in row["telemetry_data"] else metric] for row in mine])
        same(each.x, [(row["timestamp_ns"] - begin) / 1e9 for row in mine])


def test_samples_of_servers_are_those_of_the_file(run: FinishedRun) -> None:
    figure = draw("server_requests_over_time", run)
    rows = [json.loads(line) for line in (run.directory / "server_metrics_export.jsonl").read_text().splitlines()]
    every = [f"vllm:{name}" for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")]
    for series, metric in zip(figure.series[1:], [name for name in every if name in rows[0]["metrics"]], strict=True):
        same(series.y, [row["metrics"][metric][0]["value"] for row in rows])
        same(series.x, [(row["timestamp_ns"] - first_start(run, failed=True)) / 1e9 for row in rows])


def asked(report: Any) -> int:
    """The concurrency that a run was to have."""
    about = report["input_config"]
    return int((about["loadgen"] if "loadgen" in about else about["phases"][0])["concurrency"])


@pytest.mark.parametrize(
    ("name", "x", "ys"),
    [
        ("throughput_per_user", "output_token_throughput_per_user", ["output_token_throughput"]),
        ("throughput_over_concurrency", "effective_concurrency", ["output_token_throughput"]),
        ("ttft_under_load", "request_throughput", ["time_to_first_token p99", "time_to_first_token p50"]),
        ("latency_under_load", "request_throughput", ["request_latency p99", "request_latency p90", "request_latency p50"]),
        ("goodput_under_load", "request_throughput", ["goodput"]),
        ("ttft_vs_throughput", "time_to_first_token", ["request_throughput"]),
        ("pareto_curve_throughput_per_gpu_vs_latency", "request_latency", ["output_token_throughput"]),
        ("pareto_curve_throughput_per_gpu_vs_interactivity", "output_token_throughput_per_user", ["output_token_throughput"]),
    ],
)
def test_points_of_runs_are_the_statistics_of_their_reports(runs: list[FinishedRun], name: str, x: str, ys: list[str]) -> None:
    documents = [report_of(run) for run in runs]
    if any(x not in each for each in documents):
        assert made_by(runs[0]) == "0.7.0" and x == "effective_concurrency", "0.7.0 does not know it"
        return
    figure = draw(name, *runs)
    documents.sort(key=asked)
    gpus = 2 if name.startswith("pareto") and made_by(runs[0]) else 1
    for series, y in zip(figure.series, ys, strict=False):
        tag, _, stat = y.partition(" ")
        assert series.x.tolist() == [each[x]["avg"] for each in documents]
        assert series.y.tolist() == [each[tag][stat or "avg"] / gpus for each in documents]
    assert figure.series[0].labels == tuple(f"concurrency {asked(each)}" for each in documents)
    if name.startswith("pareto"):
        points = list(zip(figure.series[0].x.tolist(), figure.series[0].y.tolist(), strict=True))
        sign = -1 if x == "request_latency" else 1
        best = sorted(a for a in points if not any(sign * b[0] >= sign * a[0] and b[1] >= a[1] and b != a for b in points))
        assert sorted(zip(figure.series[-1].x.tolist(), figure.series[-1].y.tolist(), strict=True)) == best


def test_intervals_of_repeats_are_students(runs: list[FinishedRun]) -> None:
    figure = draw("latency_throughput_uncertainty", CellRuns("cell", runs))
    documents, gpus = [report_of(run) for run in runs], 2 if made_by(runs[0]) else 1
    line, cross = figure.series
    t = 4.302652729696142  # the table's value for two degrees of freedom at 97.5 %
    assert t > NormalDist().inv_cdf(0.975)
    for middle, low, high, tag in (
        (line.x, cross.x_low, cross.x_high, "request_latency"), (line.y, cross.y_low, cross.y_high, "output_token_throughput"),
    ):  # fmt: skip
        assert low is not None and high is not None
        values = [each[tag]["avg"] / (gpus if tag == "output_token_throughput" else 1) for each in documents]
        half = t * stdev(values) / math.sqrt(3)
        same([middle[0], low[0], high[0]], [mean(values), mean(values) - half, mean(values) + half])


def test_every_installed_picture_is_checked_here() -> None:
    mine = {row.name for row in Registry.discover().all("plots") if row.package.startswith("aiperf-plot-")}
    text = Path(__file__).read_text()
    assert len(mine) > 30
    assert [name for name in sorted(mine) if f'"{name}"' not in text] == []


def test_the_page_tells_what_to_read_in_every_picture() -> None:
    mine = {row.name for row in Registry.discover().all("plots") if row.package.startswith("aiperf-plot-")}
    page = (Path(__file__).parent.parent / "docs" / "pictures.md").read_text()
    assert [name for name in sorted(mine) if f"`{name}`" not in page] == []


def test_the_page_shows_every_installed_picture() -> None:
    mine = {row.name for row in Registry.discover().all("plots") if row.package.startswith("aiperf-plot-")}
    docs = Path(__file__).parent.parent / "docs"
    files = {path.stem: path for path in (docs / "pictures").iterdir()}
    assert files.keys() == mine, "make pictures draws them"
    page = (docs / "pictures.md").read_text()
    assert [name for name in sorted(mine) if f"![{name}](pictures/{name}.png)" not in page] == []
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in files.values())
    assert sum(path.stat().st_size for path in files.values()) < 1_500_000
