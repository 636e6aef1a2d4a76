"""The contract of reducers: a good one keeps it, and each kind of bad one is caught."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from _pytest.outcomes import Failed
from aiperf import Plan, Summary
from aiperf.parts import journal
from aiperf.sdk.errors import BadJournal
from aiperf.sdk.reducer import Live, Reducer, ReducerJob, RunningReduction, plugins_used
from aiperf.sdk.summary import Arrivals, DeliveredLoad, Measurement, PhaseSummary
from aiperf.testing import ReducerContract

NEEDS_A_PACKAGE = "test_its_manifest_says_what_it_is"


class Plain(Reducer[None]):
    """Reads the segments when all is over."""

    def begin(self, job: ReducerJob) -> RunningReduction:
        return Reading(job, self)

    def report(
        self, directory: Path, change: Callable[[Plan], Plan] | None = None
    ) -> tuple[Summary, Plan, journal.RunClock]:
        where = directory / "journal"
        plan, clock = journal.load_run(where)
        if not journal.numbered(where, "shard-*.seg"):
            raise BadJournal("nothing was observed")
        plan = plan.replacing(artifacts=str(directory), journal=str(where))
        plan = plan if change is None else change(plan)
        return self.summary(plan, clock, where), plan, clock

    def requests(self, where: Path, shard: int) -> Iterator[tuple[int, int, int, int | None]]:
        """Phase, start, end, and outcome: None of a request without an end."""
        begun: dict[int, tuple[int, int]] = {}
        for path in journal.numbered(where, f"shard-{shard}.*.seg"):
            for frame in journal.frames(path):
                values = memoryview(frame.payload).cast("q") if frame.kind in (journal.SENT, journal.DONE) else ()
                width = len(values) // max(frame.count, 1)
                for start in range(0, len(values), width or 1):
                    row = values[start : start + width]
                    if frame.kind == journal.SENT:
                        begun[row[0]] = row[2], row[9]
                    else:
                        yield *begun.pop(row[0]), row[8], row[1]
        for phase, started in begun.values():
            yield phase, started, started, None

    def summary(self, plan: Plan, clock: journal.RunClock, where: Path) -> Summary:
        end = journal.load_end(where)
        all_requests = [each for shard in range(plan.run.workers) for each in self.requests(where, shard)]
        lost = 0 if end is None else sum(end.requests.values()) - len(all_requests)
        unfinished = any(outcome is None for *_, outcome in all_requests)
        reason = self.reason(end, lost, unfinished=unfinished)
        phases = []
        for phase in plan.load.phases:
            own = [each for each in all_requests if each[0] == phase.index]
            zero = clock.started_wall_ns - clock.started_mono_ns
            good, bad = (sum(each[3] == outcome for each in own) for outcome in (journal.COMPLETED, journal.ERROR))
            window = min(each[1] for each in own) + zero, max(each[2] for each in own) + zero
            phases.append(PhaseSummary(phase.name, phase.kind, phase.index, *window, {}, (), good, bad))
        main = phases[-1]
        summary = Summary(
            plan.run.run_id, plan.run.version, {}, (), tuple(phases), Measurement("read", False, Arrivals()),
            DeliveredLoad(None, None, 0), plugins_used(plan), main.start_ns, main.end_ns, "Plain", plan.run.command, {},
            main.valid, main.failed, complete=reason is None, incomplete_reason=reason,
            extra={"lost": [f"{lost} are lost"]} if lost else {},
        )  # fmt: skip
        (where / "summary.msgpack").write_bytes(msgspec.msgpack.encode(summary))
        return summary

    def reason(self, end: journal.RunEnd | None, lost: int, *, unfinished: bool) -> str | None:
        return "no end" if end is None else "lost" if lost else "unfinished" if unfinished else None


class Reading(RunningReduction):
    def __init__(self, job: ReducerJob, reducer: Plain) -> None:
        self.job, self.reducer = job, reducer

    def step(self) -> int:
        return 50

    def finish(self) -> None:
        pass

    def summarize(self) -> None:
        self.reducer.summary(self.job.plan, self.job.clock, self.job.journal)


def failures(reducer: type[Reducer[Any]], folder: Path) -> set[str]:
    """Names of the contract's tests that fail, for a reducer that no package registers."""
    contract = type("Contract", (ReducerContract,), {"reducer": reducer})()
    failed = set()
    for name, test in inspect.getmembers(contract, inspect.ismethod):
        if not name.startswith("test_") or name == NEEDS_A_PACKAGE:
            continue
        marks = getattr(test, "pytestmark", [])
        for value in marks[0].args[1] if marks else (None,):
            place = folder / f"{name}-{value}"
            place.mkdir()
            try:
                test(place, **({} if value is None else {"reducers": value}))
            except (Exception, Failed):  # noqa: BLE001  # that it failed is the finding
                failed.add(name)
    return failed


def test_a_good_reducer_keeps_the_contract(tmp_path: Path) -> None:
    assert failures(Plain, tmp_path) == set()


class OneSegment(Plain):
    def requests(self, where: Path, shard: int) -> Iterator[tuple[int, int, int, int | None]]:
        for path in journal.numbered(where, f"shard-{shard}.*.seg")[1:]:
            path.unlink()
        return super().requests(where, shard)


class Sum(Plain):
    def begin(self, job: ReducerJob) -> RunningReduction:
        path = job.journal / "tally"

        class Tally(Reading):
            """Writes what it has counted behind what a dead one had counted."""

            seen = 0

            @property
            def live(self) -> Live:
                return Live(-self.seen)

            def step(self) -> int:
                requests = [*self.reducer.requests(job.journal, job.index)]
                with path.open("a") as file:
                    file.writelines(f"{each[0]} {each[3]}\n" for each in requests[self.seen :])
                self.seen = len(requests)
                return 50

            def summarize(self) -> None:
                super().summarize()
                made = msgspec.msgpack.decode((job.journal / "summary.msgpack").read_bytes(), type=Summary)
                rows = path.read_text().splitlines() if path.exists() else []
                phases = tuple(
                    msgspec.structs.replace(each, valid=rows.count(f"{each.index} 0"), failed=rows.count(f"{each.index} 1"))
                    for each in made.phases
                )
                main = {"valid": phases[-1].valid, "failed": phases[-1].failed}
                whole = msgspec.structs.replace(made, phases=phases, **main)
                (job.journal / "summary.msgpack").write_bytes(msgspec.msgpack.encode(whole))

        return Tally(job, self)


class Hopeful(Plain):
    def reason(self, end: journal.RunEnd | None, lost: int, *, unfinished: bool) -> str | None:
        return None


class Greedy(Plain):
    def begin(self, job: ReducerJob) -> RunningReduction:
        for path in job.journal.glob("shard-1.*"):
            path.unlink()
        return super().begin(job)


class Rooted(Plain):
    def report(
        self, directory: Path, change: Callable[[Plan], Plan] | None = None
    ) -> tuple[Summary, Plan, journal.RunClock]:
        plan, clock = journal.load_run(directory / "journal")
        return self.summary(plan, clock, Path(plan.output.journal)), plan, clock


class Troubled(Plain):
    def begin(self, job: ReducerJob) -> RunningReduction:
        job.trouble("I don't like it")
        return super().begin(job)


@pytest.mark.parametrize(
    ("bad", "tests"),
    [
        (OneSegment, "requests_are_counted_by_phase a_report_has_the_same_counts"),
        (Sum, "a_reducer_that_dies_counts_nothing_twice live_numbers_do_not_decrease"),
        (Hopeful, "a_run_that_was_killed_has_a_partial_report lost_requests_make_a_partial_report"
         " requests_without_an_end_are_in_no_count"),
        (Greedy, "segments_of_other_shards_stay a_reducer_that_dies_counts_nothing_twice"),
        (Rooted, "a_report_goes_where_the_directory_went a_directory_without_observations_is_refused"),
        (Troubled, "requests_are_counted_by_phase"),
    ],
)  # fmt: skip
def test_what_a_bad_reducer_does_is_caught(tmp_path: Path, bad: type[Reducer[Any]], tests: str) -> None:
    assert {f"test_{name}" for name in tests.split()} <= failures(bad, tmp_path)
