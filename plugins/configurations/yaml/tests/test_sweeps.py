"""Files of several cells, and expressions over variables."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf.cli.commandline import FIRST, CommandLine, options_of
from aiperf.errors import ConfigError
from aiperf.registry.registry import Registry
from aiperf.sdk.configuration import SweepSection
from aiperf.sdk.descriptor import Descriptor, OptionSpec
from aiperf.sdk.study import Dimension, Scenario, Setting
from aiperf_configuration_yaml import Yaml

ISL = OptionSpec("isl", ("--isl",), "Length.", "int", metavar="TOKENS", place="dataset.prompts.isl.mean")
SPREAD = OptionSpec("spread", ("--isl-stddev",), "Spread.", "float", metavar="TOKENS", place="dataset.prompts.isl.stddev")
SHAPE = OptionSpec("shape", ("--shape",), "Shape.", metavar="JSON", place="dataset.prompts.isl.distribution")
PAUSE = OptionSpec("pause", ("--pause",), "Pause.", "float", metavar="SECONDS", place="sweep.cooldown_seconds")
FILES = OptionSpec("files", ("--files",), "Files.", metavar="JSON", place="artifacts.user_files")
PLUGINS = (Descriptor("datasets", "synthetic", "m:D", "acme", "1", options=(ISL, SPREAD, SHAPE, PAUSE, FILES)),)
OPTIONS = options_of((*Registry([]).kernel_options, *FIRST), PLUGINS)
BASE = """
benchmark:
  model: m
  dataset: {type: synthetic, isl: {mean: 512, stddev: 50}}
  phases:
    - {name: heat, type: concurrency, requests: 5, concurrency: 2, excludeFromResults: true}
    - {name: main, type: poisson, rate: 20, concurrency: 64, duration: 2m}
"""


def yaml(folder: Path, text: str) -> Yaml:
    (folder / "run.yaml").write_text(text)
    return Yaml(folder / "run.yaml")


def section(folder: Path, text: str) -> SweepSection:
    found = yaml(folder, text).sweep(OPTIONS)
    assert found is not None
    return found


def given(file: Yaml, parameters: dict[str, Setting] | None = None) -> dict[str, object]:
    scan = CommandLine([]).resolve(OPTIONS)
    scan.add(file.values(OPTIONS, parameters))
    assert [error.lines() for error in scan.errors] == []
    return {field: value for below in scan.values().values() for field, value in below.items()}


@pytest.mark.parametrize(("path", "place", "key"), [
    ("concurrency", "profiling.concurrency", "concurrency"), ("rate", "profiling.rate", "rate"),
    ("phases.main.rate", "profiling.rate", "rate"), ("phases.profiling.requests", "profiling.requests", "requests"),
    ("phases.heat.requests", "warmup.requests", "requests"),
    ("profiling.gracePeriod", "profiling.grace_period", "grace_period"),
    ("datasets.default.prompts.isl", "dataset.prompts.isl", "isl"), ("dataset.isl.mean", "dataset.prompts.isl.mean", "mean"),
    ("benchmark.endpoint.type", "endpoint.type", "type"), ("variables.x", "variables.x", "x"), ("model", "models", "models"),
])  # fmt: skip
def test_a_path_may_be_written_in_several_ways(tmp_path: Path, path: str, place: str, key: str) -> None:
    found = section(tmp_path, f"sweep: {{type: grid, parameters: {{{path}: [1, 2]}}}}\n{BASE}")
    assert found.dimensions == (Dimension(place, key, (1, 2)),)


def test_lists_are_dimensions_in_the_order_of_their_paths(tmp_path: Path) -> None:
    lists = "{rate: [1, 2], dataset.isl.mean: [3, 4]}"
    found = section(tmp_path, f"sweep: {{type: zip, parameters: {lists}, cooldownSeconds: 5}}\n{BASE}")
    assert (found.planner, [each.key for each in found.dimensions], found.settings) == ("zip", ["mean", "rate"], {})
    assert found.typed == "sweep (run.yaml:1)"
    assert given(yaml(tmp_path, (tmp_path / "run.yaml").read_text()))["pause"] == "5"


def test_two_paths_with_one_last_word_are_keyed_by_the_whole(tmp_path: Path) -> None:
    found = section(tmp_path, "sweep: {type: grid, parameters: {rate: [1], warmup.rate: [2]}}\n" + BASE)
    assert [each.key for each in found.dimensions] == ["profiling.rate", "warmup.rate"]


def test_ranges_and_choices_are_dimensions(tmp_path: Path) -> None:
    found = section(tmp_path, """
sweep:
  type: latin-hypercube
  samples: 8
  labelFormat: kv
  dimensions:
    - {path: rate, lo: 1, hi: 50.5, scale: log}
    - {path: concurrency, lo: 1, hi: 64, kind: int}
    - {path: endpoint.type, choices: [chat, completions]}
""" + BASE)  # fmt: skip
    assert found.dimensions == (
        Dimension("profiling.rate", "rate", low=1.0, high=50.5, scale="log"),
        Dimension("profiling.concurrency", "concurrency", low=1.0, high=64.0, kind="int"),
        Dimension("endpoint.type", "type", choices=("chat", "completions")),
    )
    assert (found.planner, found.settings) == ("latin_hypercube", {"samples": 8, "label_format": "kv"})
    assert found.places["label_format"] == "sweep.labelFormat (run.yaml:5)"


def test_runs_are_scenarios_of_the_values_that_differ(tmp_path: Path) -> None:
    found = section(tmp_path, """
variables: {size: 9}
sweep:
  type: scenarios
  runs:
    - name: chat
      benchmark: {dataset: {prompts: {isl: {mean: 128}}}, phases: [{name: main, rate: 50, concurrency: 8}]}
    - name: long
      variables: {size: 10}
      benchmark: {dataset: {isl: {mean: 4096, median: 3000}}, endpoint: {extra: {a.b: 1}}}
""" + BASE)  # fmt: skip
    assert found.scenarios == (
        Scenario("chat", {"dataset.prompts.isl": {"mean": 128}, "profiling.rate": 50, "profiling.concurrency": 8}),
        Scenario("long", {
            "variables.size": 10, "dataset.prompts.isl": {"mean": 4096, "median": 3000}, "endpoint.extra": {"a.b": 1},
        }),
    )  # fmt: skip


def test_a_cells_values_replace_those_of_the_file(tmp_path: Path) -> None:
    file = yaml(tmp_path, BASE)
    cell = given(file, {"profiling.rate": 7, "dataset.prompts.isl": {"mean": 128}, "warmup.requests": 1})
    assert (cell["request_rate"], cell["isl"], cell["spread"], cell["warmup_request_count"]) == ("7", "128", "50", "1")
    assert given(file)["request_rate"] == "20", "the file is as before"


def test_another_distribution_replaces_the_files(tmp_path: Path) -> None:
    cell = given(yaml(tmp_path, BASE), {"dataset.prompts.isl": {"mean": 128, "median": 100}})
    assert cell["shape"] == '{"mean": 128, "median": 100}' and "spread" not in cell
    assert given(yaml(tmp_path, BASE), {"dataset.prompts.isl": 99})["isl"] == "99"


@pytest.mark.parametrize(("text", "path", "value", "expected"), [
    ("isl: 7", "dataset.prompts.isl.stddev", 2, {"isl": "7", "spread": "2"}),
    ("isl: 7", "dataset.prompts.isl.mean", 2, {"isl": "2"}),
    ("entries: 4", "dataset.prompts.isl.mean", 2, {"isl": "2", "entries": "4"}),
])  # fmt: skip
def test_a_value_below_a_scalar_keeps_what_that_stands_for(
    tmp_path: Path, text: str, path: str, value: int, expected: dict[str, object]
) -> None:
    file = yaml(tmp_path, f"benchmark: {{model: m, dataset: {{{text}}}}}")
    assert given(file, {path: value}) == {"models": ["m"], **expected}


def test_a_wrong_value_of_a_cell_is_said_where_it_stands(tmp_path: Path) -> None:
    sweep = "sweep:\n  type: grid\n  parameters:\n    endpoint.streaming: [true, perhaps]\n    endpiont: [1]\n"
    file = yaml(tmp_path, BASE + sweep)
    file.sweep(OPTIONS)
    (error,) = [each for each in file.values(OPTIONS, {"endpoint.streaming": "perhaps"}) if isinstance(each, Exception)]
    assert error.message == "sweep.parameters.endpoint.streaming[1] (run.yaml:11): 'perhaps' is not true or false"
    (error,) = [each for each in file.values(OPTIONS, {"endpiont": 1}) if isinstance(each, Exception)]
    assert error.lines() == ["sweep.parameters.endpiont[0] (run.yaml:12): there is no such key", "  did you mean endpoint?"]


def test_expressions_are_computed_over_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_LOAD", "16")
    text = """
variables:
  base: ${BASE_LOAD}
  twice: "{{ base * 2 }}"
  word: "m{{ base }}"
randomSeed: "{{ base + 1 }}"
benchmark:
  model: "{{ word }}-x"
  dataset: {isl: {mean: "{{ twice * 4 }}", stddev: "{{ base / 4 }}"}}
  profiling: {type: concurrency, concurrency: "{{ twice }}", requests: "{{ [base, 20] | max }}"}
"""
    file = yaml(tmp_path, text)
    assert given(file) == {
        "models": ["m16-x"], "isl": "128", "spread": "4", "concurrency": "32", "request_count": "20", "random_seed": "17",
    }  # fmt: skip
    assert given(file, {"variables.base": 3})["concurrency"] == "6", "a cell's variables count in all that is made of them"


def test_a_sweep_may_be_made_of_expressions(tmp_path: Path) -> None:
    lists = '{concurrency: "{{ [n, n * 2] }}", variables.n: [1, "{{ n }}"]}'
    found = section(tmp_path, f"variables: {{n: 4}}\nsweep: {{type: grid, parameters: {lists}}}\n{BASE}")
    assert [each.values for each in found.dimensions] == [(4, 8), (1, 4)]


def test_files_of_the_user_come_with_the_variables(tmp_path: Path) -> None:
    files = '[{path: a.txt, format: text, content: "{{ n }} {{ model }}"}]'
    text = f"variables: {{n: 4}}\nbenchmark: {{model: m, artifacts: {{user_files: {files}}}}}"
    assert given(yaml(tmp_path, text))["files"] == (
        '{"files": [{"path": "a.txt", "format": "text", "content": "{{ n }} {{ model }}"}], "variables": {"n": 4}}'
    )


@pytest.mark.parametrize(("text", "sentence"), [
    ("variables: {a: '{{ b }}', b: '{{ a }}'}\nbenchmark: {model: '{{ a }}'}", "it is made of itself: a → b → a"),
    ("benchmark: {model: '{{ a }}'}", "benchmark.model (run.yaml:1): no variable is called a; there are none"),
    ("variables: {alpha: 1}\nbenchmark: {model: '{{ alhpa }}'}", "(run.yaml:2): no variable is called alhpa; did you"),
    ("benchmark: {model: '{% for x in y %}{% endfor %}'}", "benchmark.model (run.yaml:1): a loop can't be computed"),
    ("variables: {a: x}\nbenchmark:\n  model: '{{ a.upper }}'", "benchmark.model (run.yaml:3): an attribute can't be read"),
    ("variables: {a: x}\nbenchmark: {model: '{{ a * 10 ** 12 }}'}", "it costs too much: it makes more than 64 MiB"),
    ("variables: [a]\nbenchmark: {model: m}", "variables (run.yaml:1): it must be a mapping"),
    ("variables: {a-b: 1}\nbenchmark: {model: m}", "variables.a-b (run.yaml:1): 'a-b' can't be the name of a variable"),
])  # fmt: skip
def test_an_expression_that_can_not_be_computed_has_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    (error,) = [each for each in yaml(tmp_path, text).values(OPTIONS) if isinstance(each, Exception)]
    assert sentence in error.message


@pytest.mark.parametrize(("text", "sentence"), [
    ("sweep: 3", "sweep (run.yaml:1): it must be a mapping"), ("sweep: {parameters: {rate: [1]}}", "it has no type"),
    ("sweep: {type: grid}", "sweep (run.yaml:1): it has no cells"),
    ("sweep: {type: grid, parameters: [rate]}", "sweep.parameters (run.yaml:1): it must be a mapping, of lists by path"),
    ("sweep: {type: grid, parameters: {rate: 3}}", "sweep.parameters.rate (run.yaml:1): it must be a list of the"),
    ("sweep: {type: grid, parameters: {rate: []}}", "sweep.parameters.rate (run.yaml:1): it must be a list"),
    ("sweep:\n  type: grid\n  parameters: {rate: [1], phases.main.rate: [2]}", "(run.yaml:3): the same as sweep.parameters."),
    ("sweep: {type: grid, parameters: {rate: [1]}, runs: [{name: a}]}", "a sweep has parameters or runs / "),
    ("sweep: {type: grid, parameters: {a..b: [1]}}", "'a..b' is no path"),
    ("sweep: {type: scenarios, runs: {a: 1}}", "sweep.runs (run.yaml:1): it must be a list"),
    ("sweep: {type: scenarios, runs: [{benchmark: {}}]}", "sweep.runs[0] (run.yaml:1): it has no name"),
    ("sweep: {type: scenarios, runs: [{name: a/b}]}", "'a/b' can't be the name of a directory"),
    ("sweep: {type: scenarios, runs: [{name: a}, {name: A}]}", "A is also the name of sweep.runs[0].name"),
    ("sweep: {type: scenarios, runs: [{name: a, rate: 4}]}", "sweep.runs[0].rate (run.yaml:1): there is no such key"),
    ("sweep: {type: sobol, dimensions: {path: rate}}", "sweep.dimensions (run.yaml:1): it must be a list"),
    ("sweep: {type: sobol, dimensions: [{lo: 1, hi: 2}]}", "sweep.dimensions[0] (run.yaml:1): it has no path"),
    ("sweep: {type: sobol, dimensions: [{path: rate, lo: 1}]}", "it has neither a range nor choices"),
    ("sweep: {type: sobol, dimensions: [{path: rate, lo: 3, hi: 2}]}", "3: lo must be less than hi"),
    ("sweep: {type: sobol, dimensions: [{path: rate, lo: 0, hi: 2, scale: log}]}", "begins above 0"),
    ("sweep: {type: sobol, dimensions: [{path: rate, lo: 1, hi: 2, scale: cubic}]}", "'cubic' is not linear or log"),
    ("sweep: {type: sobol, dimensions: [{path: rate, low: 1, hi: 2}]}", "dimensions[0].low (run.yaml:1): there is no such key"),
    ("sweep: {type: sobol, dimensions: [{path: rate, choices: [1], lo: 2}]}", "a list of values, and no range beside it"),
    ("sweep: {type: sobol, dimensions: [{path: rate, lo: few, hi: 2}]}", "'few' is not a number"),
])  # fmt: skip
def test_a_section_that_can_not_be_read_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        yaml(tmp_path, text + BASE).sweep(OPTIONS)
    assert sentence in " / ".join(raised.value.lines())


HIDDEN = """
variables: {key: sk-SECRET1234, header: "Bearer {{ key }}", n: 3}
benchmark:
  model: m
  endpoint: {headers: {X-Token: "{{ header }}"}, url: "http://h/{{ n }}"}
  artifacts: {user_files: [{path: a.txt, format: text, content: "{{ n }}"}]}
"""


def test_a_variable_of_a_secret_is_in_no_file_of_the_user(tmp_path: Path) -> None:
    assert str(given(yaml(tmp_path, HIDDEN))["files"]).endswith('"variables": {"n": 3}}')
    (error,) = [each for each in yaml(tmp_path, HIDDEN.replace("{{ n }}\"}]", "{{ header }}\"}]")).values(OPTIONS)
                if isinstance(each, Exception)]  # fmt: skip
    assert "user_files (run.yaml:6): the variable header is a part of benchmark.endpoint.headers" in error.message


@pytest.mark.parametrize("name", ["key", "header"])
def test_a_variable_of_a_secret_can_not_differ_between_cells(tmp_path: Path, name: str) -> None:
    file = yaml(tmp_path, HIDDEN)
    (error,) = [each for each in file.values(OPTIONS, {f"variables.{name}": "sk-OTHER1234"}) if isinstance(each, Exception)]
    assert error.message.startswith(f"run.yaml: variables.{name} is a part of benchmark.endpoint.headers")
    assert "SECRET" not in str(error) and "OTHER" not in str(error)
    assert given(file, {"variables.n": 4})["urls"] == ["http://h/4"]
