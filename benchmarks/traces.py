"""Traces of published shapes, made from a seed, and what reading them costs: benchmarks/traces.py [PART].

*mooncake* is like the trace that was published with Mooncake (Qin et al. 2024): 23,608 requests in an hour, prompts of 7,590
tokens on average with a long tail, answers of 182, blocks of 512 tokens, of which more than half are old.  *conversation*
are chats whose prompts grow, *agents* few long system prompts with tools and short own parts, *wide* chats of about 52 blocks.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from truth import truthd

BLOCK = 512
Row = dict[str, Any]


class _Ids:
    """New ids, one after the other."""

    def __init__(self) -> None:
        self._next = 0

    def take(self, count: int) -> list[int]:
        self._next += count
        return list(range(self._next - count, self._next))


def _row(at_ms: int, ids: list[int], tail: int, answer: int) -> Row:
    return {"timestamp": at_ms, "input_length": (len(ids) - 1) * BLOCK + tail, "output_length": answer, "hash_ids": ids}


def _log_normal(draw: random.Random, mean: float, middle: float) -> float:
    return draw.lognormvariate(math.log(middle), math.sqrt(2 * math.log(mean / middle)))


def conversation(
    rows: int, seed: int, *, first: float = 8.0, more: float = 3.0, again: float = 0.6, own: float = 0.3
) -> Iterator[Row]:
    """Chats that begin with one system prompt and go on with probability *again*: prompts grow by about *more* blocks."""
    draw, ids, open_ = random.Random(seed), _Ids(), list[list[int]]()
    system = ids.take(1)
    for index in range(rows):
        if open_ and draw.random() < again:
            at = len(open_) - 1 - min(int(draw.expovariate(own / 10)), len(open_) - 1)
            chat = open_[at] = open_[at] + ids.take(1 + int(draw.expovariate(1 / more)))
            if len(chat) > 250:
                open_.pop(at)
        else:
            chat = [*system, *ids.take(max(1, round(_log_normal(draw, first, first / 2))))]
            open_.append(chat)
        tail, answer = draw.randint(1, BLOCK), max(1, round(_log_normal(draw, 182, 90)))
        yield _row(round(index * 3_600_000 / rows), chat, tail, answer)


def agents(rows: int, seed: int, *, kinds: int = 40, length: float = 12.0, own: float = 4.0) -> Iterator[Row]:
    """Requests to *kinds* agents, some much more used than others, each with a long prompt of its own before what is asked."""
    draw, ids = random.Random(seed), _Ids()
    prompts = [ids.take(max(2, round(_log_normal(draw, length, length / 1.5)))) for _ in range(kinds)]
    weights = [1 / (rank + 1) ** 1.1 for rank in range(kinds)]
    for index, prompt in enumerate(draw.choices(prompts, weights, k=rows)):
        chat = prompt + ids.take(max(1, round(_log_normal(draw, own, own / 2))))
        yield _row(round(index * 3_600_000 / rows), chat, draw.randint(1, BLOCK), max(1, round(_log_normal(draw, 182, 60))))


def mooncake(rows: int = 23_608, seed: int = 1) -> Iterator[Row]:
    """Both kinds together, at the times of a Poisson process."""
    draw = random.Random(seed)
    chats = conversation(rows, seed, first=8.0, more=2.5, again=0.45)
    tools = agents(rows, seed + 1, length=9.0, own=4.0)
    at = 0.0
    for _ in range(rows):
        chat = draw.random() < 0.55
        row = next(chats if chat else tools)
        row["hash_ids"] = [2 * identity + chat for identity in row["hash_ids"]]  # ids of the two never meet
        row["timestamp"] = round(at)
        at += draw.expovariate(rows / 3_600_000)
        yield row


def wide(rows: int, seed: int) -> Iterator[Row]:
    """Chats with prompts of about 52 blocks, for the cost of reading."""
    return conversation(rows, seed, first=40.0, more=5.0, again=0.75, own=0.2)


SHAPES: dict[str, Callable[[int, int], Iterator[Row]]] = {
    "conversation": conversation, "agents": agents, "mooncake": mooncake, "wide": wide
}  # fmt: skip


def write(path: Path, rows: Iterator[Row]) -> Path:
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def measured(*words: str) -> tuple[float, float, float]:
    """Wall time and processor time in s, and largest resident size in MB, of a program."""
    begun = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(words)} failed")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def analyze(folder: Path, rounds: int) -> None:
    """20,000 rows of about 52 blocks, beside the reference where AIPERF_REFERENCE names its program."""
    aiperf, trace = str(Path(sys.executable).parent / "aiperf"), write(folder / "wide.jsonl", wide(20_000, 1))
    tools = {"analyze-trace": (aiperf, "analyze-trace", str(trace)),
             "with --cache-curve": (aiperf, "analyze-trace", str(trace), "--cache-curve")}  # fmt: skip
    if reference := os.environ.get("AIPERF_REFERENCE"):
        tools["reference"] = (reference, "analyze-trace", str(trace))
    for name, words in tools.items():
        runs = [measured(*words) for _ in range(rounds)]
        wall, processor, size = zip(*runs, strict=True)
        print(f"{name}: {median(wall):.2f} s ({min(wall):.2f}–{max(wall):.2f}), processor {median(processor):.2f} s"
              f" ({min(processor):.2f}–{max(processor):.2f}), {max(size):.0f} MB")  # fmt: skip


def million(folder: Path, rounds: int) -> None:
    """1,000,000 rows; the memory beyond that of an empty trace, for each distinct block."""
    aiperf = str(Path(sys.executable).parent / "aiperf")
    trace, one = write(folder / "million.jsonl", wide(1_000_000, 1)), write(folder / "one.jsonl", wide(1, 1))
    _, _, idle = measured(aiperf, "analyze-trace", str(one))
    report = json.loads(subprocess.run([aiperf, "analyze-trace", str(trace), "--json"], capture_output=True, check=True).stdout)
    for words in ((), ("--cache-curve",)):
        seconds, processor, size = measured(aiperf, "analyze-trace", str(trace), *words)
        blocks = report["distinct_blocks"]
        each = (size - idle) * 1e6 / blocks
        print(f"{' '.join(words) or 'plain'}: {seconds:.1f} s, processor {processor:.1f} s, {size:.0f} MB:"
              f" {each:.0f} bytes for each of {blocks:,} blocks ({report['referenced_blocks']:,} references)")  # fmt: skip


def replay(folder: Path, rounds: int, rows: int = 23_608) -> None:
    """The mooncake trace at 20 times its speed against truthd: what was sent, and how late, by the ledger and the server.

    *rows*: only so many of its first rows, at the same rate.
    """
    aiperf, trace = str(Path(sys.executable).parent / "aiperf"), write(folder / "mooncake.jsonl", islice(mooncake(), rows))
    artifacts = folder / "artifacts"
    for _ in range(rounds):
        with truthd(50, 5) as server:
            subprocess.run([
                aiperf, "profile", "--model", "m", "--url", f"http://127.0.0.1:{server.port}", "--endpoint-type", "chat",
                "--streaming", "--tokenizer", "builtin", "--input-file", str(trace), "--custom-dataset-type", "mooncake_trace",
                "--fixed-schedule", "--synthesis-speedup-ratio", "20", "--artifact-dir", str(artifacts), "--ui-type", "none",
            ], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
            seen = len(server.requests().received)
        report = json.loads((artifacts / "profile_export_aiperf.json").read_text())
        measurement, hit = report["measurement"], report["theoretical_prefix_cache_hit"]["avg"]
        print(f"{seen:,} requests read by the server; arrivals {measurement['arrivals']}")
        print(f"slip {measurement['schedule_slip_ms']}, verdict {measurement['verdict']}, theoretical hits {hit:.2f} %")


def make(folder: Path, rounds: int) -> None:
    """Write the traces to the directory and measure nothing."""
    for name, shape in SHAPES.items():
        rows = 23_608 if name == "mooncake" else 20_000
        print(write(folder / f"{name}.jsonl", shape(rows, 1)))


PARTS = {"analyze": analyze, "million": million, "replay": replay, "make": make}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, default="analyze")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=23_608, help="of replay: the first rows of the trace")
    parser.add_argument("--folder", type=Path, help="keeps the traces")
    options = parser.parse_args()
    parts = PARTS | {"replay": partial(replay, rows=options.rows)}
    with tempfile.TemporaryDirectory() as scratch:
        parts[options.part](options.folder or Path(scratch), options.rounds)


if __name__ == "__main__":
    main()
