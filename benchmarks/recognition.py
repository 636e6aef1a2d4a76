"""How long a file's format takes to recognise, in a fresh process that has found the plugins and registered its hooks.

``python benchmarks/recognition.py [ROUNDS]`` writes a file of each kind and prints the median of the rounds, least and most,
and how many packages of data sets were imported.  ``AIPERF_REFERENCE=path/to/bin/aiperf`` adds the reference, installed
elsewhere, in turns: its composer's inference, after its imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

OURS = """
import sys, time
from pathlib import Path
from aiperf.planning import configure, problems, kernel_options
from aiperf.registry.registry import Registry
from aiperf.parts.tools import data_source
registry = Registry.discover()
registry.all("datasets")
registry.hooks()
begun, busy = time.perf_counter(), time.process_time()
found = data_source(Path(sys.argv[1]), None, registry, {})
took = time.perf_counter() - begun, time.process_time() - busy
packages = {name.split(".")[0] for name in sys.modules if name.startswith("aiperf_dataset_")}
print(*took, found.dataset.name, len(packages))
"""
REFERENCE = """
import sys, time
from aiperf.dataset.composer.custom import CustomDatasetComposer
class Quiet(CustomDatasetComposer):
    def __init__(self): pass
    info = exception = lambda self, *words: None
begun, busy = time.perf_counter(), time.process_time()
found = Quiet()._infer_dataset_type(sys.argv[1])
print(time.perf_counter() - begun, time.process_time() - busy, found, 0)
"""
MESSAGES = [{"role": "user", "content": "how does it rain"}]


def files(folder: Path) -> dict[str, Path]:
    """A file of each kind, by what is special about it."""
    rows: dict[str, tuple[str, Any, int]] = {
        "single_turn, 5 rows": ("single.jsonl", {"text": "how does it rain"}, 5),
        "mooncake_trace, 100 MB": ("trace.jsonl", {"timestamp": 0, "input_length": 9000, "hash_ids": list(range(18))}, 900_000),
        "multi_turn": ("chats.jsonl", {"session_id": "s", "turns": [{"text": "a"}, {"text": "b"}]}, 1000),
        "raw_payload": ("bodies.jsonl", {"model": "m", "messages": MESSAGES, "max_tokens": 5}, 1000),
        "single_turn, a line of 10 MB": ("long.jsonl", {"text": "a" * 10_000_000}, 2),
    }
    made = {}
    for what, (name, row, count) in rows.items():
        made[what] = folder / name
        made[what].write_text((json.dumps(row) + "\n") * count)
    made["burst_gpt_trace, CSV"] = folder / "burst.csv"
    made["burst_gpt_trace, CSV"].write_text("Timestamp,Request tokens,Response tokens\n" + "5,472,18\n" * 100_000)
    made["inputs_json, 70 MB in one value"] = folder / "inputs.json"
    sessions = [{"session_id": f"s{number}", "payloads": [{"messages": MESSAGES * 8}]} for number in range(100_000)]
    made["inputs_json, 70 MB in one value"].write_text(json.dumps({"data": sessions}, indent=1))
    return made


class Taken(NamedTuple):
    """*wall_ms* and *processor_ms* (NaN where the format can't be told), the format, and packages imported."""

    wall_ms: float
    processor_ms: float
    found: str
    packages: int


def measured(python: str, program: str, path: Path) -> Taken:
    done = subprocess.run([python, "-c", program, str(path)], capture_output=True, text=True, cwd=path.parent, check=False)
    if done.returncode:
        return Taken(float("nan"), float("nan"), done.stderr.strip().splitlines()[-1][:80], 0)
    wall, processor, found, packages = done.stdout.splitlines()[-1].split()
    return Taken(float(wall) * 1000, float(processor) * 1000, found, int(packages))


def shown(runs: list[Taken]) -> str:
    wall, processor = [run.wall_ms for run in runs], [run.processor_ms for run in runs]
    return (
        f"{runs[0].found} in {median(wall):.1f} ms ({min(wall):.1f}–{max(wall):.1f}),"
        f" processor {median(processor):.1f} ms ({min(processor):.1f}–{max(processor):.1f})"
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    programs = [(sys.executable, OURS)]
    if reference := os.environ.get("AIPERF_REFERENCE"):
        programs.append((str(Path(reference).parent / "python"), REFERENCE))
    with tempfile.TemporaryDirectory() as folder:
        for what, path in files(Path(folder)).items():
            runs = [[measured(*program, path) for program in programs] for _ in range(rounds)]
            ours, *theirs = (list(each) for each in zip(*runs, strict=True))
            print(f"{what}: {shown(ours)}, {ours[0].packages} packages of data sets")
            for each in theirs:
                ratio = median(run.processor_ms for run in each) / median(run.processor_ms for run in ours)
                print(f"  reference: {shown(each)}, {ratio:.1f} × the processor time")


if __name__ == "__main__":
    main()
