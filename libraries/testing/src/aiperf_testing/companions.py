"""The contract of companions: every point of a run is survived, in runs that end early, too."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.errors import AiperfError
from aiperf.sdk.categories import CATEGORIES
from aiperf.sdk.companion import Companion, CompanionContext, Waiting
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.snapshot import LiveSeries, Snapshot

from aiperf_testing.manifests import check_row
from aiperf_testing.plans import sample_plan

_KEY = "a-key-of-the-run"
_WAIT_S = 60.0
_PHASES = (PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("profiling", "profiling", 1, "burst", turns=9))


class CompanionContract:
    """Subclass with a companion's class; *fields*: of the plan, where the companion needs some of its own::

        class TestMineKeepsTheContract(CompanionContract):
            companion = Mine
    """

    companion: ClassVar[type[Companion[Any]]]
    options: ClassVar[Any] = None
    fields: ClassVar[Mapping[str, Any]] = {}

    def _plan(self, folder: Path) -> Plan:
        plan = sample_plan(folder, **{"phases": _PHASES, **type(self).fields})
        Path(plan.output.journal).mkdir(parents=True)
        return plan

    def _context(self, folder: Path, said: list[str], *, kept: bool = False) -> CompanionContext:
        secrets = Secrets({"Authorization": f"Bearer {_KEY}"}, texts=(_KEY,))
        return CompanionContext(self._plan(folder), secrets, folder / "log", said.append, kept)

    @pytest.fixture
    def said(self) -> list[str]:
        """What the companion reports."""
        return []

    @pytest.fixture
    def made(self, tmp_path: Path, said: list[str]) -> Iterator[Companion[Any]]:
        """The companion of a run, which is closed behind the test, and then has no thread that keeps a process."""
        before = set(threading.enumerate())
        companion = type(self).companion(type(self).options, self._context(tmp_path, said))
        yield companion
        companion.close()
        left = [each.name for each in set(threading.enumerate()) - before if not each.daemon]
        assert not left, f"close leaves threads: {left}"

    def _waited(self, companion: Companion[Any]) -> bool:
        """Whether the load may begin."""
        until_s = time.monotonic() + _WAIT_S
        try:
            companion.begin()
            while (waiting := companion.waiting()) is not None:
                assert isinstance(waiting, Waiting) and waiting.what, "it says what the load waits for"
                assert time.monotonic() < until_s, f"it waits for more than {_WAIT_S:g} s"
                time.sleep(0.01)
        except AiperfError:
            return False
        return True

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("companions", self.companion)
        option, category = row.capabilities.get("needs_option"), row.capabilities.get("needs_plugins")
        assert option is None or option in {spec.field for spec in row.options}, f"it has no option {option}"
        assert category is None or category in CATEGORIES, f"there is no category {category}"

    def test_its_plan_is_accepted(self, tmp_path: Path) -> None:
        plan = self._plan(tmp_path)
        type(self).companion.check(plan, type(self).options)

    def test_it_accompanies_a_run(self, made: Companion[Any], said: list[str]) -> None:
        if self._waited(made):
            for phase in _PHASES:
                made.phase_begins(phase)
                made.phase_began(phase, begin_ns := time.monotonic_ns())
                made.snapshot(Snapshot(phase.name, phase.kind, 1e-9, sent=9, completed=8, errors=1, in_flight=0, rate=9.0))
                assert all(isinstance(row, LiveSeries) for row in made.series()), "series() gives LiveSeries"
                made.phase_ended(phase, begin_ns + 1)
            made.finish()
        made.close()
        assert all(sentence == " ".join(sentence.split()) for sentence in said), "what it reports is one line each"
        assert _KEY not in "".join(said), "it prints or writes the API key of the run: leave secrets out of what it says"

    def test_it_may_rest_between_two_runs(self, tmp_path: Path, said: list[str]) -> None:
        """What it keeps takes part in the next run, of the same options, as in the first."""
        made = type(self).companion(type(self).options, self._context(tmp_path / "first", said, kept=True))
        try:
            if not self._waited(made):
                return
            made.finish()
            if not made.rest():
                return
            queued = made.queued()
            assert queued is None or queued >= 0, "the requests in the servers' queues are a number from 0 on, or None"
            if made.again(self._context(tmp_path / "second", said, kept=True)) and self._waited(made):
                made.finish()
        finally:
            made.close()

    def test_a_run_may_end_before_its_load(self, made: Companion[Any]) -> None:
        self._waited(made)

    def test_a_run_may_end_before_it_begins(self, made: Companion[Any]) -> None:
        made.close()
