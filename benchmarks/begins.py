"""How long a run of a large file waits for its first request.

usage: begins.py [BASE] [--rows 200000] [--only NAME …] [--runs 1]

Each run sends 200 requests/s for two seconds to truthd; a trace keeps to its times, which are as close.  From the start of the
program to the begin of the load, in s.  BASE, another checkout with its environment, runs in turns with this one.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench import machine
from tools import HERE
from truth import Truth, truthd

RATE, LASTS_S = 200, 2
_WORDS = Random(1)
_VOCABULARY = ["".join(_WORDS.choices("abcdefghijklmnop", k=_WORDS.randrange(3, 9))) for _ in range(2000)]


class Mode(NamedTuple):
    """row: makes a row from its number and a draw.  words: of the command line; without any, the recorded times are kept."""

    name: str
    file: str
    row: Callable[[int, Random], dict[str, Any]]
    words: tuple[str, ...] = ("--request-rate", str(RATE))


def text(draw: Random, words: int = 24) -> str:
    return " ".join(draw.choices(_VOCABULARY, k=words))


def single(number: int, draw: Random) -> dict[str, Any]:
    return {"session_id": f"session-{number // 2}", "text": text(draw), "output_length": 16}


def lone(number: int, draw: Random) -> dict[str, Any]:
    return {"text": text(draw), "output_length": 16}


def multi(number: int, draw: Random) -> dict[str, Any]:
    return {"session_id": f"{number // 2}", "turns": [{"text": text(draw, 12), "output_length": 16} for _ in range(2)]}


def trace(number: int, draw: Random) -> dict[str, Any]:
    at_ms, session = 1000 * number // RATE, number // 2
    return {"timestamp": at_ms, "session_id": f"{session}", "input_length": 64, "output_length": 16, "hash_ids": [session]}


def bailian(number: int, draw: Random) -> dict[str, Any]:
    parent = number - 1 if number % 2 else -1
    return {
        "chat_id": number, "parent_chat_id": parent, "timestamp": number / RATE, "input_length": 64, "output_length": 16,
        "turn": 1 + number % 2, "hash_ids": [number // 2],
    }  # fmt: skip


def burst(number: int, draw: Random) -> dict[str, Any]:
    return {"Timestamp": number / RATE, "Request tokens": 64, "Response tokens": 16}


SHUFFLED = ("--request-rate", str(RATE), "--dataset-sampling-strategy", "shuffle")
MODES = [
    Mode("single_turn, sessions of two rows", "sessions.jsonl", single),
    Mode("the same, shuffled", "sessions.jsonl", single, SHUFFLED),
    Mode("single_turn in CSV", "lone.csv", lone),
    Mode("single_turn in Parquet", "lone.parquet", lone),
    Mode("multi_turn, sessions of two rows of two turns", "multi.jsonl", multi),
    Mode("mooncake_trace, sessions of two rows, at its times", "trace.jsonl", trace, ()),
    Mode("the same at twice its speed", "trace.jsonl", trace, ("--synthesis-speedup-ratio", "2")),
    Mode("bailian_trace at its times", "bailian.jsonl", bailian, ("--custom-dataset-type", "bailian_trace")),
    Mode("burst_gpt_trace at its times", "burst.csv", burst, ("--custom-dataset-type", "burst_gpt_trace")),
]


def write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    if path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".csv":
        first = next(rows)
        with path.open("w", newline="") as out:
            table = csv.DictWriter(out, list(first))
            table.writeheader()
            table.writerows([first])
            table.writerows(rows)
    else:
        with path.open("w") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)


def begin_s(checkout: Path, server: Truth, file: Path, words: tuple[str, ...]) -> float:
    """From the start of the program to the begin of its load."""
    server.reset()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        given = words if "--request-rate" in words else (*words, "--fixed-schedule")
        began = time.monotonic()
        subprocess.run(
            [
                str(checkout / ".venv" / "bin" / "aiperf"), "profile", "--model", "truth", "--url",
                f"http://127.0.0.1:{server.port}", "--endpoint-type", "chat", "--tokenizer", "builtin", "--random-seed", "1",
                "--input-file", str(file), "--benchmark-duration", str(LASTS_S), "--artifact-dir", folder, "--ui", "none",
                *given,
            ], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        times = json.loads((Path(folder) / "journal" / "run-times.json").read_text())
        return float(times["begin_ns"] / 1e9 - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", type=Path, nargs="?", help="another checkout with its environment")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--only", nargs="*", help="beginnings of names")
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    sides = {"base": given.base.resolve()} if given.base else {}
    sides["this"] = HERE.parent
    print(f"| what | size | {' | '.join(sides)} |\n|---|---|{'---|' * len(sides)}")
    with truthd(0, 0) as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for mode in MODES:
            if given.only and not mode.name.startswith(tuple(given.only)):
                continue
            file, draw = Path(folder) / mode.file, Random(1)
            if not file.exists():
                write(file, (mode.row(number, draw) for number in range(given.rows)))
            found: dict[str, list[float]] = {side: [] for side in sides}
            for run in range(given.runs):
                for side in list(sides) if run % 2 == 0 else list(sides)[::-1]:
                    found[side].append(begin_s(sides[side], server, file, mode.words))
                    print(f"{mode.name}: {side} {found[side][-1]:.2f} s", file=sys.stderr, flush=True)
            cells = [f"{statistics.median(times):.1f} ({min(times):.1f}–{max(times):.1f})" for times in found.values()]
            print(f"| {mode.name} | {file.stat().st_size / 1e6:.0f} MB | {' | '.join(cells)} |", flush=True)
    print(f"\n{machine()}. {given.runs} runs of each side.")


if __name__ == "__main__":
    main()
