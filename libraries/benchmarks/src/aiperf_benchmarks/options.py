"""Options of all accuracy benchmarks."""

from __future__ import annotations

from pathlib import Path

from aiperf.sdk.options import Options, option

_GROUP = "Accuracy"


class BenchmarkOptions(Options):
    """What is asked of a benchmark, and how."""

    n_shots: int | None = option("--accuracy-n-shots", ge=0, le=32, group=_GROUP, metavar="N", shown="the benchmark's own",
        cells=True, place="accuracy.n_shots", help="Solved examples before each question.")
    tasks: list[str] = option("--accuracy-tasks", default=[], group=_GROUP, metavar="TASK", arity="many", shown="all",
        place="accuracy.tasks", help="Ask the problems of these tasks alone.")
    cot: bool | None = option("--accuracy-enable-cot", negative="--accuracy-no-enable-cot", group=_GROUP,
        shown="the benchmark's own", place="accuracy.enable_cot", help="Ask for the reasoning before the answer.")
    system_prompt: str | None = option("--accuracy-system-prompt", group=_GROUP, metavar="TEXT", shown="the benchmark's own",
        place="accuracy.system_prompt", help="System prompt of every problem; an empty text sends none.")
    verbose: bool = option("--accuracy-verbose", default=False, group=_GROUP, place="accuracy.verbose",
        help="Log a line for each problem that is asked: its id, task and expected answer.")
    data: Path | None = option("--accuracy-data", group=_GROUP, metavar="PATH", shown="the model hub", place="accuracy.data",
        help="Local copy of a benchmark's data: a file (JSON lines, CSV, Parquet), a folder of files, or of the hub's cache.")
    limit: int | None = option("--accuracy-limit", ge=1, group=_GROUP, metavar="N", shown="all", place="accuracy.limit",
        help="Ask so many problems, drawn by the seed and evenly from all tasks.")
    repeats: int = option("--accuracy-repeats", default=1, ge=1, le=1000, group=_GROUP, metavar="K", place="accuracy.repeats",
        help="Ask each problem so often.")
    osl: int | None = option("--prompt-output-tokens-mean", "--output-tokens-mean", "--osl", ge=1, group=_GROUP,
        metavar="TOKENS", shown="the benchmark's own", cells=True, place="dataset.prompts.osl.mean",
        help="Longest answer, in tokens.")
    hf_revision: str | None = option("--hf-revision", group=_GROUP, metavar="REV", shown="the pinned commit", min_length=1,
        place="dataset.revision", help="Branch, tag or commit of the benchmark's data on the hub.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A revision beside a local copy."""
        if self.data is not None and self.hf_revision is not None:
            data, revision = typed.get("data", "--accuracy-data"), typed.get("hf_revision", "--hf-revision")
            return [f"{revision} has no use for a local copy, which {data} gives\ndrop {revision} or {data}"]
        return []
