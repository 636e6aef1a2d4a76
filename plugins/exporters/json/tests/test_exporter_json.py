import json
import math
from importlib.resources import files

import jsonschema
import pytest
from aiperf import ErrorDetails, Finding, FindingLevel, Measurement, Result, Summary, Target
from aiperf.sdk.scenario import ScenarioVerdict
from aiperf.sdk.summary import (
    Arrivals,
    DeliveredLoad,
    ErrorCount,
    GroupSummary,
    PhaseSummary,
    PluginUsed,
    Quantiles,
    SeriesSummary,
    SourceSummary,
    UrlSummary,
)
from aiperf.sdk.table import TAKEN, SummaryTable, TableColumn
from aiperf.testing import SummaryExporterContract
from aiperf_exporter_json import SummaryJson
from aiperf_exporter_json.document import iso
from msgspec.structs import replace

SCHEMA = json.loads(files("aiperf_exporter_json").joinpath("profile_export_aiperf.schema.json").read_text())
SECOND = 1_000_000_000
START = 1795188652_737015_999

LATENCY = {
    "avg": 4.625922109253247, "min": 3.3548085714285714, "max": 7.201257166666666, "sum": 92.51844218506494,
    "p1": 3.400517387142857, "p5": 3.58335265,
   "p10": 3.657365067032967, "p25": 3.92, "p50": 4.1843405, "p75": 4.63, "p90": 7.085160225, "p95": 7.17,
    "p99": 7.19, "std": 1.1975674464324462, "count": 20.0,
}  # fmt: skip

WARMUP = {"request_count": Result("request_count", "Request Count", "requests", {"avg": 2.0})}

SUMMARY = Summary(
    run_id="be4a9683ef6c",
    version="0.1.0",
    results={
        "total_token_throughput": Result("total_token_throughput", "Total Token Throughput", "tokens/sec", {"avg": 9.5}),
        "inter_token_latency": Result("inter_token_latency", "Inter Token Latency", "ms", LATENCY),
        "a_plugins_own": Result("a_plugins_own", "Own", "count", {"avg": 1.0}),
        "request_count": Result("request_count", "Request Count", "requests", {"avg": 20.0}),
        "request_throughput": Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 36.024932062932244}),
    },
    errors=(ErrorCount(ErrorDetails('{"error": "limit"}', "Too Many Requests", 429), 4), ErrorCount(ErrorDetails("gone"), 1)),
    phases=(
        PhaseSummary("warmup", "warmup", 0, START - SECOND, START, WARMUP, valid=2),
        PhaseSummary("profiling", "profiling", 1, START, START + SECOND, {}, valid=20, failed=5),
    ),
    measurement=Measurement(
        "kernel", True, Arrivals(25, 25, 0, 20, 5), "trustworthy", (), Quantiles(0.01, 0.02, 0.3), worker_cpu_pct=(12.5,),
        turnaround_ms=Quantiles(0.1, 0.2, 0.3), scope="inter-chunk",
    ),
    delivered=DeliveredLoad(25.0, None, 0),
    plugins=(PluginUsed("endpoints", "chat", "aiperf-endpoint-chat", "0.1.0"),),
    start_ns=START,
    end_ns=START + SECOND,
    title="LLM Metrics",
    command="aiperf profile -m mock --api-key ***",
    config={"endpoint": {"models": ["mock"]}},
    valid=20,
    failed=5,
    seed=7,
    observation_window_s=1.0,
)  # fmt: skip

WATTS = SeriesSummary("gpu_dcgm", 0, "nvidia_power_usage", "gauge", "W", {"gpu": "0", "uuid": "GPU-0"}, "", {"avg": 300.0})
GPUS = SourceSummary("gpu_dcgm", "aiperf-metric-gpu-dcgm", "0.1.0", 0.3, 7, 0, 0, (WATTS,))


def written(tmp_path, summary: Summary) -> dict:
    (artifact,) = SummaryJson(Target(tmp_path)).export(summary)
    assert artifact.path == tmp_path / "profile_export_aiperf.json"
    content = json.loads(artifact.path.read_text(), parse_constant=lambda word: pytest.fail(f"{word} was written"))
    jsonschema.validate(content, SCHEMA)
    for tag in summary.results:
        if tag in content and tag not in SCHEMA["properties"]:
            jsonschema.validate(content[tag], SCHEMA["$defs"]["MetricStats"])
    return content


def test_every_field_there_can_be_is_in_the_schema(tmp_path):
    survived = {name: LATENCY[name] for name in ("p50", "p90", "p99")} | {"count": 25.0, "censored": 5.0}
    url = UrlSummary("http://a", SUMMARY.results, 12, {"completed": 10, "cut": 2}, SUMMARY.errors)
    group = GroupSummary("task", "sums", 1, SUMMARY.results, 12, {"completed": 10, "cut": 2}, SUMMARY.errors)
    full = replace(
        SUMMARY, complete=False, incomplete_reason="the run was cancelled", warnings=("slow",), urls=(url, url),
        outcomes={"completed": 20, "failed": 5}, groups=(group,),
        survival={"request_latency": Result("request_latency", "", "ms", survived)},
        telemetry=(SourceSummary("vitals", "acme-vitals", "1.3.0", 0.5, 7, 1, 2), GPUS), finish_reasons={"stop": 20, "odd": 5},
        tables=(SummaryTable("queues", "Queues", (TableColumn("engine"),), (("a",),), ("shared",), package="acme 1.2"),),
        provenance={"source_type": "public_dataset"},
    )  # fmt: skip
    content = written(tmp_path, full)
    assert content.keys() - full.results.keys() - {"queues"} == SCHEMA["properties"].keys()
    assert content["survival"]["request_latency"]["censored"] == 5
    assert content["urls"][0]["metrics"]["inter_token_latency"]["p50"] == LATENCY["p50"]


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("outcomes", {"lost": 1}),
        ("outcomes", {"completed": 1.5}),
        ("finish_reasons", {"stop": 1.5}),
        ("finish_reasons", {}),
        ("survival", {"request_latency": {"unit": "ms", "count": 3}}),
        ("urls", [{"url": "http://a"}]),
        ("telemetry", [{"source": "vitals"}]),
    ],
)
def test_what_is_ours_has_a_shape_too(tmp_path, field, wrong):
    content = written(tmp_path, SUMMARY)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content | {field: wrong}, SCHEMA)


def test_a_scenarios_keys_stand_in_metadata_and_beside_the_metrics(tmp_path):
    assert "metadata" not in written(tmp_path, SUMMARY)
    verdict = ScenarioVerdict("mine", False, ("late",), metadata={"scenario": "mine", "counts": False}, fields={"late": ["a"]})
    content = written(tmp_path, replace(SUMMARY, scenario=verdict, provenance={"loader": "sharegpt"}))
    jsonschema.validate(content, SCHEMA)
    assert content["metadata"] == {"dataset": {"loader": "sharegpt"}, "scenario": "mine", "counts": False}
    assert (content["schema_version"], content["late"]) == ("1.5", ["a"])


def test_keys_come_in_the_references_order_and_other_metrics_last_by_tag(tmp_path):
    assert list(written(tmp_path, SUMMARY)) == [
        "schema_version", "aiperf_version", "benchmark_id", "request_throughput", "request_count", "inter_token_latency",
        "input_config", "run_info", "was_cancelled", "is_complete", "error_summary", "start_time", "end_time", "warmup_metrics",
        "observation_window", "delivered_load", "measurement", "phases", "plugins", "a_plugins_own", "total_token_throughput",
    ]  # fmt: skip


def test_statistics_are_unrounded_and_in_the_references_order(tmp_path):
    stats = written(tmp_path, SUMMARY)["inter_token_latency"]
    assert " ".join(stats) == "unit avg p1 p5 p10 p25 p50 p75 p90 p95 p99 min max std count sum"
    assert stats == {"unit": "ms", **LATENCY}
    assert isinstance(stats["count"], int)


def test_bounds_stand_beside_their_midpoints(tmp_path):
    known = {name: value for name, value in LATENCY.items() if name not in ("std", "count")}
    latency = Result("inter_token_latency", "ITL", "ms", LATENCY, lower=known, upper=known | {"p99": 8.5})
    found = written(tmp_path, replace(SUMMARY, results={"inter_token_latency": latency}))["inter_token_latency"]
    assert (found["lower"]["p99"], found["p99"], found["upper"]["p99"]) == (7.19, 7.19, 8.5)
    jsonschema.validate(found, SCHEMA["$defs"]["MetricStats"])


def test_a_metric_without_a_distribution_has_its_value_alone(tmp_path):
    assert written(tmp_path, SUMMARY)["request_throughput"] == {"unit": "requests/sec", "avg": 36.024932062932244}


def test_errors_keep_their_order_and_leave_out_what_is_unknown(tmp_path):
    assert written(tmp_path, SUMMARY)["error_summary"] == [
        {"error_details": {"code": 429, "type": "Too Many Requests", "message": '{"error": "limit"}'}, "count": 4},
        {"error_details": {"message": "gone"}, "count": 1},
    ]


def test_what_makes_the_run_repeatable_is_there(tmp_path):
    content = written(tmp_path, SUMMARY)
    assert content["run_info"] == {
        "benchmark_id": "be4a9683ef6c", "random_seed": 7, "trial": 0, "cli_command": "aiperf profile -m mock --api-key ***"
    }  # fmt: skip
    assert content["plugins"] == {
        "kernel": "0.1.0",
        "used": [
            {
                "category": "endpoints", "name": "chat", "distribution": "aiperf-endpoint-chat", "version": "0.1.0",
                "shadowed": [],
            }
        ],
    }  # fmt: skip
    assert content["input_config"] == {"endpoint": {"models": ["mock"]}}


def test_what_a_plugin_was_given_stands_with_it(tmp_path):
    used = PluginUsed("metrics", "goodput", "aiperf-metric-goodput", "0.1.0", options={"goodput": ["request_latency:10"]})
    (found,) = written(tmp_path, replace(SUMMARY, plugins=(used,)))["plugins"]["used"]
    assert found["options"] == {"goodput": ["request_latency:10"]}


def test_the_measurement_has_its_verdict_and_nothing_unknown(tmp_path):
    measurement = written(tmp_path, SUMMARY)["measurement"]
    assert measurement["verdict"] == "trustworthy"
    assert measurement["client_error_ms"] == {"p50": 0.01, "p99": 0.02, "max": 0.3}
    assert "schedule_slip_ms" not in measurement
    assert measurement["arrivals"]["planned"] == 25


def test_a_finding_has_its_numbers_and_its_package(tmp_path):
    numbers = {"merged_chunks": 150, "interval_p50_ms": 9.5, "lag_p99_ms": math.inf}
    found = Finding("merged_chunks", FindingLevel.SUSPECT, "merged", 0.8, numbers, "inter-chunk", "measurement", "acme 1.2")
    note = Finding("far", FindingLevel.NOTE, "far away", plugin="measurement", package="acme 1.2")
    measurement = replace(SUMMARY.measurement, verdict="suspect", reasons=("merged",), findings=(found, note))
    content = written(tmp_path, replace(SUMMARY, measurement=measurement))
    assert content["measurement"]["findings"] == [
        {"kind": "merged_chunks", "level": "suspect", "sentence": "merged", "confidence": 0.8,
         "numbers": {"merged_chunks": 150, "interval_p50_ms": 9.5}, "scope": "inter-chunk", "plugin": "measurement",
         "package": "acme 1.2"},
        {"kind": "far", "level": "note", "sentence": "far away", "confidence": 1.0, "plugin": "measurement",
         "package": "acme 1.2"},
    ]  # fmt: skip
    jsonschema.validate(content, SCHEMA)


def test_warmup_and_phases_stand_apart(tmp_path):
    content = written(tmp_path, SUMMARY)
    assert content["warmup_metrics"] == {"request_count": {"unit": "requests", "avg": 2.0}}
    assert [(phase["kind"], phase["duration"]["avg"], phase["failed"]) for phase in content["phases"]] == [
        ("warmup", 1.0, 0), ("profiling", 1.0, 5)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wall_ns", "text"),
    [
        (0, "1970-01-01T00:00:00.000000+00:00"),
        (START, "2026-11-20T15:30:52.737015+00:00"),
        (999_999_999, "1970-01-01T00:00:00.999999+00:00"),
    ],
)
def test_times_say_that_they_are_utc(wall_ns, text):
    assert iso(wall_ns) == text


def test_nothing_that_is_not_finite_is_written(tmp_path):
    broken = {
        "inter_token_latency": Result("inter_token_latency", "", "ms", {"avg": 1.0, "std": math.nan, "p50": math.inf}),
        "own": Result("own", "", "ms", {"avg": math.nan}),
    }
    measurement = replace(SUMMARY.measurement, loop_lag_ms=Quantiles(1.0, math.inf, math.nan))
    content = written(tmp_path, replace(SUMMARY, results=broken, measurement=measurement, extra={"own_block": {"x": math.nan}}))
    assert content["inter_token_latency"] == {"unit": "ms", "avg": 1.0}
    assert "own" not in content
    assert content["measurement"]["loop_lag_ms"] == {"p50": 1.0}
    assert content["own_block"] == {"x": None}


def test_a_run_in_which_everything_failed_is_written_too(tmp_path):
    failed = {"error_request_count": Result("error_request_count", "", "requests", {"avg": 3.0})}
    content = written(tmp_path, replace(SUMMARY, results=failed, valid=0, failed=3, phases=(), observation_window_s=None))
    assert content["error_request_count"] == {"unit": "requests", "avg": 3.0}
    assert len(content["error_summary"]) == 2


def test_a_cancelled_run_says_why_it_is_incomplete(tmp_path):
    cut = replace(SUMMARY, cancelled=True, complete=False, incomplete_reason="the run was cancelled")
    content = written(tmp_path, cut)
    assert content["was_cancelled"] is True
    assert content["is_complete"] is False
    assert content["incomplete_reason"] == "the run was cancelled"


def test_the_same_summary_gives_the_same_bytes(tmp_path):
    SummaryJson(Target(tmp_path, "one")).export(SUMMARY)
    SummaryJson(Target(tmp_path, "two")).export(replace(SUMMARY, results=dict(reversed(SUMMARY.results.items()))))
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_a_metrics_tag_never_displaces_a_field(tmp_path):
    odd = {"plugins": Result("plugins", "", "count", {"avg": 1.0})}
    assert "kernel" in written(tmp_path, replace(SUMMARY, results=odd))["plugins"]


class TestSummaryJsonKeepsTheContract(SummaryExporterContract):
    exporter = SummaryJson


def test_telemetry_has_every_series_by_phase(tmp_path):
    load = SeriesSummary("vitals", 1, "load", "gauge", "tasks", {"window": "1m"}, "Tasks", {"avg": 0.5, "std": math.nan})
    wait = SeriesSummary(
        "vitals", 1, "wait", "histogram", "", {}, "", {"count": 4.0}, {"1.0": 3.0, "+Inf": 4.0}, {"p50_estimate": 0.6}
    )
    source = SourceSummary("vitals", "acme-vitals", "1.3.0", 0.5, 7, 1, 2, (load, wait), ((load,),))
    content = written(tmp_path, replace(SUMMARY, telemetry=(source,)))
    assert content["telemetry"] == [
        {
            "source": "vitals", "distribution": "acme-vitals", "version": "1.3.0",
            "interval_s": 0.5, "samples": 7, "failed": 1, "missed": 2,
            "series": [
                {"phase": 1, "name": "load", "kind": "gauge", "unit": "tasks", "labels": {"window": "1m"},
                 "stats": {"avg": 0.5}, "description": "Tasks"},
                {"phase": 1, "name": "wait", "kind": "histogram", "stats": {"count": 4.0, "p50_estimate": 0.6},
                 "buckets": {"1.0": 3.0, "+Inf": 4.0}},
            ],
        }
    ]  # fmt: skip
    assert "telemetry" not in written(tmp_path, SUMMARY)


def test_rows_of_tables_stand_under_their_names_with_what_is_known(tmp_path) -> None:
    columns = (TableColumn("engine"), TableColumn("waiting", "requests"))
    table = SummaryTable("queues", "Queues", columns, (("a", 1.5), ("b", math.nan), ("c", None)), package="acme 1.2")
    made = written(tmp_path, replace(SUMMARY, tables=(table,)))
    assert made["queues"] == [{"engine": "a", "waiting": 1.5}, {"engine": "b"}, {"engine": "c"}]
    about = {"title": "Queues", "columns": [{"name": "engine", "unit": ""}, {"name": "waiting", "unit": "requests"}]}
    assert made["tables"] == {"queues": {**about, "package": "acme 1.2"}}


def test_no_table_can_have_the_name_of_another_key() -> None:
    assert set(SCHEMA["properties"]) <= TAKEN
