"""``aiperf config``: files from templates and from command lines, their checks, their cells and their schema."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it brings no types
import msgspec
import pytest
import yaml
from aiperf.cli.main import main
from aiperf.errors import AiperfError
from aiperf.parts.plans import asked, profile_options
from aiperf.registry.registry import Registry
from aiperf_command_config.library import templates
from aiperf_command_config.schema import schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TRACE = "".join(f'{{"timestamp": {n}, "input_length": 30, "output_length": 4, "hash_ids": [{n}]}}\n' for n in range(3))
SUBJECTS = "coding humanities math multilingual qa rag reasoning roleplay stem summarization writing"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the data that templates name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("schedule.jsonl", "trace.jsonl"):
        (tmp_path / name).write_text(TRACE)
    rows = [{"question_id": name, "category": name, "turns": ["Say a."]} for name in SUBJECTS.split()]
    (tmp_path / "qualitative.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a line in this process; gives exit code, standard output and error."""

    def go(*words: str, piped: str | None = None) -> tuple[int, str, str]:
        if piped is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


@pytest.mark.parametrize("each", templates(), ids=lambda each: each.name)
def test_a_template_is_valid_and_expands(registry: Registry, each: Any) -> None:
    Path("run.yaml").write_text(each.made("my/model:1", ["http://there:9"]))
    found = asked(registry, ["--config", "run.yaml"])
    assert found.plan.target.models == ("my/model:1",) and found.plan.target.urls == ("http://there:9",)
    whole = yaml.safe_load(each.text)
    swept = whole.get("sweep", {})
    cells = len(swept.get("runs", ())) or 1
    for values in swept.get("parameters", {}).values():
        cells *= len(values)
    assert len(found.cells) == cells and len({cell.directory for cell in found.cells}) == cells
    repeats = int(str(whole.get("multiRun", {}).get("numRuns", 1)).strip("${RUNS:}"))
    assert sum(cell.runs for cell in found.cells) == cells * repeats


def test_a_template_of_several_servers_gets_several(registry: Registry) -> None:
    each = next(each for each in templates() if each.name == "multi_url_load_balancing")
    Path("run.yaml").write_text(each.made(None, ["http://a:1", "http://b:2"]))
    assert asked(registry, ["-f", "run.yaml"]).plan.target.urls == ("http://a:1", "http://b:2")


def test_the_templates_fit_the_schema_and_mistakes_do_not(registry: Registry) -> None:
    check = jsonschema.Draft202012Validator(schema(profile_options(registry)))
    for each in templates():
        assert [error.message for error in check.iter_errors(yaml.safe_load(each.text))] == [], each.name
    mistakes: tuple[dict[str, Any], ...] = (
        {}, {"benchmark": {"modle": "m"}}, {"benchmark": {"endpoint": {"streaming": 3}}}, {"benchmrk": {}},
        {"benchmark": {"profiling": {"concurency": 4}}}, {"benchmark": {"phases": [{"requests": [1]}]}},
        {"benchmark": {"dataset": {"isl": {"meen": 4}}}}, {"benchmark": {"endpoint": {"timeout": "soon"}}},
        {"benchmark": {"plugins": {"hooks:server_control": {"reset_kv": True}}}},
    )  # fmt: skip
    for wrong in mistakes:
        assert list(check.iter_errors(wrong)) != [], wrong
    both = {"benchmark": {"profiling": {"grace_period": "5s", "gracePeriod": 5}, "dataset": {"isl": {"mean": "{{ x }}"}}}}
    assert list(check.iter_errors(both)) == []


def test_a_template_is_printed_or_written_once(run: Any) -> None:
    code, out, err = run("config", "init", "--template", "sweep-distributions", "-m", "a: b", "-u", "h:1")
    assert (code, err) == (0, "") and yaml.safe_load(out)["benchmark"]["model"] == "a: b"
    assert run("config", "validate", "-", piped=out) == (
        0, "standard input is valid: 9 variations, 27 runs, planned by grid\n", ""
    )  # fmt: skip
    assert run("config", "init", "-o", "new.yaml") == (0, "", "written: new.yaml\n")
    code, _, err = run("config", "init", "-o", "new.yaml")
    assert code != 0 and err.startswith("error: new.yaml exists and is not overwritten\n")
    assert "there is no template 'minimol'\n  did you mean minimal?" in run("config", "init", "-t", "minimol")[2]
    assert run("create-template")[0] == 0 and run("config", "validate", "aiperf.yaml")[0] == 0


@pytest.mark.parametrize(("text", "sentence"), [
    ("sweep: {type: grid, parameters: {rate: [1], endpiont.x: [1]}}", "there is no such key\n  did you mean endpoint?"),
    ("sweep: {type: gird, parameters: {rate: [1]}}", "no planner plugin is called 'gird'"),
    ("sweep: {type: grid, smaples: 3, parameters: {rate: [1]}}", "(run.yaml:1): the planner grid has no such key"),
    ("sweep: {type: sobol, sample: 3, dimensions: [{path: rate, lo: 1, hi: 2}]}", "did you mean samples?"),
    ("sweep: {type: zip, parameters: {rate: [1], concurrency: [1, 2]}}", "lists"),
    ("variables: {a: '{% for x in y %}{% endfor %}'}", "variables.a (run.yaml:1): a loop can't be computed"),
])  # fmt: skip
def test_a_wrong_sweep_is_a_sentence_with_its_place(run: Any, text: str, sentence: str) -> None:
    Path("run.yaml").write_text(f"{text}\nbenchmark: {{model: m, profiling: {{type: poisson, rate: 3, requests: 3}}}}\n")
    code, out, err = run("config", "validate", "run.yaml")
    assert (code, out) == (1, "") and sentence in err and "Traceback" not in err


def test_variations_are_shown_in_three_forms(run: Any) -> None:
    Path("run.yaml").write_text(
        "multiRun: {numRuns: 2}\nsweep: {type: grid, parameters: {concurrency: [1, 2], variables.n: [3, 4]}}\n"
        "variables: {n: 9}\n"
        'benchmark: {model: m, profiling: {type: concurrency, requests: "{{ n }}"}, artifacts: {dir: out}}\n'
    )
    text = run("config", "expand", "run.yaml")[1]
    assert text.startswith("4 variations:\n  0: ") and "concurrency = 2" in text and "n = 4" in text
    rows = json.loads(run("config", "expand", "run.yaml", "--format", "json", "--full")[1])
    assert [row["parameters"] for row in rows] == [
        {"concurrency": 1, "n": 3}, {"concurrency": 1, "n": 4}, {"concurrency": 2, "n": 3}, {"concurrency": 2, "n": 4},
    ]  # fmt: skip
    assert [row["config"]["benchmark"]["profiling"]["requests"] for row in rows] == [3, 4, 3, 4]
    assert rows[3]["directory"].endswith("out/profile_runs/trial_0001/concurrency_2__n_4") and rows[3]["runs"] == 2
    assert yaml.safe_load(run("config", "expand", "run.yaml", "-f", "yaml", "-F")[1]) == rows
    assert json.loads(run("config", "expand", "run.yaml", "-f", "json", "-i", "2")[1])[0]["index"] == 2
    refused = run("config", "expand", "run.yaml", "-i", "4")[2]
    assert "--index 4: there is no such variation\n  they have the numbers 0 to 3" in refused
    (row,) = json.loads(run("config", "expand", "run.yaml", "-f", "json", "-i", "2", "-F")[1])
    Path("cell.yaml").write_text(yaml.safe_dump(row["config"]))
    assert run("config", "validate", "cell.yaml")[0] == 0, "the file of a cell is a file"


OPTIONS = (
    "--streaming", "--concurrency 4", "--request-rate 3.5", "--arrival-pattern constant", "--request-count 9",
    "--benchmark-duration 5", "--warmup-request-count 3", "--warmup-concurrency 2", "--warmup-alone", "--isl 100",
    "--isl-stddev 5", "--osl 20", "--num-users 3", "--user-centric-rate 2", "--session-turns-mean 3",
    "--goodput 'time_to_first_token:20 request_latency:p99<50'", "--random-seed 7",
    "--extra-inputs temperature:0.5 --extra-inputs top_k:3", "--extra-inputs '{\"stop\": [\"{{x}} ${HOME}\"]}'",
    "--endpoint-type completions", "--tokenizer builtin", "--slice-duration 0.5", "--export-level raw",
    "--request-timeout-seconds 3", "--no-preconnect", "--artifact-dir 'a b'", "-m other", "--url a:1 --url b:2",
    "--url-strategy round_robin", "--num-sessions 4", "--warmup-request-rate 4", "--request-rate-ramp-duration 3",
    "--concurrency-ramp-duration 2", "--ramp exponential", "--parquet-chunks", "--no-fixed-schedule",
    "--input-file schedule.jsonl", "--custom-dataset-type mooncake_trace", "--num-dataset-entries 5",
    "--percentiles 50,99.9", "--seq-dist 100,20:50;200,40:50", "--failed-request-threshold 0.5",
)  # fmt: skip


def told(plan: Any) -> Any:
    """What a plan says, without what each command has of its own."""
    plain = msgspec.to_builtins(plan, enc_hook=str)
    for section, key in (("run", "run_id"), ("run", "command"), ("plugins", "configuration")):
        del plain[section][key]
    plain["plugins"]["given"] = sorted(plain["plugins"]["given"])
    return plain


@given(st.lists(st.sampled_from(OPTIONS), max_size=8, unique=True))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_file_of_a_line_makes_the_plan_of_the_line(registry: Registry, options: list[str]) -> None:
    _same_plan(registry, " ".join(["-m 'a ${HOME} {{ b }}'", *options]))


@pytest.mark.parametrize("line", [
    "-m m --request-rate 3 --warmup-request-count 3 --warmup-concurrency 2 --isl 100 --goodput time_to_first_token:20",
    "-m a -m b --user-centric-rate 2 --num-users 4 --session-turns-mean 3 --num-sessions 8 --no-preconnect",
    "-m m --input-file schedule.jsonl --custom-dataset-type mooncake_trace --no-fixed-schedule --concurrency 3",
    "-m m --input-file schedule.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
])  # fmt: skip
def test_the_file_of_a_usual_line_makes_its_plan(registry: Registry, line: str) -> None:
    assert _same_plan(registry, line)


def _same_plan(registry: Registry, line: str) -> bool:
    """Whether the line has a plan, which its file has, too."""
    line += " --random-seed 3" if "--random-seed" not in line else ""
    try:
        expected = asked(registry, shlex.split(line)).plan
    except AiperfError:
        return False
    from aiperf_command_config.init import _of_line

    Path("of_line.yaml").write_text(_of_line(registry, f"aiperf profile {line}"))
    assert told(asked(registry, ["--config", "of_line.yaml"]).plan) == told(expected), Path("of_line.yaml").read_text()
    return True


def test_lists_and_variants_of_a_line_are_cells_of_its_file(run: Any, registry: Registry) -> None:
    for line in (
        "-m m --concurrency 1,2,4 --isl 10,20 --num-profile-runs 3 --request-count 5",
        "-m m --concurrency 1,2 --isl 3,4 --sweep-type zip",
        "-m m --variant 'small: concurrency=4, isl=128' --variant 'large: concurrency=8'",
    ):  # fmt: skip
        code, out, err = run("config", "init", "--from", f"aiperf profile {line} --random-seed 1")
        assert code == 0, err
        Path("run.yaml").write_text(out)
        typed, filed = asked(registry, [*shlex.split(line), "--random-seed", "1"]), asked(registry, ["-f", "run.yaml"])
        assert [(each.cell.name, each.runs) for each in filed.cells] == [(each.cell.name, each.runs) for each in typed.cells]
        assert len(filed.cells) > 1 and filed.planner == typed.planner


def test_a_secret_of_a_line_is_a_variable_of_its_file(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = run("config", "init", "--from", "aiperf profile -m m --api-key hush-hush --verbose")
    assert code == 0 and "hush-hush" not in out + err and yaml.safe_load(out)["benchmark"]["endpoint"]["apiKey"] == "${API_KEY}"
    assert "--api-key is secret: the file reads it from the variable API_KEY" in err
    assert "left out: --verbose has no place in a file" in err
    monkeypatch.setenv("API_KEY", "hush-hush")
    assert run("config", "validate", "-", piped=out)[0] == 0


@pytest.mark.parametrize(("line", "sentence"), [
    ("aiperf plot dir", "--from takes a line of aiperf profile"), ("", "--from takes a line of aiperf profile"),
    ("aiperf profile -m 'm", "the line has no words"), ("aiperf profile -m m --concurency 3", "unknown option --concurency"),
    ("aiperf profile -m m --help", "--help asks for no run"),
])  # fmt: skip
def test_a_line_that_makes_no_file_is_a_sentence(run: Any, line: str, sentence: str) -> None:
    code, out, err = run("config", "init", "--from", line)
    assert code != 0 and out == "" and sentence in err and "Traceback" not in err
