"""The away table: a server that is away for 3, 30 and 90 s, before the first connection or in mid-run; its log is the truth.

What is judged: each arrival has one outcome, ``completed`` exactly where the server's log says that the whole answer was sent;
a run ends where its limit says, with exit code 1 and the rest ``never_sent``, and else goes on until the server is back; the
lines about the server come when they are due, and the last of them has the gap and the requests that failed in it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fault_server import ANSWERED, FaultServer
from fault_table import TRANSPORTS
from program import Done, Program, Running

AT_ONCE = 6
"""Cells that run at a time: they wait for most of theirs."""
BEFORE, MID_RUN = "before the first connection", "in mid-run"
_BURST = ("--concurrency", "2", "--request-count", "600")
_ANSWERED_BEFORE = 20
_LATE_S = 4.0
"""Between the server's return and the first connection to it, and between lines: attempts are up to 1 s apart, and the machine
may be busy."""
_TELL_S, _AGAIN_S = 3, 10
_AWAY = re.compile(r"no connection to the server for (\d+) s, ([\d,]+) requests? failed meanwhile: ")
_BACK = re.compile(r"the server is reached again, after ([\d.]+) s without a connection, ([\d,]+) requests? failed meanwhile")


@dataclass(frozen=True)
class Absence:
    """When the server is away and for how long, the load on it, and how long the run lets it; None as long as it takes."""

    when: str
    away_s: int
    load: tuple[str, ...]
    ends_s: int | None = None

    @property
    def told(self) -> str:
        options = " ".join(self.load).removeprefix(" ".join(_BURST)).removeprefix("--concurrency 2").strip()
        return f"{self.away_s} s {self.when}{f', `{options}`' if options else ''}"


def _for(seconds: int, *more: str) -> tuple[str, ...]:
    return ("--concurrency", "2", "--benchmark-duration", str(seconds), *more)


_PATIENT = (*_BURST, "--unreachable-timeout", "120")
ABSENCES = {
    "before-3": Absence(BEFORE, 3, _BURST),
    "before-30": Absence(BEFORE, 30, _BURST, 10),
    "before-30-typed": Absence(BEFORE, 30, _PATIENT),
    "before-30-timed": Absence(BEFORE, 30, _for(45)),
    "before-90-typed": Absence(BEFORE, 90, _PATIENT),
    "before-90-timed": Absence(BEFORE, 90, _for(105)),
    "mid-3": Absence(MID_RUN, 3, _BURST),
    "mid-30": Absence(MID_RUN, 30, _BURST),
    "mid-30-rate": Absence(MID_RUN, 30, ("--request-rate", "20", "--request-count", "1400")),
    "mid-30-timed-typed": Absence(MID_RUN, 30, _for(60, "--unreachable-timeout", "15"), 15),
    "mid-90": Absence(MID_RUN, 90, _BURST, 60),
    "mid-90-typed": Absence(MID_RUN, 90, _PATIENT),
    "mid-90-timed": Absence(MID_RUN, 90, _for(105)),
}


@dataclass(frozen=True)
class AwayCell:
    """*absence*: a key of ABSENCES."""

    absence: str
    transport: str

    @property
    def name(self) -> str:
        return f"{self.absence}-{self.transport}"


def cells() -> Iterator[AwayCell]:
    """The longest ones first, so that all are over soon."""
    for absence in sorted(ABSENCES, key=lambda name: -ABSENCES[name].away_s):
        for transport in TRANSPORTS:
            yield AwayCell(absence, transport)


def run(cell: AwayCell, folder: Path) -> tuple[list[str], str]:
    """Run the cell in *folder*: what is wrong, a sentence each; and what happened."""
    absence = ABSENCES[cell.absence]
    words = [
        "profile", "--model", "m", "--endpoint-type", "chat", "--streaming", "--transport", cell.transport, "--tokenizer",
        "builtin", "--use-server-token-count", "--isl", "5", "--osl", "6", *absence.load, "--random-seed", "1", "--ui", "none",
    ]  # fmt: skip
    aiperf = Program(folder)
    with FaultServer(away=absence.when == BEFORE) as server:
        running = aiperf.start(*words, "--url", server.url)
        try:
            _play(absence, server, running)
            done = running.end(240)
        except AssertionError as error:
            return [str(error)[-600:]], ""
    problems = [*_judge(absence, done, server), *(f"process left: {command}" for command in running.survivors())]
    judged = aiperf("validate", done.artifacts)
    problems += [] if judged.code == 0 else [f"validate: {judged.out.strip()[-400:]}"]
    outcomes = Counter(row["outcome"] for row in done.lines("profile_export_arrivals.jsonl"))
    length = _BACK.search(done.err)
    told = "ended" if "results are partial" in done.err else f"back after {length[1]} s" if length else "back"
    return problems, f"{told}: {', '.join(f'{count:,} {name}' for name, count in sorted(outcomes.items()))}"


def _play(absence: Absence, server: FaultServer, running: Running) -> None:
    """Take the server away, and bring it back, unless the run is over by then."""
    running.hears("Phase profiling")
    if absence.when == MID_RUN:
        _wait(lambda: len(server.answered()) >= _ANSWERED_BEFORE, 60, running)
        server.leave()
    _wait(lambda: False, absence.away_s, running)
    server.come()


def _wait(condition: Any, seconds: float, running: Running) -> None:
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s and running.process.poll() is None and not condition():
        time.sleep(0.02)


def _judge(absence: Absence, done: Done, server: FaultServer) -> Iterator[str]:
    ledger = done.lines("profile_export_arrivals.jsonl")
    outcomes = Counter(row["outcome"] for row in ledger)
    yield from _arrivals(absence, ledger, server)
    failed = len(ledger) - outcomes["completed"]
    ended = absence.ends_s is not None
    if done.code != (ended or 2 * failed > len(ledger)):
        yield f"exit code {done.code} where {failed} of {len(ledger)} failed: {done.last_words}"
    summary = done.json()
    if ended == summary["is_complete"]:
        yield f"is_complete is {summary['is_complete']}"
    partial = f"results are partial: no connection could be opened for {absence.ends_s} s"
    if ended != (partial in done.err):
        yield f"it should {'say' if ended else 'not say'} {partial!r}: {done.last_words}"
    if (absence.when == MID_RUN or not ended) and outcomes["completed"] < _ANSWERED_BEFORE:
        yield f"{outcomes['completed']} requests are completed"
    if ended and not outcomes["never_sent"] and "--benchmark-duration" not in absence.load:
        yield "no arrival is never_sent"
    yield from _lines(absence, done)


def _arrivals(absence: Absence, ledger: Sequence[dict[str, Any]], server: FaultServer) -> Iterator[str]:
    planned = int(absence.load[3]) if "--request-count" in absence.load else len(ledger)
    if sorted(row["n"] for row in ledger) != list(range(planned)):
        yield f"{len(ledger)} outcomes for {planned} arrivals"
    allowed = {"completed", "error", "cut"} | ({"aborted", "never_sent"} if absence.ends_s is not None else set())
    if other := {row["outcome"] for row in ledger} - allowed:
        yield f"outcomes are {sorted(other)}"
    received = Counter(row.request_id for row in server.rows)
    if twice := sum(count > 1 for count in received.values()):
        yield f"the server received {twice} requests twice"
    named = Counter(row["x_request_id"] for row in ledger if "x_request_id" in row)
    if received.keys() - named.keys() or max(named.values(), default=1) > 1:
        yield "a request that the server received is no arrival, or two"
    answered = {row.request_id for row in server.rows if row.outcome == ANSWERED}
    if wrong := sum((row["outcome"] == "completed") != (row.get("x_request_id") in answered) for row in ledger):
        yield f"{wrong} arrivals are completed and not answered, or answered and not completed"


def _lines(absence: Absence, done: Done) -> Iterator[str]:
    """The lines of the log, and the warnings of the report."""
    log = [line for line in done.err.splitlines() if " WARNING " in f" {line} "]
    away = [(int(found[1]), int(found[2].replace(",", ""))) for line in log if (found := _AWAY.search(line))]
    back = [(float(found[1]), int(found[2].replace(",", ""))) for line in log if (found := _BACK.search(line))]
    gap_s = absence.away_s if absence.ends_s is None else absence.ends_s
    most = (gap_s + _LATE_S - _TELL_S) // _AGAIN_S + 1
    least = 0 if gap_s <= _TELL_S else (gap_s - _LATE_S) // (_AGAIN_S + 2)
    if not least <= len(away) <= most:
        yield f"{len(away)} lines say that the server is away: {away}"
    for n, (at_s, _) in enumerate(away):
        due_s = _TELL_S if n == 0 else away[n - 1][0] + _AGAIN_S
        if not due_s - 1 <= at_s <= due_s + _LATE_S:
            yield f"the lines come at {[at for at, _ in away]} s"
            break
    if len(back) != (absence.ends_s is None and bool(away)):
        yield f"{len(back)} lines say that the server is back"
    warned = [found[0] for line in done.json()["warnings"] if (found := _BACK.search(line))]
    if len(warned) != len(back):
        yield f"the report has {warned}, the log {back}"
    refused = sum(row.get("error", {}).get("cause") == "refused" for row in done.lines("profile_export.jsonl"))
    for seconds, count in back:
        if not absence.away_s - _LATE_S <= seconds <= absence.away_s + _LATE_S:
            yield f"the gap told is {seconds} s"
        if count != refused:
            yield f"{count} requests are told to have failed in the gap, {refused} were refused"
