"""A third party's reducer that fails: the run names it, makes no results, and keeps the journal for another reducer."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

SOURCE = '''
import os
from aiperf_reducer_columns import Columns
from aiperf_reducer_columns.running import ColumnsReduction

def fail(at):
    if os.environ["FAILS"] == at:
        raise ValueError(f"no {at}")

class Reduction(ColumnsReduction):
    @property
    def live(self):
        fail("live")
        return super().live

    def step(self):
        fail("step")
        return super().step()

    def finish(self):
        fail("finish")
        super().finish()

    def summarize(self):
        fail("summarize")
        if os.environ["FAILS"] != "silently":
            super().summarize()

class Frail(Columns):
    def check(self, plan, endpoint):
        fail("check")

    def preload(self, plan):
        fail("preload")

    def begin(self, job):
        fail("begin")
        return Reduction(job)
'''
MANIFEST = '''
schema_version: 1
api: ">=1,<2"
plugins:
  - category: reducers
    name: frail
    summary: Fails where it is told to.
    priority: 1
'''
NAME = "the plugin reducers:frail of acme-frail 1.0"


@pytest.fixture
def frail(aiperf: Program) -> Program:
    package, about = (aiperf.folder / "site" / name for name in ("acme_frail", "acme_frail-1.0.dist-info"))
    for each in (package, about):
        each.mkdir(parents=True)
    (package / "__init__.py").write_text(SOURCE)
    (package / "aiperf.yaml").write_text(MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-frail\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[aiperf.reducers]\nfrail = acme_frail:Frail\n")
    aiperf.environment |= {"PYTHONPATH": str(package.parent)}
    return aiperf


def words(simulator: Simulator, folder: Path) -> list[str | float | Path]:
    return [
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 8, "--osl", 2, "--ui", "none",
        "--request-rate", 20, "--arrival-pattern", "constant", "--request-count", 8, "--artifact-dir", folder,
    ]  # fmt: skip


@pytest.mark.parametrize(("at", "said", "sent"), [
    ("check", "can't be used: ValueError: no check", 0), ("begin", "failed: ValueError: no begin", 0),
    ("step", "failed: ValueError: no step", None), ("live", "failed: ValueError: no live", None),
    ("finish", "failed: ValueError: no finish", 8), ("summarize", "failed: ValueError: no summarize", 8),
    ("silently", "has left no summary that can be read: ", 8),
])  # fmt: skip
def test_a_reducer_that_fails_is_named_and_another_makes_the_report(
    frail: Program, simulator: Simulator, tmp_path: Path, at: str, said: str, sent: int | None
) -> None:
    folder = tmp_path / "run"
    frail.environment |= {"FAILS": at}
    looks: list[str | float | Path] = ["--stats-interval", 1] if at == "live" else []  # a line of progress needs live numbers
    done = frail(*words(simulator, folder), *looks)
    assert done.code == 1
    assert f"error: {NAME} {said}" in done.err
    assert "Traceback" not in done.err + "".join(path.read_text() for path in folder.glob("logs/*"))
    answered = len(simulator.truth()["requests"])
    assert sent in (None, answered)
    if answered:
        frail.environment |= {"FAILS": "nowhere"}
        again = frail("report", folder)
        assert f"{answered} succeeded" in again.out, again.err


def test_a_reducer_that_fails_while_it_preloads_is_heard_of_only_where_it_fails_again(
    frail: Program, simulator: Simulator, tmp_path: Path
) -> None:
    frail.environment |= {"FAILS": "preload"}
    done = frail(*words(simulator, tmp_path / "run"))
    assert done.code == 0, done.err
    assert "8 succeeded" in done.out
