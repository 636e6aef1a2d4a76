"""``aiperf speed-bench-report``: runs of the categories of SPEED-Bench as one matrix."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from aiperf import AiperfError, Command, UsageError, atomic
from aiperf_results import FinishedRun, open_runs, unfinished

from aiperf_command_speed_bench_report.acceptance import LENGTH, RATE, Acceptance, acceptance
from aiperf_command_speed_bench_report.matrix import CategoryRun, Matrix, category_of, model_of
from aiperf_command_speed_bench_report.options import SpeedBenchReportOptions

_THROUGHPUT = "output_token_throughput"
_TITLES = {
    "accept_length": "Acceptance length", "accept_rate": "Acceptance rate (share)", "throughput": "Output tokens per second",
}  # fmt: skip
_CATEGORY = "its data set is none of speed_bench_* and spec_al_*"


class SpeedBenchReport(Command[SpeedBenchReportOptions]):
    """Writes the matrix as CSV, and prints it."""

    arguments = "[DIR...]"

    def run(self, options: SpeedBenchReportOptions, words: Sequence[str]) -> int:
        """0 where every run can be read; 1 where one can't or is not finished, or none has the number."""
        paths = [*map(Path, words), *options.paths]
        if not paths:
            raise UsageError("aiperf speed-bench-report needs a directory", "give those of the runs, or one that holds them")
        failures: list[str] = []
        runs = [made for each in open_runs(paths) if (made := self._read(each, options.metric, failures)) is not None]
        failures += unfinished(paths)
        for sentence in failures:
            print(f"error: {sentence}", file=sys.stderr)
        if not any(run.number for run in runs):
            raise AiperfError(*_nothing(runs, options.metric))
        matrix = Matrix(runs)
        if options.format != "csv":
            print("\n".join(["", _TITLES[options.metric], *matrix.table(), ""]))
        if options.format != "table":
            self._write(options.output, matrix.csv())
        for note in matrix.notes():
            print(note)
        return 1 if failures else 0

    def _read(self, run: FinishedRun, metric: str, failures: list[str]) -> CategoryRun | None:
        """What the run gives; None, and a sentence, where it can't be read or has no category."""
        try:
            category, model = category_of(run.configuration), model_of(run.configuration)
            if category is None:
                print(f"warning: {run.directory} is skipped: {_CATEGORY}", file=sys.stderr)
                return None
            made = CategoryRun(run.label, model, category, _number(run, metric))
        except AiperfError as error:
            failures.append(f"{run.directory} is left out: {'; '.join((error.message, *error.hints))}")
            return None
        if made.number is None:
            print(f"warning: {run.directory} has no {metric}: {_lack(metric)}", file=sys.stderr)
        return made

    def _write(self, path: Path, text: str) -> None:
        try:
            with atomic(path) as draft:
                draft.write_text(text, encoding="utf-8", newline="")
        except OSError as error:
            why = error.strerror or error
            raise AiperfError(f"{path} can't be written: {why}", "choose another place with --output") from error
        print(f"CSV written to {path}")


def _number(run: FinishedRun, metric: str) -> Acceptance | None:
    if metric != "throughput":
        return acceptance(run, LENGTH if metric == "accept_length" else RATE)
    value = run.number(_THROUGHPUT)
    return None if value is None else Acceptance(value, f"{_THROUGHPUT} of the requests")


def _lack(metric: str) -> str:
    if metric == "throughput":
        return f"{_THROUGHPUT} is not in its summary"
    return "neither its servers' metrics nor their answers tell of speculative decoding"


def _nothing(runs: Sequence[CategoryRun], metric: str) -> tuple[str, str]:
    if not runs:
        return "no run of SPEED-Bench is there", "a run has a category with --custom-dataset-type speed_bench_math, for example"
    hint = "run with --server-metrics, or choose another --metric" if metric != "throughput" else "choose another --metric"
    return f"no run has {metric}: {_lack(metric)}", hint


__all__ = ["SpeedBenchReport"]
