"""What the reference's benchmarks make of rows; run by the Python of its environment.

Standard input has a list of cases, each the benchmark's name, its rows by split, the number of examples and whether reasoning
is asked for.  The last line of standard output has for each case a list of problems: prompt, messages, expected answer, task,
longest answer and stop texts; or the error as a text.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

PLACES = {
    "mmlu": "MMLUBenchmark", "mmlu_pro": "MMLUProBenchmark", "aime": "AIMEBenchmark", "aime24": "AIME24Benchmark",
    "aime25": "AIME25Benchmark", "hellaswag": "HellaSwagBenchmark", "bigbench": "BigBenchBenchmark",
    "math_500": "Math500Benchmark", "gsm8k": "GSM8KBenchmark", "gpqa_diamond": "GPQADiamondBenchmark",
    "lcb_codegeneration": "LCBCodeGenerationBenchmark",
}  # fmt: skip
SUBSETS = {"mmlu": "subject", "bigbench": "task"}
"""The column of rows that stands for a subset, by benchmark."""


def problems(name: str, rows: dict[str, list[dict[str, Any]]], shots: int, cot: bool) -> list[Any]:
    module = import_module(f"aiperf.accuracy.benchmarks.{name}")
    column = SUBSETS.get(name)

    def load_dataset(_: str, subset: str | None = None, split: str | None = None, **__: Any) -> Any:
        chosen = {
            part: [row for row in there if column is None or row[column] == subset] for part, there in rows.items()
        }  # fmt: skip
        return chosen if split is None else chosen[split]

    module.load_dataset = load_dataset  # type: ignore[attr-defined]
    tasks = list(dict.fromkeys(row[column] for there in rows.values() for row in there)) if column else None
    made = getattr(module, PLACES[name])(run=SimpleNamespace())
    found = asyncio.run(made.load_problems(tasks, shots, cot))
    return [
        [
            one.prompt, one.raw_messages, one.ground_truth, one.task, one.metadata.get("generation_size"),
            one.metadata.get("stop_sequence") or [],
        ]
        for one in found
    ]  # fmt: skip


answers: list[Any] = []
for case in json.load(sys.stdin):
    try:
        answers.append(problems(*case))
    except Exception as error:  # noqa: BLE001  # another program's code
        answers.append(f"{type(error).__name__}: {error}")
print("\n" + json.dumps(answers))
