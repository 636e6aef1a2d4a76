"""Packages from the templates, unedited: they install, keep their contracts and take part in a run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, projects, suite
from program import Program, bytes_of
from requirements import ROOT

pytest.importorskip("aiperf_templates", reason="aiperf-templates is not installed: pip install -e templates")
pytest.importorskip("cookiecutter", reason="cookiecutter is not installed: pip install aiperf-templates")
if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)

NAMES = {
    "arrivals": "my-pattern", "command": "my-command", "dataset": "my-questions", "driver": "my-pace", "endpoint": "my-dialect",
    "exporter": "my-table", "hooks": "my-hooks", "metric": "my-metric", "schedule": "my-ramp", "tokenizer": "my-tokens",
    "configuration": "my-form", "definition": "my-tool", "engine": "my-place", "grader": "my-grader", "plot": "my-picture",
    "ramp": "my-rise", "verdict": "my-verdict", "table": "my-shares", "series": "my-series", "companion": "my-companion",
    "live": "my-lookout", "scenario": "my-rules", "site_engine": "my-rooms",
    "reducer": "my-tally", "planner": "my-climb",
    "sampler": "my-order", "telemetry": "my-source", "transport": "my-wire", "ui": "my-display", "url_strategy": "my-choice",
}  # fmt: skip
"""The name of the plugin from each template."""
IN_EVERY_RUN = (
    "endpoint", "tokenizer", "arrivals", "schedule", "exporter", "metric", "hooks", "verdict", "table", "companion",
    "live",
)  # fmt: skip
CHOSEN = ("dataset", "driver", "engine", "grader", "ramp", "sampler", "series", "telemetry", "transport", "ui", "url_strategy")
AFTERWARDS = ("command", "definition", "plot")
BEFORE = ("configuration",)
ALONE = ("reducer",)
SEVERAL = ("planner",)
RULING = ("scenario",)
ELSEWHERE = ("site_engine",)
"""The templates by the run that uses them, below; some read its results or its options, one replaces them all, some are for
several runs, some rule a run, and the last ones put it elsewhere."""


@dataclass(frozen=True)
class Made:
    """The packages of all templates, below *folder*.

    tests_alone: a Python that has them, the kernel with what its contracts need, and its authors' tools.
    uses: one that has them and the suite.
    """

    folder: Path
    tests_alone: Path
    uses: Path

    def package(self, word: str) -> Path:
        return self.folder / key(word)


def key(word: str) -> str:
    return NAMES[word].replace("-", "_")


def distribution(word: str) -> str:
    return f"aiperf-{word}-{NAMES[word]}".replace("_", "-")


def clean(**more: str) -> dict[str, str]:
    """The environment without settings of this program and without this interpreter's path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AIPERF_", "VIRTUAL_ENV"))}
    return kept | more


def in_one_process(imports: str, call: str, many: list[list[str]], **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command for many command lines *words*: most of the time of a process is its start."""
    code = f"import json, sys\n{imports}\nfor words in json.load(sys.stdin):\n    {call}"
    words = [sys.executable, "-c", code]
    return subprocess.run(words, input=json.dumps(many), env=os.environ | env, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    work = tmp_path_factory.mktemp("templates")
    folder = work / "made"
    many = [["plugins", "new", word, name, "--output", str(folder)] for word, name in NAMES.items()]
    done = in_one_process("from aiperf.cli.main import main", "print(main(words))", many)
    for word, said in zip(NAMES, done.stdout.split("\n0\n"), strict=False):
        assert f"pip install -e {folder / key(word)}" in said, done.stdout + done.stderr
    shelf = Shelf(work / "shelf", {distribution(word): folder / key(word) for word in NAMES})
    packages = [distribution(word) for word in NAMES]
    alone = shelf.environment(work / "alone", [*packages, "aiperf-command-plugins", "aiperf-core[testing]"])
    return Made(folder, alone, shelf.environment(work / "suite", [*suite(), "aiperf-command-plot", *packages]))


@pytest.fixture(scope="module")
def outcomes(made: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Outcome of every generated test, by the name of its file."""
    report = tmp_path_factory.mktemp("report") / "report.xml"
    tests = [str(made.package(word) / "tests") for word in NAMES]
    subprocess.run(
        [str(made.tests_alone), "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib",
         f"--rootdir={made.folder}", f"--junitxml={report}", *tests],
        cwd=made.folder, env=clean(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: dict[str, list[str]] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = re.search(r"test_(\w+)", case.get("classname", "")) or re.search(r"test_(\w+)", case.get("name", ""))
        assert file is not None
        bad = [f"{case.get('name')}: {child.get('message')}" for child in case if child.tag in ("failure", "error")]
        found.setdefault(file[1], []).append(bad[0] if bad else "")
    return found


@pytest.fixture(scope="module")
def faults(made: Made) -> Callable[[str], list[str]]:
    """The faults that ``aiperf plugins validate`` prints, by distribution."""
    done = subprocess.run(
        [str(made.tests_alone), "-P", "-m", "aiperf", "plugins", "validate", "--json"],
        env=clean(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    checked = json.loads(done.stdout)
    assert checked["checked"] > len(NAMES) and checked["contracts"] is True
    return lambda name: [row["fault"] for row in checked["faults"] if row["distribution"] == name]


@pytest.fixture(scope="module")
def types(made: Made) -> list[str]:
    """The errors of mypy for all packages; it shares the repository's cache, which has the kernel already."""
    paths = [made.package(word) for word in NAMES]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"),
         "--strict", *(str(path / part) for path in paths for part in ("src", "tests"))],
        env=clean(MYPYPATH=os.pathsep.join(str(path / "src") for path in paths)),
        cwd=made.folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": error:" in line]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the packages that cookiecutter makes without this program."""
    folder = tmp_path_factory.mktemp("plain")
    many = [["--no-input", "-o", str(folder), str(ROOT / "templates" / word), f"name={name}"] for word, name in NAMES.items()]
    call = "main(words, standalone_mode=False)"
    in_one_process("from cookiecutter.__main__ import main", call, many, HOME=str(folder / "home"))
    return folder


def test_every_template_is_tried() -> None:
    assert sorted(path.parent.name for path in (ROOT / "templates").glob("*/cookiecutter.json")) == sorted(NAMES)
    used = IN_EVERY_RUN + CHOSEN + AFTERWARDS + BEFORE + ALONE + SEVERAL + RULING + ELSEWHERE
    assert sorted(used) == sorted(NAMES), "each takes part in a run below"


@pytest.mark.parametrize("word", NAMES)
class TestEveryTemplate:
    def test_its_tests_pass_with_the_kernel_alone(self, outcomes: dict[str, list[str]], word: str) -> None:
        found = outcomes[f"{word}_{key(word)}"]
        assert found and not any(found), [each for each in found if each]

    def test_ruff_finds_nothing(self, made: Made, word: str) -> None:
        ruff = [str(Path(sysconfig.get_path("scripts"), "ruff")), "check", "--no-cache", "--quiet"]
        for rules in (["--isolated"], ["--config", str(ROOT / "pyproject.toml")]):
            done = subprocess.run([*ruff, *rules, "."], cwd=made.package(word), capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout + done.stderr) == (0, ""), rules

    def test_mypy_finds_nothing(self, types: list[str], word: str) -> None:
        assert [line for line in types if f"/{key(word)}/" in line or line.startswith(f"{key(word)}/")] == []

    def test_validate_finds_nothing(self, faults: Callable[[str], list[str]], word: str) -> None:
        assert faults(distribution(word)) == []

    def test_it_has_the_skeleton_of_the_packages_here(self, made: Made, word: str) -> None:
        package = made.package(word)
        module = f"aiperf_{word}_{key(word)}"
        assert sorted(path.name for path in package.iterdir()) == ["README.md", "pyproject.toml", "src", "tests"]
        wanted = {f"src/{module}/{name}" for name in ("__init__.py", "aiperf.yaml", "py.typed")}
        files = {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()}
        assert wanted <= files and f"tests/test_{word}_{key(word)}.py" in files
        assert not [name for name in files if "cookiecutter" in name]

    def test_plain_cookiecutter_gives_the_same(self, made: Made, plain: Path, word: str) -> None:
        assert tree(plain / key(word)) == tree(made.package(word))


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_they_all_take_part_in_one_run(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    program = Program(tmp_path, python=made.uses)
    done = program(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "my-dialect", "--streaming",
        "--tokenizer", "my-tokens", "--isl", 30, "--osl", 4, "--request-rate", 200, "--arrival-pattern", "my-pattern",
        "--request-count", 30, "--my-ramp-seconds", 0.1, "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    results = done.json()
    assert results["request_count"]["avg"] == 30
    assert results["my_metric"]["avg"] > 0
    assert results["input_sequence_length"]["avg"] == 30, "a token a byte"
    used = {row["distribution"]: row["version"] for row in results["plugins"]["used"]}
    for word in IN_EVERY_RUN:
        assert used[distribution(word)] == "0.1.0"
    few = [each for each in results["measurement"]["findings"] if each["package"] == f"{distribution('verdict')} 0.1.0"]
    assert [(each["kind"], each["numbers"]["requests"]) for each in few] == [("few_requests", 30)]
    assert results["measurement"]["verdict"] == "suspect"
    assert sum(row["requests"] for row in results["my_shares"]) == 30
    assert "| My Metric | ms |" in (done.artifacts / "my_table.md").read_text()
    (phase,) = json.loads((done.artifacts / "my_hooks.json").read_text())["phases"]
    assert phase["ended_ns"] > phase["started_ns"]
    (busy,) = json.loads((done.artifacts / "my_companion.json").read_text())
    assert busy["name"] == "profiling" and min(busy["before"], busy["after"]) >= 0
    due = sorted(row["due_ns"] for row in done.lines("profile_export_arrivals.jsonl"))
    assert due[9] - due[0] > 1.5 * (due[29] - due[20]), "the rate had to grow"
    slowest = program("my-command", done.artifacts, "--top", 3)
    assert slowest.code == 0 and len(slowest.out.splitlines()) == 3


def test_those_that_are_chosen_by_name_take_part_in_a_run(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    program = Program(tmp_path, python=made.uses)
    (tmp_path / "run.toml").write_text('concurrency = 10\nscheduling-mode = "my-pace"\nmy-pace-pause = 0.001\n')
    done = program(
        "profile", "--model", "m", "--url", simulator.url, "--url", simulator.url.replace("127.0.0.1", "localhost"),
        "--url-strategy", "my-choice", "--endpoint-type", "my-dialect", "--tokenizer", "my-tokens", "--custom-dataset-type",
        "my-questions", "--num-dataset-entries", 20, "--dataset-sampling-strategy", "my-order", "--num-sessions", 40,
        "--accuracy-grader", "my-grader", "--transport", "my-wire", "--engine", "my-place", "--ui-type", "my-display",
        "--concurrency-ramp-duration", 0.2, "--ramp", "my-rise", "--config", "run.toml",
    )  # fmt: skip
    assert done.code == 0, done.err
    results = done.json()
    used = {row["distribution"] for row in results["plugins"]["used"]}
    assert used >= {distribution(word) for word in CHOSEN}

    assert results["request_latency"]["min"] > 20, "the longer wire"
    assert [row["started"] for row in results["urls"]] == [48, 32], "eight sessions of two turns each in a row"
    entries = [line["metadata"]["conversation_id"] for line in done.lines("profile_export.jsonl")]
    assert len(set(entries)) < 20, "some are used often"
    assert re.search(r"^profiling: [1-9]0 %, \d+ done$", done.err, re.MULTILINE)
    samples = [bytes_of(path) for path in (done.artifacts / "journal").glob("telemetry-*.samples")]
    assert any(b"my_source_load" in text for text in samples)
    (source,) = [each for each in results["telemetry"] if each["source"] != "server_metrics"]
    assert [*source["series"][0]["stats"]] == ["last"], "a package of one's own makes the statistics"

    definitions = program("report", done.artifacts, "--definitions")
    assert definitions.code == 0 and "my-tool" in definitions.out
    figures = program("plot", done.artifacts, "--only", "my-picture", "--json")
    assert figures.code == 0, figures.err
    assert [figure["plot"] for figure in json.loads(figures.out)] == ["my_picture"]


def test_sites_of_ones_own_engine_have_the_workers(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    for room in ("attic", "barn"):
        (tmp_path / room).mkdir()
    done = Program(tmp_path, python=made.uses)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "my-dialect", "--tokenizer", "my-tokens",
        "--isl", 30, "--osl", 4, "--request-rate", 200, "--request-count", 20, "--ui", "none",
        "--engine", "my-rooms", "--my-rooms-directories", "attic,barn",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert [site["name"] for site in done.json()["measurement"]["sites"]] == ["attic", "barn"]
    rows = done.lines("profile_export_arrivals.jsonl")
    assert sorted((row["n"], row["worker"]) for row in rows) == [(n, f"worker-{n % 2}") for n in range(20)]


def test_a_reducer_of_ones_own_makes_the_results(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    program = Program(tmp_path, python=made.uses)
    done = program(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "my-dialect", "--tokenizer", "my-tokens",
        "--isl", 30, "--osl", 4, "--concurrency", 4, "--warmup-request-count", 6, "--request-count", 20, "--workers-max", 2,
        "--plugin", f"reducers:my-tally={distribution('reducer')}", "--ui", "simple",
    )  # fmt: skip
    assert done.code == 0, done.err
    results = done.json()
    assert [row["name"] for row in results["plugins"]["used"] if row["category"] == "reducers"] == ["my_tally"]
    assert [(row["name"], row["valid"], row["failed"]) for row in results["phases"]] == [
        ("warmup", 6, 0), ("profiling", 20, 0),
    ]  # fmt: skip
    assert "request_latency" not in results and results["measurement"]["verdict"] == "none"
    assert "Phase profiling: 20 succeeded, 0 failed" in done.out
    written = json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())["files"]
    assert written == sorted(
        ["inputs.json", "my_hooks.json", "my_table.md", "profile_export_aiperf.csv", "profile_export_aiperf.json",
         "profile_export_console.txt"]
    )  # fmt: skip
    assert "makes no rows of requests; not written: profile_export_arrivals.jsonl" in done.err

    again = program("report", done.artifacts, "--json")
    assert again.code == 0 and json.loads(again.out)["phases"] == results["phases"]
    drawn, checked = program("plot", done.artifacts), program("validate", done.artifacts)
    assert (drawn.code, drawn.out) == (1, "") and drawn.err.startswith("error: ")
    assert checked.code == 0, checked.out


def test_a_planner_of_ones_own_makes_a_sweep(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    program = Program(tmp_path, python=made.uses)
    done = program(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "my-dialect", "--tokenizer", "my-tokens",
        "--isl", 30, "--osl", 4, "--request-count", 16, "--concurrency", "1,4", "--sweep-type", "my-climb", "--ui", "none",
        "--artifact-dir", tmp_path / "sweep",
    )  # fmt: skip
    assert done.code == 0, done.err
    runs = [json.loads(path.read_bytes()) for path in sorted(done.artifacts.glob("concurrency_0[01]/*_aiperf.json"))]
    throughputs = [run["request_throughput"]["avg"] for run in runs]
    sweep = json.loads((done.artifacts / "sweep_aggregate" / "profile_export_aiperf_sweep.json").read_bytes())
    assert sweep["metadata"]["sweep_type"] == "my_climb"
    assert [each["metrics"]["request_throughput_avg"]["mean"] for each in sweep["per_combination_metrics"]] == throughputs


def test_rules_of_ones_own_say_that_a_run_does_not_count(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    done = Program(tmp_path, python=made.uses)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "my-dialect", "--tokenizer", "my-tokens",
        "--isl", 30, "--osl", 4, "--concurrency", 2, "--benchmark-duration", 0.5, "--scenario", "my-rules", "--unsafe-override",
        "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "--benchmark-duration 0.5: my-rules requires 60 or more" in done.err
    metadata = done.json()["metadata"]
    assert (metadata["counts"], metadata["why_not"]) == (False, ["unsafe_override"])


def test_a_pattern_of_ones_own_draws_the_gaps(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    done = Program(tmp_path, python=made.uses)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "my-dialect", "--tokenizer", "my-tokens",
        "--isl", 30, "--osl", 4, "--request-rate", 400, "--arrival-pattern", "my-pattern", "--request-count", 100,
        "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    due = sorted(row["due_ns"] for row in done.lines("profile_export_arrivals.jsonl"))
    gaps = [(later - earlier) * 400 / 1e9 for earlier, later in pairwise(due)]
    assert max(gaps) <= 2.001 and len({round(gap, 3) for gap in gaps}) > 50


def test_a_name_with_underscores_is_the_same_as_one_with_hyphens(made: Made, tmp_path: Path) -> None:
    done = Program(tmp_path)("plugins", "new", "endpoints", "My_Dialect", "--output", tmp_path)
    assert done.code == 0, done.err
    theirs, ours = tree(tmp_path / "my_dialect"), tree(made.package("endpoint"))
    assert theirs.keys() == ours.keys()
    assert theirs["pyproject.toml"].replace(b"My_Dialect", b"my-dialect") == ours["pyproject.toml"]


def test_every_hook_call_is_told_where_that_is_asked_for(made: Made, simulator: Simulator, tmp_path: Path) -> None:
    program = Program(tmp_path, python=made.uses)
    program.environment["AIPERF_TRACE_HOOKS"] = "1"
    done = program(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "my-dialect", "--tokenizer", "builtin",
        "--isl", 10, "--osl", 2, "--request-count", 3, "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    told = re.findall(r"hook (\w+) of (\S+).*: [0-9.]+ ms$", done.err, re.MULTILINE)
    told = [(hook, plugin) for hook, plugin in told if plugin.startswith("hooks:my_") or plugin == "hooks:schedules"]
    assert told == [
        ("aiperf_make_schedule", "hooks:my_ramp"), ("aiperf_make_schedule", "hooks:schedules"),
        ("aiperf_phase_started", "hooks:my_hooks"),
        ("aiperf_phase_ended", "hooks:my_hooks"), ("aiperf_export", "hooks:my_hooks"),
    ]  # fmt: skip


def test_pytest_puts_an_installed_package_to_its_contracts(made: Made, tmp_path: Path) -> None:
    def pytest_of(*packages: str) -> subprocess.CompletedProcess[str]:
        words = [word for name in packages for word in ("--aiperf-plugins", name)]
        (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
        return subprocess.run(
            [str(made.tests_alone), "-P", "-m", "pytest", "-p", "no:cacheprovider", "-rA", *words, "test_own.py"],
            cwd=tmp_path, env=clean(), capture_output=True, text=True, check=False,
        )  # fmt: skip

    done = pytest_of(distribution("metric"), distribution("schedule"))
    assert done.returncode == 0, done.stdout
    for found in ("test_own.py::test_own", "Test_metrics_my_metric::", "Test_schedules_my_ramp::", "Test_hooks_my_ramp::"):
        assert f"{found}" in done.stdout
    wrong = pytest_of("aiperf-metric-my-metrik")
    assert wrong.returncode == 4 and "did you mean aiperf-metric-my-metric" in wrong.stderr


def test_what_was_made_is_never_overwritten(made: Made, tmp_path: Path) -> None:
    before = tree(made.package("metric"))
    done = Program(tmp_path)("plugins", "new", "metric", "my-metric", "--output", made.folder)
    assert done.code == 1 and "is there already" in done.err
    assert tree(made.package("metric")) == before


def test_the_wheel_of_the_templates_has_them_all(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the build backend hatchling is not installed, so no wheel can be made")
    shelf = Shelf(tmp_path / "shelf", {name: folder for name, folder in projects().items() if name == "aiperf-templates"})
    python = shelf.environment(tmp_path / "environment", ["aiperf-core", "aiperf-command-plugins", "aiperf-templates"])
    done = Program(tmp_path, python=python)("plugins", "new", "metric", "my-metric", "--output", tmp_path / "made")
    assert done.code == 0, done.err
    assert (tmp_path / "made" / "my_metric" / "pyproject.toml").is_file()
    (wheel,) = (tmp_path / "shelf" / "unpacked").glob("aiperf-templates/aiperf_templates")
    for template in NAMES:
        assert tree(wheel / template) == tree(ROOT / "templates" / template)


@pytest.mark.parametrize("name", ["3d", "two words", "../up", "quo'ted"])
def test_plain_cookiecutter_refuses_a_bad_name_with_a_sentence(tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cookiecutter", "--no-input", "-o", str(tmp_path / "made"), str(ROOT / "templates" / "metric"),
         f"name={name}"],
        env={**os.environ, "HOME": str(tmp_path / "home")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and f"a plugin can't be called {name!r}: letters, digits" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr and list(tmp_path.glob("made/*")) == []


@pytest.mark.parametrize("word", NAMES)
def test_every_template_refuses_bad_names(word: str) -> None:
    # Copies, not links: an archive or a checkout without links would have broken templates.
    assert file_of(word).read_bytes() == file_of("endpoint").read_bytes()


def file_of(word: str) -> Path:
    return ROOT / "templates" / word / "hooks" / "pre_gen_project.py"


def test_no_file_of_the_repository_is_a_link() -> None:
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert [line for line in listed.splitlines() if line.startswith("120000")] == []
