"""``aiperf plugins validate``: the packages here pass their contracts; each fault of another package is one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import Descriptor
from aiperf_command_plugins import contracts
from program import Program

CODE = '''
import os, time
import numpy as np
from aiperf import Capabilities, Dataset, Definition, Endpoint, HttpRequest, Metric, SummaryExporter, Ui, Unit, hookimpl

def late(seed, stream, block, count, smoothness):
    return np.full(count, 2.0)

def beyond(seed, session, count):
    return count

def falling(x):
    return 1.0 - x

def fatal(x):
    os._exit(3)

def endless(x):
    time.sleep(600)

class Moody(Endpoint):
    capabilities = Capabilities(path="/moody")
    asked = 0

    def encode(self, turn):
        Moody.asked += 1
        return HttpRequest("/moody", b"%d" % Moody.asked)

class Unmade(Moody):
    def __init__(self, options=None):
        raise ValueError("no luck")

class Endless(Metric):
    tag, title, unit = "endless", "Endless", Unit.COUNT

    def column(self, batch):
        return np.full(len(batch), np.inf)

class Raises(Metric):
    tag, title, unit = "raises", "Raises", Unit.COUNT

    def column(self, batch):
        raise ZeroDivisionError("no divisor")

class Chicken(Endless):
    tag, needs = "chicken", ("egg",)

class Egg(Endless):
    tag, needs = "egg", ("chicken",)

class Unmarked:
    def aiperf_run_ended(self, summary):
        pass

    @hookimpl
    def aiperf_teardown(self):
        pass

class Needy(SummaryExporter):
    def export(self, summary):
        return [] if summary.results["request_latency"] else []
'''
ROWS = {
    ("arrivals", "late"): ("late", "the mean gap is one"),
    ("samplers", "beyond"): ("beyond", "every session gets an entry that is there"),
    ("ramps", "falling"): ("falling", "it never falls and never overshoots"),
    ("ramps", "fatal"): ("fatal", "exit code 3"),
    ("endpoints", "moody"): ("Moody", "the same turn gives the same bytes"),
    ("metrics", "endless"): ("Endless", "no value is infinite"),
    ("metrics", "raises"): ("Raises", "ZeroDivisionError: no divisor"),
    ("metrics", "chicken"): ("Chicken", "metrics that need each other are left out: chicken → egg → chicken"),
    ("metrics", "egg"): ("Egg", "metrics that need each other are left out: chicken → egg → chicken"),
    ("hooks", "unmarked"): ("Unmarked", "aiperf_run_ended lacks @hookimpl"),
    ("exporters", "needy"): ("Needy", "a run without results is survived"),
    ("endpoints", "unmade"): ("Unmade", "it can be made: ValueError: no luck"),
    ("tokenizers", "absent"): ("Absent", "no attribute 'Absent'"),
}
"""The object of each plugin, and its fault."""


def installed(site: Path, rows: dict[tuple[str, str], str], code: str = CODE) -> None:
    """A distribution, as pip leaves it in a directory of the path."""
    package, info = site / "acme_faulty", site / "acme_faulty-1.0.dist-info"
    package.mkdir(parents=True)
    info.mkdir()
    (package / "__init__.py").write_text(code)
    manifest = 'schema_version: 1\napi: ">=1,<2"\nplugins:\n'
    groups = ""
    for (category, name), value in rows.items():
        manifest += f"  - {{category: {category}, name: {name}, summary: Is wrong., capabilities: {{"
        manifest += "path: /moody}}\n" if category == "endpoints" else "}}\n"
        groups += f"[aiperf.{category}]\n{name} = acme_faulty:{value}\n"
    (package / "aiperf.yaml").write_text(manifest)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-faulty\nVersion: 1.0\n")
    merged: dict[str, list[str]] = {}
    for group, line in zip(groups.splitlines()[::2], groups.splitlines()[1::2], strict=True):
        merged.setdefault(group, []).append(line)
    (info / "entry_points.txt").write_text("".join("\n".join([group, *lines]) + "\n" for group, lines in merged.items()))


@pytest.mark.parametrize(("line", "least"), [
    ("aiperf plugins validate aiperf-endpoint-chat", 1),
    pytest.param("aiperf plugins --validate", 100, marks=pytest.mark.long),  # each package's own tests do the same
])  # fmt: skip
def test_what_ships_passes_all_of_its_contracts(tmp_path: Path, line: str, least: int) -> None:
    done = Program(tmp_path).line(line)
    assert done.code == 0, done.out + done.err
    checked = re.fullmatch(r"(\d+) plugins? checked, no fault\n", done.out)
    assert checked and int(checked[1]) >= least
    ended = [line for line in done.err.splitlines() if re.fullmatch(r"\d+/\d+ [\w-]+ [\w.]+: \d+ plugins?, no fault", line)]
    assert len(ended) > 50 or least == 1, "a line for each package as it ends"
    assert done.err.splitlines() == ended, "the contracts were run, and each package of ours brings the material for its own"


def test_each_fault_is_a_line_with_package_plugin_and_check(tmp_path: Path) -> None:
    installed(tmp_path / "site", {key: value for key, (value, _) in ROWS.items()})
    program = Program(tmp_path)
    program.environment["PYTHONPATH"] = str(tmp_path / "site")
    done = program("plugins", "validate", "acme-faulty")
    *lines, summed = done.out.splitlines()
    assert done.code == 1 and f"{len(ROWS)} plugins checked, {len(lines)} faults" == summed
    for (category, name), (_, fault) in ROWS.items():
        begin = f"{category}:{name} (acme-faulty 1.0): "
        assert any(line.startswith(begin) and fault in line for line in lines), f"{begin}{fault}\n{done.out}"
    assert done.err.count("\n") == 1 and "endpoints:moody (transcript)" in done.err


def test_a_plugin_that_hangs_is_ended_and_the_next_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {("ramps", "endless"): "endless", ("samplers", "beyond"): "beyond"}
    installed(tmp_path, rows)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    plugins = [
        Descriptor(category, name, f"acme_faulty:{value}", "acme-faulty", "1.0", "Is wrong.")
        for (category, name), value in rows.items()
    ]
    found = contracts.check(Registry(plugins, kernel_options=()), plugins, limit_s=3.0)
    faults = {one.name: fault for one, fault in found.faults}
    assert "it took longer than 3 s" in faults["endless"]
    assert faults["beyond"]


def test_without_pytest_manifests_are_checked_and_a_note_says_so(tmp_path: Path) -> None:
    site = tmp_path / "site"
    installed(site, {("arrivals", "late"): "late", ("tokenizers", "absent"): "Absent"})
    (site / "sitecustomize.py").write_text("import sys\nsys.modules['pytest'] = None\n")
    program = Program(tmp_path)
    program.environment["PYTHONPATH"] = str(site)
    done = program("plugins", "validate", "acme-faulty")
    assert done.code == 1
    assert [line.partition(" ")[0] for line in done.out.splitlines()] == ["tokenizers:absent", "2"]
    assert done.err == f"aiperf: {contracts.PYTEST_MISSING}\n"
