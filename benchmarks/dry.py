"""How long a dry run takes, beside the time to the first request of the run.

usage: dry.py [--requests 100000] [--runs 5]

The run is ended with the first byte that its server reads.  Both in turns, from the start of the program, medians in s.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from random import Random

from begins import lone, trace
from bench import machine
from tools import HERE

AIPERF = str(HERE.parent / ".venv" / "bin" / "aiperf")


def first_request_s(words: list[str]) -> float:
    """From the start of the program to the first byte of its first request."""
    with socket.socket() as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server.bind(("127.0.0.1", 0))
        server.listen(1024)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        began_s = time.monotonic()
        run = subprocess.Popen(
            [AIPERF, *words, "--url", url, "--no-preconnect", "--artifact-dir", folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            while True:
                client, _ = server.accept()
                with client:
                    if client.recv(4).startswith(b"POST"):
                        return time.monotonic() - began_s
        finally:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


def dry_s(words: list[str]) -> float:
    began_s = time.monotonic()
    subprocess.run(
        [AIPERF, *words, "--url", "http://127.0.0.1:9", "--dry-run"], check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return time.monotonic() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        for file, row in (("rows.jsonl", lone), ("trace.jsonl", trace)):
            draw = Random(1)
            with (folder / file).open("w") as out:
                out.writelines(json.dumps(row(number, draw)) + "\n" for number in range(given.requests))
        count = ["--request-count", str(given.requests)]
        loads = {
            "synthetic, concurrency 8": [*count, "--concurrency", "8", "--isl", "128", "--osl", "16"],
            "synthetic, 500 requests/s": [*count, "--request-rate", "500", "--isl", "128", "--osl", "16"],
            "single_turn of a file, concurrency 8": [*count, "--concurrency", "8", "--input-file", str(folder / "rows.jsonl")],
            "mooncake_trace at its times": ["--input-file", str(folder / "trace.jsonl"), "--fixed-schedule"],
        }
        print(f"{machine()}\n\n| {given.requests:,} requests | dry run | first request | ratio |\n|---|---|---|---|")
        for what, words in loads.items():
            line = ["profile", "--model", "m", "--tokenizer", "builtin", "--random-seed", "1", "--ui", "none", *words]
            pairs = [(dry_s(line), first_request_s(line)) for _ in range(given.runs)]
            dry, first = (statistics.median(side) for side in zip(*pairs, strict=True))
            print(f"| {what} | {dry:.2f} | {first:.2f} | {dry / first:.2f} |", flush=True)


if __name__ == "__main__":
    main()
