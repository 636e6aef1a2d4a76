"""How long a benchmark of 14,042 problems with five examples waits for its first request, and how much memory it takes.

usage: problems.py [--pairs 5] [--problems 14042]

Beside it ``single_turn`` runs, in turns: with a file of the same prompts, and with one of the same size.  Every run sends all
requests to truthd over 64 connections.  From the start of the program to the begin of the load, in s; of each process the
largest proportional size, sampled ten times a second, in MB.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, NamedTuple

from aiperf_benchmarks.contract import TEXT, opened
from aiperf_dataset_mmlu.dataset import SUBJECTS, Mmlu
from bench import machine
from tools import pss_kb, tree
from truth import Truth, truthd

_EXAMPLES, _SAMPLE_S = 5, 0.1
"""Examples of a subject; time between two looks at the processes."""
_DRAW = Random(1)
_VOCABULARY = ["".join(_DRAW.choices("abcdefghijklmnop", k=_DRAW.randrange(3, 9))) for _ in range(2000)]


class Found(NamedTuple):
    """begin_s: from the start of the program to the begin of the load.  most_mb: of each process, by its module."""

    begin_s: float
    most_mb: dict[str, float]


def row(subject: str, split: str) -> dict[str, Any]:
    """A question as long as those of MMLU are in the mean."""
    words, choices = _DRAW.choices(_VOCABULARY, k=45), [" ".join(_DRAW.choices(_VOCABULARY, k=6)) for _ in range(4)]
    answer = _DRAW.randrange(4)
    return {"question": " ".join(words), "choices": choices, "answer": answer, "subject": subject, "split": split}


def files(folder: Path, problems: int) -> dict[str, Path]:
    """The benchmark's file, one of its prompts, and one of prompts that has its size."""
    rows = [row(subject, "dev") for subject in SUBJECTS for _ in range(_EXAMPLES)]
    rows += [row(SUBJECTS[number * len(SUBJECTS) // problems], "test") for number in range(problems)]
    found = {name: folder / f"{name}.jsonl" for name in ("mmlu", "same prompts", "same size")}
    found["mmlu"].write_text("".join(json.dumps(each) + "\n" for each in rows))
    prompts = [one.turns[0].text for one in opened(Mmlu, "mmlu", found["mmlu"], can=TEXT)]
    found["same prompts"].write_text("".join(json.dumps({"text": text}) + "\n" for text in prompts))
    each = found["mmlu"].stat().st_size // problems - len('{"text": ""}\n')
    found["same size"].write_text("".join(json.dumps({"text": text[-each:]}) + "\n" for text in prompts))
    return found


def run(server: Truth, name: str, file: Path, count: int) -> Found:
    """One run of all problems.

    Raises:
        SystemExit: It failed.
    """
    server.reset()
    if name == "mmlu":
        data = ["--accuracy-benchmark", "mmlu", "--accuracy-data", str(file)]
    else:
        data = ["--input-file", str(file), "--custom-dataset-type", "single_turn", "--request-count", str(count), "--osl", "5"]
    most_mb = defaultdict[str, float](float)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        began = time.monotonic()
        process = subprocess.Popen(
            [
                sys.executable, "-m", "aiperf", "profile", "--model", "truth", "--url", f"http://127.0.0.1:{server.port}",
                "--endpoint-type", "chat", "--streaming", "--tokenizer", "builtin", "--concurrency", "64", "--ui", "none",
                "--artifact-dir", folder, *data,
            ], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        while process.poll() is None:
            time.sleep(_SAMPLE_S)
            for pid in tree(process.pid):
                try:
                    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                    size_mb = pss_kb(pid) / 1000
                except OSError:  # it has just ended
                    continue
                module = f"{words[words.index('-m') + 1] if '-m' in words else 'parent'} {pid}"
                most_mb[module] = max(most_mb[module], size_mb)
        completed = server.stats()["completed"]
        if process.returncode or completed != count:
            sys.exit(f"{name}: it exits {process.returncode}; the server completed {completed} of {count}")
        times = json.loads((Path(folder) / "journal" / "run-times.json").read_text())
        return Found(times["begin_ns"] / 1e9 - began, dict(most_mb))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--problems", type=int, default=14_042)
    given = parser.parse_args()
    with truthd(0, 0) as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        paths = files(Path(folder), given.problems)
        found: dict[str, list[Found]] = {name: [] for name in paths}
        for pair in range(given.pairs):
            for name in list(paths) if pair % 2 == 0 else list(paths)[::-1]:
                found[name].append(run(server, name, paths[name], given.problems))
                last = found[name][-1]
                print(f"{name}: {last.begin_s:.2f} s, largest {max(last.most_mb.values()):.0f} MB", file=sys.stderr, flush=True)
        sizes_mb = {name: path.stat().st_size / 1e6 for name, path in paths.items()}
    print("| what | size | first request, s | largest process, MB |\n|---|---|---|---|")
    for name, runs in found.items():
        begins, sizes = [one.begin_s for one in runs], [max(one.most_mb.values()) for one in runs]
        shown = f"{median(begins):.2f} ({min(begins):.2f}–{max(begins):.2f})"
        print(f"| {name} | {sizes_mb[name]:.0f} MB | {shown} | {max(sizes):.0f} |")
    for name in list(paths)[1:]:
        ratios = [one.begin_s / other.begin_s for one, other in zip(found["mmlu"], found[name], strict=True)]
        print(f"\nmmlu / {name}: {median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
    print(f"\n{machine()}. {given.pairs} runs of each, in turns.")


if __name__ == "__main__":
    main()
