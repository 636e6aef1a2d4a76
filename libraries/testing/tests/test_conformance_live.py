"""The contract of live views finds what a bad one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.sdk.live import LiveRun, LiveView, Step
from aiperf.sdk.snapshot import Snapshot
from aiperf.testing import LiveContract, ScriptedFeed, full_snapshot
from test_conformance import verdicts


class Calm(LiveView):
    """Stops a run that is nearly over."""

    def show(self, snapshot: Snapshot) -> None:
        if (snapshot.share or 0) > 0.99:
            self.ask_stop("it is nearly over")


class CalmContract(LiveContract):
    live: ClassVar[type[LiveView[Any]]] = Calm


def with_view(**methods: Any) -> LiveContract:
    contract = type("Changed", (CalmContract,), {"live": type("Bad", (Calm,), methods)})()
    assert isinstance(contract, LiveContract)
    return contract


def test_a_calm_view_keeps_the_contract(tmp_path: Path) -> None:
    assert verdicts(CalmContract(), tmp_path=tmp_path) == set()


@pytest.mark.parametrize(("methods", "failing"), [
    ({"show": lambda self, snapshot: print(snapshot.share * 100)}, {"test_it_watches_two_plans"}),
    ({"end": lambda self, end: print(end.files[0])}, {"test_a_run_may_end_before_there_was_anything_to_show"}),
    ({"show": lambda self, snapshot: self.answer({"stop": True})}, {"test_it_watches_two_plans"}),
    (
        {"close": lambda self: self.begun.clear()},
        {"test_it_watches_two_plans", "test_a_run_may_end_before_there_was_anything_to_show", "test_no_run_may_begin"},
    ),
])  # fmt: skip
def test_what_a_bad_view_does_is_caught(methods: dict[str, Any], failing: set[str], tmp_path: Path) -> None:
    assert verdicts(with_view(**methods), tmp_path=tmp_path) == failing


def test_a_scripted_feed_drives_a_view() -> None:
    called: list[str] = []

    class Heard(LiveView):
        def begin(self, run: LiveRun) -> None:
            called.append("begin")

        def step(self, step: Step) -> None:
            called.append(step.what)

        def show(self, snapshot: Snapshot) -> None:
            called.append(snapshot.phase)

    view = Heard()
    view.run(ScriptedFeed(view, [("begin", None), ("step", Step("Making", 1.0)), ("show", full_snapshot())]))
    assert called == ["begin", "Making", "profiling"]
