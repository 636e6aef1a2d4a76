"""How late the requests of agents leave: many trees at a time, with waits, children and joins.

usage: trees.py [--lanes 1000] [--rate 500] [--seconds 100] [--runs 1] [--pairs 3]

Each tree has 50 requests: a root of ten turns that starts two children of five turns behind its first, third, fifth and seventh
turn, and waits for them.  Waits before the turns are drawn so that all trees together send so many requests a second.  Prompts
have 100 tokens; truthd answers.

The lag of a request is the time from when it was due (the answer before it and its wait, or the end of the last child) to when
it was started, as the ledger has it.  Beside it stands a bare loop with one timer for the same instants (timer_loop.py), and,
where AIPERF_REFERENCE names its program, the reference with the same file.  The reference tells no due times, so both tools are
compared by the turns of children: from the end of the answer before, by its record, and the wait, to the record's start.
By the server is how far the k-th request came behind the k-th due time: it knows nothing of whose request it was.

Then come *pairs* of runs of recorded agents without branches, the same conversations at the same times: as lanes of agentic
replay, and as a fixed schedule, which the sessions driver sends.  Processor time of all processes for a request is compared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from bench import machine
from tools import HERE, Ours, Ran, byte_tokenizer, timed
from truth import Truth, truthd

Floats = npt.NDArray[np.float64]
Waits = dict[tuple[str, int], float]
"""Before a turn, in ms, by conversation and turn."""

ROOT_TURNS, CHILD_TURNS, ROUNDS, CHILDREN = 10, 5, 4, 2
NODES = ROOT_TURNS + ROUNDS * CHILDREN * CHILD_TURNS
STEPS = ROOT_TURNS + ROUNDS * CHILD_TURNS
"""Requests of a tree that wait for each other, one behind the other."""
TTFT_MS, ITL_MS, TOKENS = 20, 1, 16
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PROMPT_TOKENS, PROMPT_BYTES = 100, 500
CONNECTIONS = 200
"""Of the bare loop."""
AGENTS, REQUESTS, STEP_S, BLOCK, ANSWER_S = 100, 60, 0.25, 64, 0.04
"""Recorded agents, requests of each, the time from one to the next, tokens of a block, and how long answers took."""
WAYS = {
    "lanes": (
        "--scheduling-mode", "agentic_replay", "--concurrency", AGENTS, "--trajectory-start-min-ratio", 0,
        "--trajectory-start-max-ratio", 0, "--benchmark-duration", REQUESTS * STEP_S, "--benchmark-grace-period", 5,
    ),
    "sessions": ("--fixed-schedule",),
}  # fmt: skip
"""How recorded agents are sent."""


def corpus(path: Path, trees: int, wait_ms: float, seed: int = 1) -> Waits:
    """Write the trees; the waits before their turns, *wait_ms* on average."""
    draw, waits = random.Random(seed), Waits()

    def turns(name: str, count: int) -> list[dict[str, Any]]:
        made = []
        for turn in range(count):
            waits[name, turn] = round(draw.uniform(0.2, 1.8) * wait_ms, 3)
            text = " ".join(draw.choices(WORDS, k=PROMPT_TOKENS))
            made.append({"messages": [{"role": "user", "content": text}], "max_tokens": TOKENS, "delay": waits[name, turn]})
        return made

    with path.open("w") as file:
        for n in range(trees):
            root = turns(f"t{n}", ROOT_TURNS)
            rows = [{"session_id": f"t{n}", "turns": root}]
            for at in range(ROUNDS):
                names = [f"t{n}c{at}{child}" for child in range(CHILDREN)]
                root[2 * at]["spawns"] = [{"children": names, "join_at": 2 * at + 1}]
                rows += [{"session_id": name, "turns": turns(name, CHILD_TURNS)} for name in names]
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return waits


def profile(program: str, server: Truth, given: argparse.Namespace, file: Path, out: Path, tokenizer: str) -> Ran:
    server.reset()
    words = [
        program, "profile", "--model", "truth", "--url", f"http://127.0.0.1:{server.port}", "--endpoint-type", "chat",
        "--streaming", "--tokenizer", tokenizer, "--input-file", file, "--custom-dataset-type", "dag_jsonl",
        "--dataset-sampling-strategy", "sequential", "--concurrency", given.lanes, "--benchmark-duration", given.seconds,
        "--benchmark-grace-period", 5, "--random-seed", 1, "--artifact-dir", out, "--ui", "none",
    ]  # fmt: skip
    return timed([str(word) for word in words], memory=True)


def lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    path = folder / name
    packed = path.with_name(f"{name}.gz")
    with gzip.open(packed) if packed.exists() else path.open("rb") as file:
        yield from map(json.loads, file)


def child_lags_ms(folder: Path, waits: Waits) -> Floats:
    """Of later turns of children, by their records."""
    ends: dict[tuple[str, int], int] = {}
    starts: list[tuple[str, str, int, int]] = []
    for line in lines(folder, "profile_export.jsonl"):
        about = line["metadata"]
        name, turn = about["conversation_id"], about["turn_index"]
        ends[about["x_correlation_id"], turn] = about["request_end_ns"]
        if "c" in name and turn:
            starts.append((about["x_correlation_id"], name, turn, about["request_start_ns"]))
    found = [
        (at - ends[session, turn - 1]) / 1e6 - waits[name, turn]
        for session, name, turn, at in starts if (session, turn - 1) in ends
    ]  # fmt: skip
    return np.array(found)


def ledger_ns(folder: Path) -> npt.NDArray[np.int64]:
    """Due time and start of each request that was due, on the wall clock."""
    rows = [
        (line["due_ns"], line["started_ns"])
        for line in lines(folder, "profile_export_arrivals.jsonl") if "due_ns" in line and "started_ns" in line
    ]  # fmt: skip
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def bare_ms(server: Truth, due_ns: npt.NDArray[np.int64], folder: Path) -> Floats:
    """Lags of a bare loop with a timer, for the same instants."""
    server.reset()
    instants = np.sort(due_ns) - due_ns.min()
    (folder / "instants").write_bytes(instants.astype("<i8").tobytes())
    words = [sys.executable, HERE / "timer_loop.py", server.port, CONNECTIONS, PROMPT_BYTES, folder / "instants"]
    return np.array(json.loads(timed([str(word) for word in words]).output)) / 1e6


def recorded(path: Path, seed: int = 1) -> None:
    """Write agents without branches, whose contexts grow by two blocks a request, and end within a third."""
    draw, ids = random.Random(seed), iter(range(1 << 30))
    with path.open("w") as file:
        for number in range(AGENTS):
            begin_s, blocks, calls = draw.uniform(0, STEP_S), list[int](), list[dict[str, Any]]()
            for turn in range(REQUESTS):
                blocks += [next(ids), next(ids)]
                at_s = 0.0 if not turn else turn * STEP_S + begin_s
                calls.append({
                    "t": at_s, "type": "s", "model": "m", "in": BLOCK * len(blocks) + draw.randrange(BLOCK), "out": TOKENS,
                    "hash_ids": [*blocks], "api_time": ANSWER_S,
                })  # fmt: skip
            trace = {"id": f"a{number}", "models": ["m"], "block_size": BLOCK, "hash_id_scope": "local", "requests": calls}
            file.write(json.dumps(trace) + "\n")


def replayed(server: Truth, way: str, file: Path, out: Path) -> tuple[float, int]:
    """Processor time and requests of a replay of the agents."""
    server.reset()
    words = [
        Ours().program, "profile", "--model", "truth", "--url", f"http://127.0.0.1:{server.port}", "--endpoint-type", "chat",
        "--streaming", "--tokenizer", "builtin", "--input-file", file, "--custom-dataset-type", "weka_trace",
        "--random-seed", 1, "--artifact-dir", out, "--ui", "none", *WAYS[way],
    ]  # fmt: skip
    return timed([str(word) for word in words]).cpu_s, len(server.requests().received)


def compared(server: Truth, pairs: int, folder: Path) -> None:
    """Print the processor time of both ways, and its ratio in each pair."""
    recorded(folder / "agents.jsonl")
    spent = {way: list[float]() for way in WAYS}
    for pair in range(pairs):
        for way in [*WAYS][:: -1 if pair % 2 else 1]:
            cpu_s, requests = replayed(server, way, folder / "agents.jsonl", folder / f"{way}-{pair}")
            spent[way].append(cpu_s / requests)
            print(f"recorded agents, {way}: {requests:,} requests, CPU {cpu_s:.2f} s", flush=True)
    ratios = [lanes / sessions for lanes, sessions in zip(*spent.values(), strict=True)]
    print(
        f"CPU of a request, lanes to sessions: {statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
        f" in {pairs} pairs (must reach: 1.1)"
    )


def figures(values: Floats) -> dict[str, float]:
    return {name: float(np.percentile(values, share)) for name, share in (("p50", 50), ("p99", 99), ("p99.9", 99.9))} | {
        "max": float(values.max())
    }


def measured(server: Truth, given: argparse.Namespace, folder: Path) -> dict[str, dict[str, float]]:
    """The figures of one run, by what they are of."""
    wait_ms = NODES * given.lanes / given.rate / STEPS * 1000 - TTFT_MS - ITL_MS * TOKENS
    waits = corpus(folder / "trees.jsonl", given.lanes, wait_ms)
    ran = profile(Ours().program, server, given, folder / "trees.jsonl", folder / "this", "builtin")
    seen = server.requests()
    due_ns, started_ns = ledger_ns(folder / "this").T
    behind = np.sort(seen.arrived)[-len(due_ns) :] - np.sort(due_ns)
    found = {
        "this": figures((started_ns - due_ns) / 1e6),
        "this, by the server": figures(behind / 1e6),
        "bare loop": figures(bare_ms(server, due_ns, folder)),
        "this, turns of children": figures(child_lags_ms(folder / "this", waits)),
    }
    report = json.loads((folder / "this" / "profile_export_aiperf.json").read_text())
    found["run"] = {
        "requests": float(len(seen.received)), "requests/s": len(seen.received) / given.seconds, "MB": ran.peak_mb or 0.0,
        "CPU s": ran.cpu_s, "errors": float(report["measurement"]["arrivals"]["errors"]),
    }  # fmt: skip
    if reference := os.environ.get("AIPERF_REFERENCE"):
        tokenizer = byte_tokenizer(folder / "tokenizer")
        ran = profile(reference, server, given, folder / "trees.jsonl", folder / "reference", str(tokenizer))
        found["reference, turns of children"] = figures(child_lags_ms(folder / "reference", waits))
        requests = len(server.requests().received)
        found["reference's run"] = {
            "requests": float(requests), "requests/s": requests / given.seconds, "MB": ran.peak_mb or 0.0, "CPU s": ran.cpu_s
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lanes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seconds", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    runs = []
    for _ in range(given.runs):
        with truthd(TTFT_MS, ITL_MS) as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
            runs.append(measured(server, given, Path(folder)))
    for name in runs[0] if runs else ():
        cells = [f"{key} {statistics.median(run[name][key] for run in runs):,.3f}" for key in runs[0][name]]
        print(f"{name}: {', '.join(cells)}")
    above = [run["this"]["p99"] - run["bare loop"]["p99"] for run in runs]
    if runs:
        print(f"start lag p99 above the bare loop's: {', '.join(f'{each:.3f}' for each in above)} ms (must reach: 1 ms)")
    if given.pairs:
        with truthd(TTFT_MS, ITL_MS) as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
            compared(server, given.pairs, Path(folder))
    print(machine())


if __name__ == "__main__":
    main()
