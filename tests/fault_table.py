"""The fault table: every fault of a server, in every mode, on both transports; the server's log is the truth.

A cell is one run in which every third request meets the fault.  What is judged: each planned arrival has one outcome; it is
``completed`` exactly where the server's log says that the whole answer was sent; every count of the results agrees with that.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiperf_testing.server import Certificate, answer
from fault_server import ANSWERED, ENDLESS_BYTES, FAULT_NAMES, HUGE_BYTES, FaultServer, Row
from program import Done, Program
from wrong_servers import WrongServer

REFUSED, RESET_ACCEPT, MIXED = "refused", "reset_accept", "all of them"
NO_TLS, SILENT_TO_TLS, OLD_TLS = "no_tls", "silent_to_tls", "old_tls"
FAULTS = {
    REFUSED: "connection refused (one of two URLs)",
    NO_TLS: "https on a port of plain http, which answers 400 (one of two URLs)",
    SILENT_TO_TLS: "https on a port of plain http, which is silent (one of two URLs)",
    OLD_TLS: "TLS 1.0 alone (one of two URLs)",
    RESET_ACCEPT: "reset before any byte of the request is read",
    "reset_request": "reset after the request",
    "reset_late": "reset 20 ms after the request",
    "fin_request": "closed after the request, without an answer",
    "idle_fin": "idle connection closed (no harm)",
    "close_race": "closed behind the answer, crossing the next request",
    "reset_header": "reset within the header",
    "reset_content": "reset before first content",
    "reset_stream": "reset in mid-stream",
    "stall": "silence in mid-stream, until the request's timeout",
    "truncate": "chunked stream ends early",
    "cut": "stream without framing ends early",
    "not_http": "garbage instead of HTTP",
    "bad_events": "garbage instead of events",
    "status_429": "429 with Retry-After",
    "status_503": "503 with a page of HTML",
    "status_events": "500 with an event stream",
    "filtered": "no content, stopped by a filter",
    "choices": "two choices, each with a usage (no fault)",
    "negative_usage": "a usage with negative counts (no fault)",
    "refusal": "a refusal (no fault)",
    "interim_storm": "1,000 interim answers",
    "redirect": "redirect (307)",
    "gzip": "gzip that nobody asked for",
    "huge_error": "500 with a body of 3 MB",
    "endless_headers": "headers without an end",
}
"""Each fault and its line in the table."""
MODES = ("burst", "request_rate", "fixed_schedule", "user_centric")
TRANSPORTS = ("kernel", "aiohttp")
REQUESTS, FEW_REQUESTS = 18, 6
"""The few are of a cell in which half of them take 30 s."""
TIMEOUT_S = 5
"""Of requests in cells with a stall; an answer without one takes some 50 ms."""
CLOSING = frozenset({"idle_fin", "close_race"})
"""Faults behind a whole answer."""
CAUSES = {REFUSED: "nobody_listens", NO_TLS: "no_tls", SILENT_TO_TLS: "no_answer_to_tls", OLD_TLS: "old_tls"}
"""Faults of the second of two URLs, at which no request is received, and what the report says of their cause."""
ENDS = frozenset({"completed", "error", "cut", "empty"})
"""Outcomes of arrivals of a run that nobody interrupts."""


@dataclass(frozen=True)
class FaultCell:
    """*fault*: a key of FAULTS, or MIXED."""

    fault: str
    mode: str
    transport: str

    @property
    def name(self) -> str:
        return f"{self.fault}-{self.mode}-{self.transport}"


def cells() -> Iterator[FaultCell]:
    for fault in FAULTS:
        for mode in MODES:
            for transport in TRANSPORTS:
                yield FaultCell(fault, mode, transport)


def prompts(cell: FaultCell) -> list[str]:
    if cell.fault == MIXED:
        names: list[str | None] = [name for fault in FAULT_NAMES for name in (fault, None)]
    else:
        count = FEW_REQUESTS if cell.fault == SILENT_TO_TLS else REQUESTS
        names = [cell.fault if n % 3 == 1 and cell.fault in FAULT_NAMES else None for n in range(count)]
    return [f"line {n}" if name is None else f"line {n} fault={name}" for n, name in enumerate(names)]


@contextmanager
def second_url(cell: FaultCell, server: FaultServer, folder: Path) -> Iterator[str]:
    """A URL at which no request can be sent."""
    if cell.fault not in (NO_TLS, SILENT_TO_TLS, OLD_TLS):
        yield server.dead_url
        return
    certificate = Certificate.made(folder) if cell.fault == OLD_TLS else None
    page = b"" if cell.fault == SILENT_TO_TLS else answer(b"Bad Request", status=400, content_type="text/plain")
    with WrongServer(page, certificate=certificate, old_tls=True, silent=cell.fault == SILENT_TO_TLS) as wrong:
        yield f"https://{wrong.address}"


def words(cell: FaultCell, server: FaultServer, second: str, folder: Path) -> list[str]:
    """The command line of the cell's run; its data set is written to *folder*."""
    texts = prompts(cell)
    file = folder / "prompts.jsonl"
    rows = [{"timestamp": 20 * n, "text_input": text, "output_length": 6} for n, text in enumerate(texts)]
    load = {
        "burst": ["--concurrency", "4", "--no-fixed-schedule"],
        "request_rate": ["--request-rate", "60", "--no-fixed-schedule"],
        "fixed_schedule": ["--fixed-schedule"],
        "user_centric": ["--user-centric-rate", "60", "--num-users", "4"],
    }[cell.mode]
    if cell.mode == "user_centric":
        turns = [texts[n : n + 2] for n in range(0, len(texts), 2)]
        file.write_text("".join(json.dumps({"turns": [{"text": text} for text in each]}) + "\n" for each in turns))
        load += ["--custom-dataset-type", "multi_turn"]
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    urls = ["--url", server.url]
    if cell.fault in CAUSES:
        urls += ["--url", second]
    elif cell.fault == MIXED:
        urls = ["--url", f"{server.url}=7", "--url", f"{second}=1", "--url-strategy", "weighted"]
    timeout = ["--request-timeout-seconds", str(TIMEOUT_S)] if cell.fault in ("stall", MIXED) else []
    timeout += ["--unreachable-timeout", "0"] if cell.fault == SILENT_TO_TLS else []  # the last users may all wait there
    return [
        "profile", "--model", "m", *urls, "--endpoint-type", "chat", "--streaming", "--transport", cell.transport,
        "--tokenizer", "builtin", "--use-server-token-count", "--input-file", str(file), *load,
        "--request-count", str(len(texts)), *timeout, "--random-seed", "1", "--ui", "none",
    ]  # fmt: skip


def run(cell: FaultCell, folder: Path, *, validate: bool = True) -> list[str]:
    """Run the cell in *folder*; what is wrong, a sentence each."""
    temporary = folder / "temporary"
    temporary.mkdir()
    aiperf = Program(folder)
    aiperf.environment["TMPDIR"] = str(temporary)
    with (
        FaultServer(reset_accepts=cell.fault in (RESET_ACCEPT, MIXED)) as server,
        second_url(cell, server, folder) as second,
    ):
        running = aiperf.start(*words(cell, server, second, folder))
        try:
            done = running.end(180)
        except AssertionError as error:
            return [str(error)[-600:]]
        problems = judge(cell, done, server, second)
    problems += [f"process left: {command}" for command in running.survivors()]
    problems += [f"file left: {path.name}" for path in temporary.iterdir()]
    problems += [f"draft left: {path.name}" for path in done.artifacts.rglob("*draft*")]
    if validate and not problems:
        judged = aiperf("validate", done.artifacts)
        problems += [] if judged.code == 0 else [f"validate: {judged.out.strip()[-400:]}"]
    return problems


def judge(cell: FaultCell, done: Done, server: FaultServer, second: str) -> list[str]:
    """What the results say against the server's log, a sentence for each contradiction."""
    if done.code not in (0, 1):
        return [f"exit code {done.code}: {done.last_words}"]
    ledger = done.lines("profile_export_arrivals.jsonl")
    failed = sum(row["outcome"] != "completed" for row in ledger)
    if done.code != (2 * failed > len(ledger)):
        return [f"exit code {done.code} where {failed} of {len(ledger)} failed: {done.last_words}"]
    by_id: dict[str, list[Row]] = {}
    for row in server.rows:
        by_id.setdefault(row.request_id, []).append(row)
    return [
        *_arrivals(ledger, len(prompts(cell))),
        *_outcomes(cell, ledger, by_id, server, second),
        *_counts(done, ledger),
        *_bounds(done, server),
        *_causes(cell, done, ledger, second),
    ]


def _arrivals(ledger: Sequence[dict[str, Any]], planned: int) -> Iterator[str]:
    times = Counter(row["n"] for row in ledger)
    if missing := sorted(set(range(planned)) - set(times)):
        yield f"no outcome for arrivals {missing}"
    if twice := sorted(n for n, count in times.items() if count > 1):
        yield f"two outcomes for arrivals {twice}"
    if strange := sorted(set(times) - set(range(planned))):
        yield f"arrivals nobody planned: {strange}"
    if other := {row["outcome"] for row in ledger} - ENDS:
        yield f"outcomes of a run that ended by itself: {sorted(other)}"
    ids = Counter(row.get("x_request_id") for row in ledger)
    if twice_sent := sorted(str(name) for name, count in ids.items() if count > 1):
        yield f"one request id for several arrivals: {twice_sent[:3]}"


def _outcomes(
    cell: FaultCell, ledger: Sequence[dict[str, Any]], by_id: dict[str, list[Row]], server: FaultServer, second: str
) -> Iterator[str]:
    unknown = set(by_id) - {row.get("x_request_id") for row in ledger}
    if unknown:
        yield f"{len(unknown)} requests that the server received are no arrivals"
    unreceived = 0
    wrong: dict[str, list[int]] = {}
    for row in ledger:
        seen = by_id.get(row.get("x_request_id", ""), [])
        dead = row.get("url") == second
        unreceived += not seen and not dead
        for problem in _arrival(row, seen, dead=dead):
            wrong.setdefault(problem, []).append(row["n"])
    for problem, numbers in wrong.items():
        yield f"arrivals {', '.join(map(str, sorted(numbers)))} {problem}"
    crossed = sum(row.fault == "close_race" for row in server.rows)  # a close with the next request unread is a reset
    if not (cell.fault == RESET_ACCEPT) <= unreceived <= server.refused_at_once + crossed:
        yield f"{unreceived} arrivals never reached the server, which reset {server.refused_at_once} connections at once"
    if cell.fault not in (*CAUSES, RESET_ACCEPT, MIXED) and not any(each.fault for each in server.rows):
        yield "the fault never happened"
    if cell.fault not in (RESET_ACCEPT, MIXED, *CLOSING) and (moved := sum("reconnected" in row for row in ledger)):
        yield f"{moved} arrivals went to a second connection, and no idle one was closed"


def _arrival(row: dict[str, Any], seen: Sequence[Row], *, dead: bool) -> Iterator[str]:
    """What the ledger's row says against the server's rows of that request.  *dead*: it went to the second URL."""
    if dead and seen:
        yield "went to the second URL, and the first one's server received them"
    if any(each.outcome == ANSWERED for each in seen) != (row["outcome"] == "completed"):
        yield f"are {row['outcome']}; the server's log: {', '.join(each.outcome for each in seen) or 'never received'}"
    if len(seen) > 1:
        yield f"were received {len(seen)} times"
    if seen and row.get("sent_ns") is None:
        yield "were received and are not called sent"
    if dead and row.get("sent_ns") is not None:
        yield "went to the second URL, where nothing can be sent, and are called sent"


def _counts(done: Done, ledger: Sequence[dict[str, Any]]) -> Iterator[str]:
    outcomes = Counter(row["outcome"] for row in ledger)
    good, summary = outcomes["completed"], done.json()
    bad = len(ledger) - good
    counted = {
        "request_count": (summary.get("request_count", {}).get("avg", 0), good),
        "error_request_count": (summary.get("error_request_count", {}).get("avg", 0), bad),
        "error_summary": (sum(each["count"] for each in summary["error_summary"]), bad),
        "outcomes": (sum(summary["outcomes"].values()), len(ledger)),
        "arrivals.planned": (summary["measurement"]["arrivals"]["planned"], len(ledger)),
        "arrivals.completed": (summary["measurement"]["arrivals"]["completed"], good),
        "latencies": (summary.get("request_latency", {}).get("count", 0), good),
    }
    for name, (told, true) in counted.items():
        if told != true:
            yield f"{name} is {told}, and {true} by the ledger"
    records = done.lines("profile_export.jsonl")
    if len(records) != len(ledger):
        yield f"{len(records)} records for {len(ledger)} arrivals"
    if good != sum("error" not in record for record in records):
        yield f"{sum('error' not in record for record in records)} records without an error for {good} completed requests"
    if not summary["is_complete"]:
        yield f"the run is called incomplete: {summary['incomplete_reason']}"


def _bounds(done: Done, server: FaultServer) -> Iterator[str]:
    if endless := [row for row in server.rows if row.sent_bytes >= ENDLESS_BYTES]:
        yield f"{len(endless)} answers of {ENDLESS_BYTES >> 20} MB of headers were read to their end"
    size = (done.artifacts / "profile_export.jsonl").stat().st_size
    if size >= HUGE_BYTES:
        yield f"the per-request file has {size:,} bytes"


def _causes(cell: FaultCell, done: Done, ledger: Sequence[dict[str, Any]], second: str) -> Iterator[str]:
    """The report has the one cause of the failures at the second URL, names that URL alone, and has one duration at most."""
    if cell.fault not in CAUSES:
        return
    lost = sum(row.get("url") == second for row in ledger)
    if not 0 < lost < len(ledger):
        yield f"{lost} of {len(ledger)} arrivals went to the second URL"
    findings = [found for found in done.json()["measurement"]["findings"] if found.get("scope") == "failed requests"]
    if [found["kind"] for found in findings] != [CAUSES[cell.fault]]:
        yield f"the causes told are {[found['sentence'] for found in findings]}"
    for found in findings:
        sentence = found["sentence"]
        if f"-u {second}" not in sentence or sentence.count("-u ") != 1:
            yield f"the cause is not told of the second URL alone: {sentence}"
        if found["numbers"]["requests"] != lost:
            yield f"the cause is told of {found['numbers']['requests']} requests, and {lost} went to the second URL"
        if (told := re.findall(r"[\d.]+ s\b", sentence)) != ["30 s"] * (cell.fault == SILENT_TO_TLS):
            yield f"the durations told are {told}: {sentence}"
