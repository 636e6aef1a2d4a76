"""Packages of people we don't know: as wheels they are the equals of ours, and broken ones break nothing but themselves."""

from __future__ import annotations

import csv
import importlib.util
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from environments import Shelf, suite
from program import Program
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)

STRANGERS = {path.parent.name: path.parent for path in sorted((ROOT / "tests" / "strangers").glob("*/pyproject.toml"))}
FIVE = ("endpoint", "dataset", "exporter", "metric", "grader")
"""What somebody with a server, a data set and questions of their own would write; strangers of other categories are beside."""
RUN = ("--model", "m", "--tokenizer", "builtin", "--isl", 20, "--osl", 6, "--request-count", 12, "--ui", "none")


def project(folder: Path) -> tuple[str, str]:
    """Name and version of the distribution in a folder."""
    declared = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return declared["name"], declared["version"]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the suite and a stranger of each kind."""
    work = tmp_path_factory.mktemp("strangers")
    folders = {project(folder)[0]: folder for folder in STRANGERS.values()}
    return Shelf(work / "shelf", folders).environment(work / "environment", [*suite(), "aiperf-command-plot", *folders])


@pytest.fixture
def aiperf(python: Path, tmp_path: Path) -> Program:
    made = Program(tmp_path, python=python)
    made.environment["AIPERF_CACHE_DIR"] = str(tmp_path / "cache")
    return made


def test_a_stranger_has_no_more_than_a_stranger_writes() -> None:
    folders = [STRANGERS[word] for word in FIVE]
    files = [path for folder in folders for ending in ("py", "toml", "yaml") for path in folder.rglob(f"*.{ending}")]
    assert sum(bool(line.strip()) for path in files for line in path.read_text().splitlines()) <= 160


def test_its_option_is_in_the_help_under_a_heading_of_its_own(aiperf: Program) -> None:
    done = aiperf("profile", "--help")
    _, _, below = done.out.partition("\nParrot:\n")
    assert "--parrot-greeting TEXT" in below.partition("\n\n")[0]
    assert "parrot" in done.out.partition("--endpoint-type")[2][:300]


def test_they_are_listed_and_nothing_is_wrong_with_them(aiperf: Program) -> None:
    packages = {row["distribution"]: row["version"] for row in json.loads(aiperf("plugins", "--json").out)["packages"]}
    assert all(packages[name] == version for name, version in map(project, STRANGERS.values()))
    done = aiperf("plugins", "validate", "--json")
    assert done.code == 0 and json.loads(done.out)["faults"] == []


def test_one_run_uses_them_beside_ours(aiperf: Program, simulator: Simulator) -> None:
    greeting = ("--parrot-greeting", "Ahoy,")
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "parrot", "--streaming", *greeting,
        "--custom-dataset-type", "riddles", "--accuracy-grader", "judge", "--tokenizer", "builtin", "--request-count", 12,
        "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    results = done.json()
    used = {(row["distribution"], row["category"], row["name"], row["version"]) for row in results["plugins"]["used"]}
    assert used >= {
        ("acme-parrot", "endpoints", "parrot", "3.1.4"), ("acme-riddles", "datasets", "riddles", "0.2.0"),
        ("acme-judge", "graders", "judge", "1.1.0"), ("acme-ledger", "exporters", "ledger", "1.0.7"),
        ("acme-patience", "metrics", "patience", "2.5.0"), ("acme-judge", "metrics", "wisdom", "1.1.0"),
    }  # fmt: skip

    share = results["patience"]["avg"]
    assert 0 < share <= 100 and results["patience"]["unit"] == "%"
    assert "Patience (%)" in done.out
    rows = {row[0]: row for row in csv.reader((done.artifacts / "profile_export_aiperf.csv").read_text().splitlines()) if row}
    assert rows["Patience (%)"][1] == f"{share:.2f}"
    assert [0 < line["metrics"]["patience"]["value"] <= 100 for line in done.lines("profile_export.jsonl")] == [True] * 12

    assert f"patience={share}\n" in (done.artifacts / "ledger.txt").read_text()
    assert f"Ledger: {done.artifacts / 'ledger.txt'}" in done.out
    bodies = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    assert all(session["payloads"][0]["prompt"].startswith("Ahoy, What ") for session in bodies)
    assert simulator.summary()["requests"] == 12
    right = [line["metrics"]["wisdom"]["value"] for line in done.lines("profile_export.jsonl")]
    assert set(right) <= {0.0, 1.0} and results["wisdom"]["avg"] == pytest.approx(sum(right) / 12)
    assert "Wisdom (ratio)" in done.out


def test_one_of_every_other_kind_takes_part_in_a_run(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--url", simulator.url.replace("127.0.0.1", "localhost"),
        "--url-strategy", "counterclockwise", "--tokenizer", "letters", "--isl", 20, "--osl", 6, "--thrift", 4,
        "--num-dataset-entries", 5, "--dataset-sampling-strategy", "backwards", "--request-rate", 200, "--arrival-pattern",
        "lumps", "--concurrency", 8, "--concurrency-ramp-duration", 0.1, "--ramp", "leaps", "--request-count", 20,
        "--transport", "string", "--engine", "shed", "--ui-type", "bell",
    )  # fmt: skip
    assert done.code == 0, done.err
    used = {row["category"]: row["version"] for row in done.json()["plugins"]["used"] if row["distribution"] == "acme-sundries"}
    assert set(used.values()) == {"0.9.1"} and sorted(used) == [
        "arrivals", "engines", "hooks", "ramps", "samplers", "telemetry", "tokenizers", "transports", "uis", "url_strategies",
    ]  # fmt: skip

    seen = sorted(simulator.truth()["requests"], key=lambda row: row["received_mono_ns"])
    assert {row["completion_tokens"] for row in seen} == {4}, "the hook had its way with every request"
    arrivals = done.lines("profile_export_arrivals.jsonl")
    due_ms = sorted(round(row["due_ns"] / 1e6) for row in arrivals)
    assert due_ms[0::2] == due_ms[1::2][: len(due_ms[0::2])] or due_ms[1:-1:2] == due_ms[2::2], "they come in twos"
    asked = [line["metadata"]["conversation_id"] for line in done.lines("profile_export.jsonl")]
    bodies = json.loads((done.artifacts / "inputs.json").read_text())["data"]
    stored = [session["session_id"] for session in bodies]
    assert sorted(asked) == sorted(stored * 4) and stored[4] in asked[:3]
    assert {len(session["payloads"][0]["messages"][0]["content"]) for session in bodies} == {20}, "a token a letter"
    log = (done.artifacts / "logs" / "aiperf.log").read_text()
    assert "20 requests through a string in the shed" in log
    assert "ding!" in done.err
    assert '"water"' in (done.artifacts / "journal" / "telemetry-0.jsonl").read_text()

    told = aiperf("report", done.artifacts, "--definitions")
    assert told.code == 0 and "patient" in told.out
    (figure,) = json.loads(aiperf("plot", done.artifacts, "--only", "odometer", "--json").out)
    assert figure["plot"] == "odometer" and figure["series"][0]["y"] == [float(n) for n in range(1, 21)]
    assert aiperf("greet", "Ada").out == "Hello, Ada!\n"


def test_a_strangers_schedule_says_when_requests_leave(aiperf: Program, simulator: Simulator) -> None:
    beat = ("--request-rate", 1, "--metronome-seconds", 0.02)
    done = aiperf("profile", "--model", "m", "--url", simulator.url, "--tokenizer", "letters", *beat, *RUN[4:])
    assert done.code == 0, done.err
    due_ms = sorted(row["due_ns"] / 1e6 for row in done.lines("profile_export_arrivals.jsonl"))
    assert [each - due_ms[0] for each in due_ms] == pytest.approx([20.0 * n for n in range(12)])


# Broken ones, laid beside the good ones as an installer would have left them


@dataclass(frozen=True)
class Overlay:
    """A folder of installed packages; what is in it is found before the environment's own."""

    folder: Path

    def add(self, distribution: str, category: str, name: str, *, code: str = "", manifest: str | None = "") -> None:
        """An installed distribution with one plugin.  *manifest*: "" is a good one, None is none."""
        module = distribution.replace("-", "_")
        package = self.folder / module
        package.mkdir()
        (package / "__init__.py").write_text(code)
        good = f'schema_version: 1\napi: ">=1,<2"\nplugins:\n  - {{category: {category}, name: {name}, summary: A stranger.}}\n'
        if manifest is not None:
            (package / "aiperf.yaml").write_text(manifest or good)
        info = self.folder / f"{module}-0.9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 0.9\n")
        (info / "entry_points.txt").write_text(f"[aiperf.{category}]\n{name} = {module}:Thing\n")


@pytest.fixture
def overlay(aiperf: Program, tmp_path: Path) -> Overlay:
    folder = tmp_path / "overlay"
    folder.mkdir()
    aiperf.environment["PYTHONPATH"] = str(folder)
    return Overlay(folder)


BROKEN_CODE = "import a_package_that_nobody_has\n"
NEWER = 'schema_version: 1\napi: ">=9"\nplugins:\n  - {category: endpoints, name: newer, summary: Too new.}\n'

Breaks = Callable[[Overlay], None]


def import_error(category: str) -> Breaks:
    return lambda overlay: overlay.add(f"bad-{category}", category, "rotten", code=BROKEN_CODE)


def twins(overlay: Overlay) -> None:
    overlay.add("acme-one", "endpoints", "twin")
    overlay.add("acme-two", "endpoints", "twin")


@pytest.mark.parametrize(
    ("breaks", "named", "cause"),
    [
        pytest.param(import_error("endpoints"), (), "", id="an endpoint that can't be imported, which nobody loads"),
        pytest.param(import_error("metrics"), ("rotten", "bad-metrics 0.9"), "a_package_that_nobody_has", id="such a metric"),
        pytest.param(
            import_error("exporters"), ("rotten", "bad-exporters 0.9"), "a_package_that_nobody_has", id="such an exporter"
        ),
        pytest.param(import_error("hooks"), ("rotten", "bad-hooks 0.9"), "a_package_that_nobody_has", id="such hooks"),
        pytest.param(import_error("telemetry"), ("rotten", "bad-telemetry 0.9"), "a_package_that_nobody_has", id="a source"),
        pytest.param(
            lambda overlay: overlay.add("bad-api", "endpoints", "newer", manifest=NEWER),
            ("newer", "bad-api 0.9"), "asks for plugin API >=9; this kernel has 1", id="a wrong API version",
        ),
        pytest.param(
            lambda overlay: overlay.add("bad-silent", "endpoints", "silent", manifest=None),
            ("silent", "bad-silent 0.9"), "aiperf.yaml is missing", id="no manifest",
        ),
        pytest.param(twins, ("twin", "acme-one 0.9 and acme-two 0.9"), "both provide it", id="one name twice"),
    ],
)  # fmt: skip
def test_a_broken_one_is_named_in_one_line_and_breaks_no_run(
    aiperf: Program, overlay: Overlay, simulator: Simulator, breaks: Breaks, named: tuple[str, ...], cause: str
) -> None:
    breaks(overlay)
    done = aiperf("profile", "--url", simulator.url, "--endpoint-type", "parrot", "--streaming", *RUN)
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == 12
    logged, reported = ([line for line in said.splitlines() if cause and cause in line] for said in (done.err, done.out))
    assert len(logged) <= 1 and bool(logged or reported) == bool(cause), done.err
    assert all(word in (logged or reported)[0] for word in named), logged or reported
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("breaks", "chosen", "sentence"),
    [
        (import_error("endpoints"), "rotten", "a_package_that_nobody_has"),
        (lambda overlay: overlay.add("bad-api", "endpoints", "newer", manifest=NEWER), "newer", "asks for plugin API >=9"),
        (lambda overlay: overlay.add("bad-silent", "endpoints", "silent", manifest=None), "silent", "aiperf.yaml is missing"),
        (twins, "twin", "choose with --plugin endpoints:twin=acme-one"),
    ],
)
def test_asked_for_by_name_a_broken_one_is_fatal_and_says_why(
    aiperf: Program, overlay: Overlay, breaks: Breaks, chosen: str, sentence: str
) -> None:
    breaks(overlay)
    done = aiperf("profile", "--endpoint-type", chosen, *RUN)
    assert done.code == 1 and sentence in done.err and "Traceback" not in done.err
    assert not (done.artifacts / "journal").exists(), "nothing may have been started"


BRITTLE_CODE = """
from aiperf import KernelTransport

class Thing(KernelTransport):
    sent = 0

    def send(self, exchange):
        self.sent += 1
        self.loop.call_soon(self.broken if self.sent == 5 else super().send, exchange)

    def broken(self, exchange):
        raise ValueError("the glass is broken")
"""


def test_a_worker_that_stumbles_over_one_is_named_with_the_cause_and_replaced(
    aiperf: Program, overlay: Overlay, simulator: Simulator
) -> None:
    overlay.add("bad-glass", "transports", "brittle", code=BRITTLE_CODE)
    done = aiperf("profile", "--url", simulator.url, "--transport", "brittle", *RUN)
    assert done.code == 1 and "Traceback" not in done.err, done.err
    assert "worker 0 failed: ValueError: the glass is broken" in done.err
    assert "worker 0 exited with 70; what it had in flight is counted as unfinished, and another one goes on" in done.err
    assert "the glass is broken" in (done.artifacts / "logs" / "aiperf.log").read_text()
    arrivals = done.json()["measurement"]["arrivals"]
    assert arrivals["planned"] == 12 == sum(arrivals[what] for what in ("completed", "unfinished", "never_sent"))
    assert arrivals["completed"] == simulator.summary()["requests"] > 4


def test_all_of_them_are_listed_with_their_causes(aiperf: Program, overlay: Overlay) -> None:
    import_error("metrics")(overlay)
    overlay.add("bad-api", "endpoints", "newer", manifest=NEWER)
    overlay.add("bad-silent", "endpoints", "silent", manifest=None)
    twins(overlay)
    done = aiperf("plugins", "validate")
    assert done.code == 1
    faults = [line for line in done.out.splitlines() if " 0.9" in line]
    assert len(faults) == 4 and all(line.count("): ") == 1 for line in faults), done.out
    broken = {row["name"] for row in json.loads(aiperf("plugins", "--json").out)["broken"]}
    assert broken == {"newer", "silent", "twin"}
