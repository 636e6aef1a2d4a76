"""What a configuration file comes to: the same as a command line, and a sentence with its line where it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from aiperf.cli.commandline import FIRST, CommandLine, Scan, options_of
from aiperf.errors import ConfigError
from aiperf.registry.registry import Registry
from aiperf.sdk.configuration import Option, OptionValue
from aiperf.sdk.descriptor import Descriptor, OptionSpec
from aiperf_configuration_yaml import Yaml
from aiperf_configuration_yaml.contract import YamlContract
from aiperf_configuration_yaml.entries import read
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

ISL = OptionSpec("isl", ("--isl",), "Length.", "int", metavar="TOKENS", place="dataset.prompts.isl.mean")
SPREAD = OptionSpec("isl_stddev", ("--isl-stddev",), "Spread.", "float", metavar="TOKENS", place="dataset.prompts.isl.stddev")
SHAPE = OptionSpec("shape", ("--shape",), "Shape.", metavar="JSON", place="dataset.prompts.isl.distribution")
MIX = OptionSpec("mix", ("--mix",), "Lengths together.", metavar="DIST", place="dataset.prompts.sequence_distribution")
SLOS = OptionSpec("slos", ("--goodput", "-g"), "Objectives.", arity="many", metavar="TAG:NUMBER", place="slos")
GREETING = OptionSpec("greeting", ("--greeting",), "First words.", metavar="TEXT")
LOUD = OptionSpec("is_loud", ("--loud",), "Loudly.", "flag", "none", negative="--soft")
WAIT = OptionSpec("timeout_s", ("--wait",), "Patience.", "float", metavar="SECONDS", place="endpoint.wait_for_model_timeout")
PLUGINS = (
    Descriptor("companions", "readiness", "m:R", "acme", "1", options=(WAIT,)),
    Descriptor("datasets", "synthetic", "m:D", "acme", "1", options=(ISL, SPREAD, MIX)),
    Descriptor("metrics", "goodput", "m:G", "acme", "1", options=(SLOS,)),
    Descriptor("endpoints", "parrot", "m:P", "acme", "1", options=(GREETING, LOUD)),
)
START = "benchmark:\n  model: m\n"


class TestItKeepsTheContract(YamlContract):
    pass


def options() -> tuple[Option, ...]:
    return options_of((*Registry([]).kernel_options, *FIRST), PLUGINS)


def filled(folder: Path, text: str, line: str = "") -> Scan:
    path = folder / "run.yaml"
    path.write_text(text)
    read = CommandLine(line.split()).resolve(options())
    read.add(Yaml(path).values(options()))
    return read


def given(folder: Path, text: str, line: str = "") -> dict[str, object]:
    """What is set, by field; a plugin's as ``owner.field``."""
    read = filled(folder, text, line)
    assert [error.lines() for error in read.errors] == []
    values = read.values()
    return {f"{owner}.{field}" if owner else field: value for owner, below in values.items() for field, value in below.items()}


def wrong(folder: Path, text: str) -> list[str]:
    return [" / ".join(line.strip() for line in error.lines()) for error in filled(folder, text).errors]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "  endpoint: {url: http://h, streaming: true, timeout: 2m}",
            {"urls": ["http://h"], "streaming": True, "request_timeout_s": "120"},
        ),
        (
            "  endpoint: {urls: [http://a, http://b], urlStrategy: weighted}",
            {"urls": ["http://a", "http://b"], "url_strategy": "weighted"},
        ),
        ("  endpoint: {streaming: false, api_key: k}", {"streaming": False, "api_key": "k"}),
        ("  endpoint: {headers: {X-Team: perf, B: 1}}", {"headers": ['{"X-Team": "perf", "B": 1}']}),
        (
            "  endpoint: {extra: {t: 0.7, s: '1', n: {camelCase: [1]}}}",
            {"extra_inputs": ['{"t": 0.7, "s": "1", "n": {"camelCase": [1]}}']},
        ),
        (
            "  endpoint: {waitForModelTimeout: 1.5m, connection-reuse: never}",
            {"companions:readiness.timeout_s": "90", "connection_reuse": "never"},
        ),
        ("  dataset: {isl: 512}", {"datasets:synthetic.isl": "512"}),
        (
            "  dataset: {prompts: {isl: {mean: 5, stddev: 2}}}",
            {"datasets:synthetic.isl": "5", "datasets:synthetic.isl_stddev": "2"},
        ),
        ("  dataset: {type: synthetic, name: main, isl: {type: fixed, value: 7}}", {"datasets:synthetic.isl": "7"}),
        (
            "  datasets: [{path: x.jsonl, format: multi_turn, entries: 3}]",
            {"input_file": "x.jsonl", "dataset_type": "multi_turn", "entries": "3"},
        ),
        ("  dataset: {type: riddles}", {"dataset_type": "riddles"}),
        (
            "  dataset: {prompts: {sequenceDistribution: [{isl: 1, islStddev: 2, probability: 100}]}}",
            {"datasets:synthetic.mix": '[{"isl": 1, "isl_stddev": 2, "probability": 100}]'},
        ),
        (
            "  slos: {request_latency: 50, time_to_first_token: p99<4}",
            {"metrics:goodput.slos": ["request_latency:50", "time_to_first_token:p99<4"]},
        ),
        (
            "  plugins: {endpoints:Parrot: {greeting: Ahoy, isLoud: false}}",
            {"endpoints:parrot.greeting": "Ahoy", "endpoints:parrot.is_loud": False},
        ),
        ("  artifacts: {records: false, summary: [json]}", {"export_level": "summary"}),
        (
            "  artifacts: {records: [jsonl], raw: true, sliceDuration: 250ms}",
            {"export_level": "raw", "slice_duration_s": "0.25"},
        ),
        ("  tokenizer: builtin", {"tokenizer": "builtin"}),
        (
            "  tokenizer: {name: builtin}\n  logging: {level: DEBUG}\n  gpuTelemetry: {enabled: false}",
            {"tokenizer": "builtin", "log_level": "DEBUG"},
        ),
        ("  runtime: {ui: none, workers: null}", {"ui": "none"}),
        ("  otel: {enabled: no}", {}),
    ],
)
def test_a_value_is_the_option_of_its_place(tmp_path: Path, text: str, expected: dict[str, object]) -> None:
    assert given(tmp_path, START + text) == {"models": ["m"], **expected}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ("model: a", {"models": ["a"]}),
        ("models: [a, b]", {"models": ["a", "b"]}),
        (
            "models: {strategy: random, items: [{name: a}, {name: b, weight: null}]}",
            {"models": ["a", "b"], "model_selection_strategy": "random"},
        ),
    ],
)
def test_models_are_a_name_names_or_mappings(tmp_path: Path, models: str, expected: dict[str, object]) -> None:
    assert given(tmp_path, f"benchmark: {{{models}}}") == expected


@pytest.mark.parametrize(("phase", "expected"), [
    ("type: poisson, rate: 4", False), ("rate: 4", None), ("type: fixed_schedule", True), ("fixedSchedule: true", True),
    ("type: concurrency, fixedSchedule: true", True), ("type: concurrency, schedulingMode: bursts", None),
])  # fmt: skip
def test_a_phase_with_a_type_does_not_become_a_replay(tmp_path: Path, phase: str, expected: bool | None) -> None:
    below = f"{{dataset: {{type: file, path: trace.jsonl}}, profiling: {{{phase}}}}}"
    assert given(tmp_path, f"benchmark: {below}").get("fixed_schedule") is expected
    assert "fixed_schedule" not in given(tmp_path, "benchmark: {dataset: {isl: 3}, profiling: {type: poisson, rate: 4}}")


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ("{type: concurrency, concurrency: 8, requests: 100}", {"concurrency": "8", "request_count": "100"}),
        ("{type: concurrency, sessions: 9}", {"concurrency": "1", "session_count": "9"}),
        ("{rate: 4, fixedSchedule: false}", {"request_rate": "4", "fixed_schedule": False}),
        (
            "[{kind: warmup, alone: false, requests: 3}, {sessions: 9}]",
            {"warmup_request_count": "3", "session_count": "9"},
        ),
        (
            "[{kind: warmup, alone: true, requests: 3}, {sessions: 9}]",
            {"warmup_alone": True, "warmup_request_count": "3", "session_count": "9"},
        ),
        (
            "{type: poisson, rate: 30, duration: 2m, gracePeriod: 60}",
            {"arrival_pattern": "poisson", "request_rate": "30", "benchmark_duration_s": "120", "benchmark_grace_s": "60"},
        ),
        (
            "{type: gamma, rate: 5, smoothness: 2, requests: 3}",
            {"arrival_pattern": "gamma", "request_rate": "5", "arrival_smoothness": "2", "request_count": "3"},
        ),
        ("{type: constant, rateSeries: rates.json}", {"arrival_pattern": "constant", "request_rate_series": "rates.json"}),
        (
            "{type: poisson, rate: 30, rateRamp: 30s, concurrency: 4, concurrencyRamp: {duration: 5, strategy: exponential}}",
            {
                "arrival_pattern": "poisson",
                "request_rate": "30",
                "rate_ramp_s": "30",
                "concurrency": "4",
                "concurrency_ramp_s": "5",
                "ramp": "exponential",
            },
        ),
        (
            "{type: user_centric, rate: 2, users: 6, requests: 12}",
            {"user_centric_rate": "2", "users": "6", "request_count": "12"},
        ),
        (
            "{type: fixed-schedule, autoOffset: false, endOffset: 900}",
            {"fixed_schedule": True, "fixed_auto_offset": False, "fixed_end_ms": "900"},
        ),
        (
            "[{kind: warmup, type: fixed_schedule, startOffset: 5, endOffset: 900}, {sessions: 9}]",
            {"warmup_alone": True, "warmup_fixed_schedule": True, "warmup_start_ms": "5", "warmup_end_ms": "900",
             "session_count": "9"},
        ),
        (
            "{type: concurrency, cancellation: {rate: 10, delay: 500ms}, failedRequestThreshold: 0.2}",
            {"concurrency": "1", "cancellation_pct": "10", "cancellation_delay_s": "0.5", "failed_threshold": "0.2"},
        ),
        (
            "[{type: constant, rate: 4, requests: 2, exclude_from_results: yes}, {type: concurrency, requests: 5}]",
            {
                "warmup_alone": True,
                "warmup_arrival_pattern": "constant",
                "warmup_request_rate": "4",
                "warmup_request_count": "2",
                "concurrency": "1",
                "request_count": "5",
            },
        ),
    ],
)
def test_phases_are_load_options(tmp_path: Path, phases: str, expected: dict[str, object]) -> None:
    assert given(tmp_path, f"{START}  phases: {phases}") == {"models": ["m"], **expected}


def test_a_ramp_of_nothing_is_left_out_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    phases = "  phases: {type: concurrency, concurrency: 9, prefillRamp: 30s}"
    assert given(tmp_path, f"{START}{phases}") == {"models": ["m"], "concurrency": "9"}
    assert "benchmark.phases.prefillRamp (run.yaml:3): there is no prefillConcurrency that could rise" in caplog.text


def test_a_warmup_and_a_profiling_phase_may_stand_by_themselves(tmp_path: Path) -> None:
    text = f"{START}  warmup: {{type: concurrency, requests: 3}}\n  profiling: {{type: poisson, rate: 9, requests: 20}}\n"
    assert given(tmp_path, text) == {
        "models": ["m"], "warmup_alone": True, "warmup_concurrency": "1", "warmup_request_count": "3",
        "arrival_pattern": "poisson", "request_rate": "9", "request_count": "20",
    }  # fmt: skip


def test_beside_the_benchmark_stand_the_seed_and_what_is_installed(tmp_path: Path) -> None:
    text = f'schemaVersion: "2.0"\nrandomSeed: 7\npins: {{endpoints:chat: acme-chat}}\ndisabled: [exporters:csv]\n{START}'
    assert given(tmp_path, text) == {
        "random_seed": "7", "pins": ["endpoints:chat=acme-chat"], "disabled": ["exporters:csv"], "models": ["m"],
    }  # fmt: skip
    assert Yaml(tmp_path / "run.yaml").plugins() == {"pins": ["endpoints:chat=acme-chat"], "disabled": ["exporters:csv"]}


def test_what_is_typed_wins(tmp_path: Path) -> None:
    text = f"{START}  endpoint: {{urls: [http://a, http://b], streaming: true}}\n  phases: {{type: poisson, rate: 3}}\n"
    found = given(tmp_path, text, "--url http://c --request-rate 4")
    assert found == {
        "models": ["m"],
        "urls": ["http://c"],
        "streaming": True,
        "arrival_pattern": "poisson",
        "request_rate": "4",
    }


def test_what_is_given_is_named_by_its_line(tmp_path: Path) -> None:
    read = filled(tmp_path, f"{START}  endpoint:\n    timeOut: 3\n    timeout: 4\n")
    (error,) = read.errors
    assert error.message == "benchmark.endpoint.timeOut (run.yaml:4): there is no such key"
    assert read.typed()["request_timeout_s"] == "benchmark.endpoint.timeout (run.yaml:5)"
    assert read.shown == [], "the command stays as typed"


def test_the_environment_fills_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hush")
    text = f"{START}  endpoint: {{apiKey: '${{SECRET}}', url: 'http://${{HOST_OF_MINE:there}}:80'}}"
    assert given(tmp_path, text) == {"models": ["m"], "api_key": "hush", "urls": ["http://there:80"]}


def test_anchors_and_merges_are_yaml_as_ever(tmp_path: Path) -> None:
    text = f"{START}  warmup: &load {{type: concurrency, requests: 3}}\n  profiling: {{<<: *load, requests: 5}}\n"
    assert given(tmp_path, text)["request_count"] == "5"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "benchmark: {model: m, endpiont: {}}",
            "benchmark.endpiont (run.yaml:1): there is no such key / did you mean endpoint?",
        ),
        (
            "benchmark: {endpoint: {streaming: perhaps}}",
            "benchmark.endpoint.streaming (run.yaml:1): 'perhaps' is not true or false",
        ),
        ("benchmark: {endpoint: {url: a, urls: [b]}}", "urls (run.yaml:1): the same as benchmark.endpoint.url (run.yaml:1)"),
        (
            "benchmark: {models: [{name: a, lora: b}]}",
            "benchmark.models[0].lora (run.yaml:1): there is no such key / known here: name",
        ),
        ("benchmark: {warmup: {concurrency: 1}}", "it has no type / write one of concurrency, poisson"),
        ("benchmark: {phases: {type: poisson}}", "a phase of type poisson needs its rate"),
        (
            "benchmark: {phases: {type: concurrency, rate: 4}}",
            "benchmark.phases.rate (run.yaml:1): a phase of type concurrency has none",
        ),
        (
            "benchmark: {phases: [{type: concurrency}, {type: concurrency}]}",
            "benchmark.phases[1] (run.yaml:1): a run has one profiling phase",
        ),
        ("benchmark: {phases: [3]}", "benchmark.phases[0] (run.yaml:1): it must be a mapping"),
        ("benchmark: {phases: [{kind: cooldown, type: concurrency}]}", "this is the profiling"),
        ("benchmark: {warmup: {type: concurrency, kind: profiling}}", "this is the warmup"),
        ("benchmark: {profiling: {type: concurrency, excludeFromResults: true}}", "the warmup is left out of the results"),
        (
            "benchmark: {phases: {type: concurrency, duration: 1, gracePeriod: 2, grace_period: 3}}",
            "benchmark.phases.grace_period (run.yaml:1): the same as benchmark.phases.gracePeriod (run.yaml:1)",
        ),
        ("benchmark: {dataset: {isl: {mean: 4, MEAN: 5}}}", "benchmark.dataset.isl.MEAN (run.yaml:1): the same as"),
        ("random_seed: 3\nrandomSeed: 4\nbenchmark: {}", "randomSeed (run.yaml:2): the same as random_seed (run.yaml:1)"),
        ("benchmark: {endpoint: http://h}", "benchmark.endpoint (run.yaml:1): there is no such key"),
        ("benchmark: {endpoint: {streaming: {a: 1}}}", "{'a': 1} is not true or false"),
        ("benchmark: {plugins: [a]}", "it must be a mapping, of options by category:name"),
        ("benchmark: {plugins: {endpoints:parrot: x}}", "endpoints:parrot (run.yaml:1): it must be a mapping"),
        (
            "benchmark: {phases: {type: poisson, rate: 1, rateRamp: {strategy: linear}, concurrencyRamp: {strategy: sine}}}",
            "benchmark.phases.concurrencyRamp.strategy (run.yaml:1): all ramps of a run rise alike, and",
        ),
        ("benchmark: {profiling: {type: poisson, rate: 1, rateRamp: {curve: linear}}}", "known here: duration, strategy"),
        ("benchmark: {dataset: {type: file}}", "benchmark.dataset (run.yaml:1): a file needs its path"),
        ("benchmark: {dataset: {type: synthetic, path: x}}", "a path belongs to type: file"),
        ("benchmark: {dataset: x}", "benchmark.dataset (run.yaml:1): it must be a mapping"),
        ("benchmark: {datasets: [{isl: 1}, {isl: 2}]}", "it has 2 data sets; a run uses one"),
        ("benchmark: {dataset: {isl: {type: lognormal, mean: 4}}}", "'lognormal' can't be drawn; fixed and normal can"),
        ("benchmark: {artifacts: {records: [csv]}}", "what can be written is jsonl, or false for none"),
        ("benchmark: {artifacts: {summary: false}}", "the summary is always written"),
        (
            "benchmark: {artifacts: {records: false, raw: true}}",
            "raw answers follow the records, which benchmark.artifacts.records",
        ),
        ("benchmark: {serverMetrics: {enabled: true}}", "benchmark.serverMetrics (run.yaml:1): it is for the package"),
        (
            "benchmark: {plugins: {endpoints:parot: {}}}",
            "no installed plugin of that name has options / did you mean endpoints:parrot?",
        ),
        ("benchmark: {plugins: {endpoints:parrot: {greetings: x}}}", "there is no such key / did you mean greeting?"),
        ("plot: {visualization: {}}\nbenchmark: {model: m}", "plot (run.yaml:1): pictures behind a run are for the package"),
        ("bench: {}\nbenchmark: {model: m}", "bench (run.yaml:1): there is no such key / did you mean benchmark?"),
        ('schemaVersion: "1.0"\nbenchmark: {model: m}', "'1.0' can't be read; 2.0 can"),
        ("randomSeed: 4", "run.yaml: benchmark: is missing"),
        (
            "benchmark: {model: m, phases: {type: concurency, concurrency: 3}}",
            "benchmark.phases.type (run.yaml:1): there is no type concurency / did you mean concurrency?",
        ),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(tmp_path: Path, text: str, sentence: str) -> None:
    (said,) = wrong(tmp_path, text)
    assert sentence in said


BOMB = "l0: &l0 [x]\n" + "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 8))
"""Eight lines of ten million values."""
MERGED = (
    "l0: &l0 {model: m}\n"
    + "".join(f"l{n}: &l{n} {{<<: [{', '.join([f'*l{n - 1}'] * 10)}]}}\n" for n in range(1, 8))
)  # fmt: skip


def test_aliases_repeat_what_is_short(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("benchmark: {model: &m [a, b], other: *m, third: {<<: &k {x: 1}, y: *m}, fourth: {<<: [*k], z: 2}}")
    assert read(path).plain["benchmark"] == {
        "model": ["a", "b"], "other": ["a", "b"], "third": {"x": 1, "y": ["a", "b"]}, "fourth": {"x": 1, "z": 2},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [1", "run.yaml:1 is not YAML: expected ',' or ']'"),
        ("", "run.yaml is empty"),
        ("- 1", "run.yaml holds no mapping"),
        ("benchmark:\n  model: m\n  model: n\n", "run.yaml:3: model stands here twice"),
        ("benchmark: &a {model: *a}", "benchmark.model (run.yaml:1) contains itself"),
        ("benchmark: {model: '${NOT_SET_ANYWHERE}'}", "benchmark.model (run.yaml:1): the variable NOT_SET_ANYWHERE is not set"),
        (
            "benchmark: {model: !!python/object:os.system {}}",
            "run.yaml:1: the tag tag:yaml.org,2002:python/object:os.system means",
        ),
        ("benchmark: {model: !!python/name:os.system x}", "is not YAML: could not determine a constructor"),
        ("\x00", "is not YAML"),
        (BOMB + "benchmark: {model: *l7}", "run.yaml: its aliases (*name) repeat more than 10,000 values"),
        (MERGED + "benchmark: {<<: *l7}", "run.yaml: its aliases (*name) repeat more than 10,000 values"),
        (MERGED + "<<: *l7\nbenchmark: {}", "run.yaml: its aliases (*name) repeat more than 10,000 values"),
        ("benchmark: " + "[" * 5000 + "]" * 5000, "run.yaml is nested too deeply to be read"),
    ],
)
def test_a_file_that_can_not_be_read_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        filled(tmp_path, text)
    assert sentence in raised.value.message


def test_the_body_of_a_template_has_expressions_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("benchmark: {endpoint: {template: {body: '{\"q\": {{ text }}}'}}}")
    assert read(path).plain == {"benchmark": {"endpoint": {"template": {"body": '{"q": {{ text }}}'}}}}


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--config .*none.yaml can't be read: No such file"):
        Yaml(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ConfigError, match=r"bytes.yaml can't be read"):
        Yaml(tmp_path / "bytes.yaml")


WORDS = """
schemaVersion randomSeed pins disabled benchmark sweep model models items name strategy endpoint url streaming headers extra tls
dataset datasets type path isl osl prompts mean stddev value turns phases warmup profiling kind excludeFromResults rate rateRamp
rate_series concurrency requests duration cancellation artifacts records raw summary slos tokenizer plugins runtime otel enabled
endpoints:parrot greeting
"""
KEYS = st.sampled_from(WORDS.split())
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["synthetic", "file", "poisson", "warmup", "gamma", "5m", ""])
)
VALUES = st.recursive(SCALARS, lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=5)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@drawn(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=8))
def test_whatever_is_in_it_is_read_or_refused(tmp_path: Path, top: dict[str, object], benchmark: dict[str, object]) -> None:
    read = filled(tmp_path, json.dumps(top | {"benchmark": benchmark}))
    assert all(error.message for error in read.errors)
    assert all(isinstance(value, str) for one in read.given for value in one.values)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("{mean: 500, median: 300}", {"mean": 500, "median": 300}),
        ("{type: lognormal, mean: 4, median: 4}", {"type": "lognormal", "mean": 4, "median": 4}),
        ("{mean: 4, stddev: 1, max: 6}", {"mean": 4, "stddev": 1, "max": 6}),
        ("{peaks: [{mean: 9, weight: 2}, {value: 3}]}", {"peaks": [{"mean": 9, "weight": 2}, {"value": 3}]}),
    ],
)
def test_a_distribution_of_more_than_a_mean_and_a_spread_is_an_option_of_its_own(
    tmp_path: Path, written: str, read: dict[str, object]
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(f"{START}  dataset: {{isl: {written}}}")
    plugin = Descriptor("datasets", "d", "m:D", "acme", "1", options=(ISL, SHAPE))
    known = options_of((*Registry([]).kernel_options, *FIRST), (plugin,))
    values = Yaml(path).values(known)
    (value,) = [one for one in values if isinstance(one, OptionValue) and one.option.spec.field == "shape"]
    assert json.loads(value.values[0]) == read
    assert value.typed == "benchmark.dataset.isl (run.yaml:3)"


@pytest.mark.parametrize(
    ("written", "line", "left"),
    [
        ("{mean: 500, median: 300}", "--isl 30", {"isl": "30"}),
        ("{mean: 500, median: 300}", "--isl 30 --isl-stddev 4", {"isl": "30", "isl_stddev": "4"}),
        ("{mean: 500, stddev: 9}", "--shape {}", {"shape": "{}"}),
        ("{mean: 500, stddev: 9}", "--isl 30", {"isl": "30", "isl_stddev": "9"}),
        ("{mean: 500, median: 300}", "--isl-stddev 4", {"shape": '{"mean":500,"median":300}', "isl_stddev": "4"}),  # refused
    ],
)
def test_a_typed_length_wins_over_a_distribution(tmp_path: Path, written: str, line: str, left: dict[str, str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(f"{START}  dataset: {{isl: {written}}}")
    plugin = Descriptor("datasets", "d", "m:D", "acme", "1", options=(ISL, SPREAD, SHAPE))
    known = options_of((*Registry([]).kernel_options, *FIRST), (plugin,))
    read = CommandLine(line.split()).resolve(known)
    read.add(Yaml(path).values(known))
    assert {field: str(text).replace(" ", "") for field, text in read.values()["datasets:d"].items()} == left


def test_a_plot_section_implies_pictures_and_keeps_its_lines(tmp_path: Path) -> None:
    place = "artifacts.auto_plot"
    flag = OptionSpec("auto_plot", ("--auto-plot",), "Draw.", "flag", "none", negative="--no-auto-plot", place=place)
    text = OptionSpec("plot_config", ("--plot-config",), "What.", metavar="YAML", place="plot")
    pictures = Descriptor("exporters", "p", "m:P", "acme", "1", options=(flag, text))
    known = options_of((*Registry([]).kernel_options, *FIRST), (pictures,))
    path = tmp_path / "run.yaml"
    section = "plot:\n  visualization:\n    single_run_plots:\n      a:\n        type: scatter\n        x: 'time: \"\u00e9\"'\n"
    off = "  artifacts: {autoPlot: false}\n"
    for benchmark, line, drawn_ in (("", "", True), ("", "--no-auto-plot", False), (off, "", False)):
        path.write_text(START + benchmark + section)
        scan = CommandLine(line.split()).resolve(known)
        scan.add(Yaml(path).values(known))
        assert [error.lines() for error in scan.errors] == []
        values = scan.values()["exporters:p"]
        assert values["auto_plot"] is drawn_
        written = str(values["plot_config"])
        assert [number for number, row in enumerate(written.split("\n"), 1) if '"type"' in row] == [7 + bool(benchmark)]
        assert yaml.safe_load(written)["visualization"]["single_run_plots"]["a"] == {"type": "scatter", "x": 'time: "\u00e9"'}
