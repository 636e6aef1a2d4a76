"""A soak: many streams for minutes, a share of the requests failing at random; the server's log is the truth.

usage: soak.py [--seconds N] [--streams N] [--transport kernel|aiohttp]

What is judged: the server's program received no request twice; what it received stands once in the ledger, and is
``completed`` exactly where it sent the whole answer; what it never received is a failure, or was cut off at the end;
``aiperf validate`` finds nothing.  Some answers are followed by a close of the connection, idle or at once.  Exits 1 where
something is wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fault_server import ANSWERED, FaultServer, Row
from program import Done, Program

SECONDS, STREAMS, FAILING, CLOSING = 180, 500, 0.08, 0.04
FAULTS = (
    "reset_request", "reset_late", "fin_request", "reset_header", "reset_content", "reset_stream", "truncate", "status_503",
)  # fmt: skip
CLOSES = ("idle_fin", "close_race")
_ENTRIES = 4_000
_STEP_S = 0.3
"""Between pieces of an answer: the server, on the same machine, must not be what is measured."""
_CUT_OFF = frozenset({"aborted", "cancelled", "never_sent"})
"""Outcomes of arrivals that the end of the run takes."""


def run(seconds: int, streams: int, transport: str, folder: Path) -> tuple[list[str], str]:
    """Run the soak in *folder*: what is wrong, a sentence each; and what happened."""
    chance, file = random.Random(25), folder / "prompts.jsonl"
    file.write_text("".join(json.dumps({"text_input": _prompt(chance, n), "output_length": 6}) + "\n" for n in range(_ENTRIES)))
    words = [
        "profile", "--model", "m", "--endpoint-type", "chat", "--streaming", "--transport", transport, "--tokenizer", "builtin",
        "--use-server-token-count", "--input-file", str(file), "--concurrency", str(streams), "--benchmark-duration",
        str(seconds), "--benchmark-grace-period", "60", "--random-seed", "1", "--ui", "none",
    ]  # fmt: skip
    aiperf = Program(folder)
    with FaultServer(step_s=_STEP_S) as server:
        done = aiperf.start(*words, "--url", server.url).end(seconds + 240)
        rows = list(server.rows)
    if done.code != 0:
        return [f"exit code {done.code}: {done.last_words}"], ""
    ledger = done.lines("profile_export_arrivals.jsonl")
    problems = list(_judge(ledger, rows, done))
    judged = aiperf("validate", done.artifacts)
    problems += [] if judged.code == 0 else [f"validate: {judged.out.strip()[-400:]}"]
    reconnects = Counter(row["reconnected"] for row in ledger if "reconnected" in row)
    failed = sum(row["outcome"] in ("error", "cut") for row in ledger)
    told = (
        f"{len(ledger):,} arrivals, {len(rows):,} received, {failed:,} failed; on a second connection:"
        f" {', '.join(f'{count:,} {cause}' for cause, count in sorted(reconnects.items())) or 'none'}"
    )
    return problems, told


def _prompt(chance: random.Random, n: int) -> str:
    drawn = chance.random()
    fault = chance.choice(FAULTS) if drawn < FAILING else chance.choice(CLOSES) if drawn < FAILING + CLOSING else None
    return f"line {n}" if fault is None else f"line {n} fault={fault}"


def _judge(ledger: Sequence[dict[str, Any]], rows: Sequence[Row], done: Done) -> Iterator[str]:
    received = Counter(row.request_id for row in rows)
    if twice := [name for name, count in received.items() if count > 1]:
        yield f"the server received {len(twice)} requests twice, {twice[0]} for one"
    named = Counter(row["x_request_id"] for row in ledger if "x_request_id" in row)
    if repeated := [name for name, count in named.items() if count > 1]:
        yield f"{len(repeated)} requests stand twice in the ledger"
    if lost := received.keys() - named.keys():
        yield f"{len(lost)} requests that the server received are not in the ledger"
    answered = {row.request_id for row in rows if row.outcome == ANSWERED}
    wrong = Counter(
        f"{row['outcome']}, {'answered' if name in answered else 'received' if name in received else 'never received'}"
        for row in ledger
        if (name := row.get("x_request_id")) is not None
        and row["outcome"] not in _CUT_OFF
        and (row["outcome"] == "completed") != (name in answered)
    )
    for what, count in wrong.items():
        yield f"{count} arrivals are {what}"
    summary = done.json()
    failures = sum(row["outcome"] in ("error", "cut") for row in ledger)
    if (told := summary.get("error_request_count", {}).get("avg", 0)) != failures:
        yield f"error_request_count is {told}, and {failures} by the ledger"


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("usage: ")[1].split("\n")[0])
    parser.add_argument("--seconds", type=int, default=SECONDS)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--transport", default="kernel", choices=("kernel", "aiohttp"))
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        problems, told = run(given.seconds, given.streams, given.transport, Path(folder))
    print(told, *problems, sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
