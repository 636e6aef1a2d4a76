"""A plugin's options have their declared types in the worker, in the reducer and in the parent."""

from __future__ import annotations

import json

from aiperf_command_simulate.testing import Simulator
from program import Program

SOURCE = '''
import multiprocessing
import os
import sys
from enum import Enum
from pathlib import Path

import msgspec
from aiperf import Artifact, Capabilities, Delta, Endpoint, HttpRequest, PerRequestMetric, SummaryExporter, Unit
from aiperf import Options, option

INHERITED = set()  # by a process that was forked of the one that validates options
os.register_at_fork(after_in_child=lambda: INHERITED.update(sys.modules))

class Pace(Enum):
    SLOW = "slow"
    FAST = "fast"

class Stop(msgspec.Struct, frozen=True):
    place: str
    nights: float = float("inf")

class Luggage:
    """No other process can decode it."""

class JourneyOptions(Options):
    home: Path | None = option("--home", help="Where notes go.")
    budget: float = option("--budget", default=1.0, help="The most to spend.")
    pace: Pace = option("--pace", default=Pace.SLOW, help="How fast.")
    span: tuple[int, int] = option("--span", default=(0, 1), help="First and last day.")
    stop: Stop | None = option("--stop", help="Where to stay.")
    stops: list[Stop] = option("--stops", default=[], help="Where else.")

EXPECTED = JourneyOptions(
    home=Path("notes"), budget=float("inf"), pace=Pace.FAST, span=(3, 9), stop=Stop("Rome"), stops=[Stop("Bari", 2.0)]
)

def note(role, options):
    """A file that says where the options arrived, and how."""
    assert type(options) is JourneyOptions, options
    assert options == EXPECTED and isinstance(options.home, Path) and isinstance(options.span, tuple), options
    assert isinstance(options.stop, Stop) and isinstance(options.pace, Enum), options
    loaded = [name for name in ("pydantic", "numpy") if name in sys.modules and name not in INHERITED]
    (options.home / f"{role}-{os.getpid()}").write_text(" ".join(loaded))

class Travel(Endpoint[JourneyOptions]):
    capabilities = Capabilities(path="/v1/completions", streaming=True, produces_tokens=True, tokenizes_input=True)

    def encode(self, turn):
        body = {"model": turn.model, "prompt": turn.text, "stream": True, "max_tokens": 4}
        return HttpRequest(self.path(streaming=True), msgspec.json.encode(body))

    def decode(self, event):
        note("endpoint", self.options)
        return None if event == b"[DONE]" else Delta(text="x")

class Miles(PerRequestMetric):
    tag, title, unit = "miles", "Miles", Unit.REQUESTS

    def __init__(self, options):
        note("metric", options)

    def value(self, request):
        return 1.0

class Diary(SummaryExporter[JourneyOptions]):
    def export(self, summary):
        note("exporter", self.options)
        path = self.target.directory / "diary.txt"
        path.write_text("ok")
        return [Artifact("Diary", path)]

class Wires:
    """Its options, seen in the worker."""
    from aiperf import hookimpl

    @hookimpl
    def aiperf_request_prepared(self, request, turn):
        note("worker", self.options)
        return None
'''
ROWS = (
    ("endpoints", "travel", "Travel"),
    ("metrics", "miles", "Miles"),
    ("exporters", "diary", "Diary"),
    ("hooks", "wires", "Wires"),
)
OPTIONS = """    options_model: "acme_journey:JourneyOptions"
    options:
      - {field: home, flags: [--home], help: Where notes go., type: path, metavar: PATH}
      - {field: budget, flags: [--budget], help: The most to spend., type: float, metavar: NUMBER, default: "1"}
      - {field: pace, flags: [--pace], help: How fast., type: choice, metavar: WORD, default: slow, choices: [slow, fast]}
      - {field: span, flags: [--span], help: First and last day., type: int, arity: many, metavar: INT, default: "0,1"}
      - {field: stop, flags: [--stop], help: Where to stay., metavar: TEXT}
      - {field: stops, flags: [--stops], help: Where else., arity: many, metavar: TEXT}
"""
CAPABILITIES = "    capabilities: {path: /v1/completions, streaming: true, produces_tokens: true, tokenizes_input: true}\n"


def install(aiperf: Program, source: str = SOURCE) -> None:
    """The package, as a wheel leaves it."""
    folder = aiperf.folder / "site"
    package, about = folder / "acme_journey", folder / "acme_journey-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text(source)
    manifest, entries = 'schema_version: 1\napi: ">=1,<2"\nplugins:\n', ""
    for category, name, value in ROWS:
        manifest += f"  - category: {category}\n    name: {name}\n    summary: A part of a journey.\n"
        manifest += (CAPABILITIES if category == "endpoints" else "") + OPTIONS
        entries += f"[aiperf.{category}]\n{name} = acme_journey:{value}\n"
    (package / "aiperf.yaml").write_text(manifest)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-journey\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entries)
    aiperf.environment["PYTHONPATH"] = f"{folder}:{aiperf.environment.get('PYTHONPATH', '')}"


GIVEN = (
    "--home", "notes", "--budget", "inf", "--pace", "FAST", "--span", "3,9", "--stop", '{"place": "Rome"}',
    "--stops", '{"place": "Bari", "nights": 2}',
)  # fmt: skip


def test_options_have_their_declared_types_in_every_process(aiperf: Program, simulator: Simulator) -> None:
    install(aiperf)
    notes = aiperf.folder / "notes"
    notes.mkdir()
    done = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "travel", "--streaming", "--tokenizer", "builtin",
        "--isl", 10, "--request-count", 3, "--ui", "none", *GIVEN,
    )  # fmt: skip
    assert done.code == 0, done.err
    written: dict[str, set[str]] = {}
    for path in notes.iterdir():
        role, _, process = path.name.partition("-")
        written.setdefault(role, set()).add(process)
    assert set(written) == {"endpoint", "metric", "exporter", "worker"}, done.err
    (worker,), (decoder,), (parent,) = written["worker"], written["endpoint"], written["exporter"]
    assert len({worker, decoder, parent}) == 3, "three processes"
    assert decoder in written["metric"], "the reducer has the metric's options, too"
    assert (notes / f"worker-{worker}").read_text() == "", "a worker loads neither pydantic nor numpy"
    assert "pydantic" not in (notes / f"endpoint-{decoder}").read_text()
    config = json.loads((done.artifacts / "profile_export_aiperf.json").read_text())["input_config"]
    assert "plugins" not in config
    again = aiperf("report", done.artifacts)
    assert again.code == 0, again.err


def test_a_class_that_no_worker_can_rebuild_is_refused_by_name(aiperf: Program, simulator: Simulator) -> None:
    install(aiperf, SOURCE.replace("home: Path | None", "home: Luggage | None").replace("home=Path(\"notes\")", "home=None"))
    line = ("profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--isl", 10,
        "--request-count", 3, "--ui", "none")  # fmt: skip
    fault = "the option home has the type Luggage, which no other process can decode"
    asked = aiperf(*line, "--endpoint-type", "travel")
    assert asked.code == 1 and "Traceback" not in asked.err
    assert "endpoints:travel" in asked.err and "acme-journey 1.0" in asked.err and fault in asked.err, asked.err
    assert simulator.summary()["requests"] == 0
    typed = aiperf(*line, "--budget", 2)
    assert typed.code == 1 and fault in typed.err and simulator.summary()["requests"] == 0
    done = aiperf(*line)
    assert done.code == 0 and done.err.count(fault) == 1, done.err
