"""What grading costs: the processor, time for hard answers, a run beside it, and several processes.

usage: grading.py [--only ROW ...] [--pairs 10] [--requests 1500] [--json FILE]

choices: CPU time of 10,000 gradings by multiple_choice.  pairs: wall time of a program that grades 2,000 pairs by math, start
included.  hard: CPU time of the worst of answers that are made to take for ever (powers, 100,000 digits, 5,000 brackets), by
every mathematical grader, with the engine's process, which has 5 s for two texts.  beside: error of TTFT, what the client says
less what truthd saw, without a grader and with multiple_choice on every answer, in alternating pairs.  processes: 40 answers
that wait 0.5 s each, with one grading process and with four.

Each line ends with what is allowed.  The exit code is 1 where a figure is above that.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.grader import Case
from aiperf_grading.cases import reasoned
from aiperf_grading.engine_limits import LIMIT_S
from bench import machine
from pairs import interval
from truth import Truth, truthd

PROGRAM = Path(sys.executable).with_name("aiperf")
LIMITS = {"choices": 1.0, "pairs": 10.0, "hard": LIMIT_S + 1, "beside_ratio": 1.05, "beside_us": 20.0, "processes": 3.0}
MATHEMATICAL = ("math", "lighteval_expr", "lighteval_latex")
HARD = (
    ("9^(9^9)", "9^(9^9)+1"), ("9^{9^{9^9}}", "9^9"), ("10^{100000}", "10^{100001}"), ("2^{2^{30}}", "2^{2^{30}}+1"),
    ("9" * 100_000, "9" * 100_000 + "1"), ("9" * 100_000, "9" * 99_999 + "8"), ("1", "(" * 5_000 + "1" + ")" * 5_000),
    ("1", "[" * 5_000), ("1", "\\frac{" * 5_000), ("x" + "^x" * 2_000, "x"), ("100000!", "100000!+1"),
    ("\\sqrt{" * 2_000 + "2" + "}" * 2_000, "2"), (",".join(map(str, range(5_000))), ",".join(map(str, range(5_000, 0, -1)))),
    ("a=b" * 3_000, "c=d"), ("1/" * 3_000 + "1", "2"), ("\\int_0^1 x^{x^x} dx", "\\sum_{n=1}^{10^9} 1/n"),
    ("-" * 10_000 + "1", "1"), ("{" * 5_000, "}" * 5_000),
)  # fmt: skip
"""Expected answers, and what is in the box of the answer."""
PAIRS = r"""
import random
from aiperf_grader_math.grader import Math
from aiperf_grading.cases import reasoned

draw, grader = random.Random(1), Math()
for _ in range(2_000):
    a, b = draw.randint(1, 99), draw.randint(2, 99)
    gold = draw.choice([f"{a}", rf"\frac{{{a}}}{{{b}}}", f"x^2+{a}x+{b}", rf"{a}\sqrt{{{b}}}", f"({a},{b})"])
    answer = draw.choice([gold, f"{a}/{b}", f"{b}+x({a}+x)", f"{a}", rf"\sqrt{{{b * a * a}}}"])
    grader.grade(reasoned(gold, "", "We add 3 and 4.\n" * 20 + rf"So \boxed{{{answer}}}"))
"""
PACKAGE = """
import os, time
from aiperf import Conversation, Dataset, Grade, Grader, Turn

class Letters(Dataset):
    def __iter__(self):
        for number in range(self.context.entries):
            text = f"Question {number}: which letter? " + "Rome is a town. " * 8
            yield Conversation(f"letter-{number}", (Turn(texts=(text,), max_tokens=32, expected="ABCD"[number % 4]),))

class Waits(Grader):
    def grade(self, expected, response):
        time.sleep(0.5)
        return Grade(correct=True)
"""
MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - {category: datasets, name: bench_letters, summary: Questions for a letter.}
"""


class Figure(NamedTuple):
    """A row: its value, what is allowed, and whether it is kept."""

    row: str
    value: float
    unit: str
    allowed: str
    kept: bool

    def line(self) -> str:
        return f"{self.row:>28} {self.value:10.3f} {self.unit:<3} allowed {self.allowed}{'' if self.kept else '  TOO MUCH'}"


def grader(name: str) -> Any:
    (point,) = entry_points(group="aiperf.graders", name=name)
    return point.load()()


def cpu_s(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def choices(arguments: argparse.Namespace) -> Iterator[Figure]:
    graded = grader("multiple_choice")
    texts = ["The capital is not Paris.\n" * 4 + f"The answer is ({letter})." for letter in "ABCD"] + ["B. Rome", "so, C"]
    cases = [reasoned("B", "", text) for text in texts]
    began = cpu_s()
    for number in range(10_000):
        graded.grade(cases[number % len(cases)])
    took = cpu_s() - began
    yield Figure("10,000 multiple_choice, CPU", took, "s", f"{LIMITS['choices']:g}", took <= LIMITS["choices"])


def pairs(arguments: argparse.Namespace) -> Iterator[Figure]:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", PAIRS], check=True, timeout=600)
    took = time.monotonic() - began
    yield Figure("2,000 pairs of math", took, "s", f"{LIMITS['pairs']:g}", took <= LIMITS["pairs"])


def hard(arguments: argparse.Namespace) -> Iterator[Figure]:
    for name in MATHEMATICAL:
        graded, longest = grader(name), 0.0
        for expected, answer in HARD:
            began = cpu_s() + cpu_s(resource.RUSAGE_CHILDREN)  # an engine that is ended counts; one that goes on took less
            graded.grade(reasoned(expected, "", f"So \\boxed{{{answer}}}"))
            longest = max(longest, cpu_s() + cpu_s(resource.RUSAGE_CHILDREN) - began)
        yield Figure(f"hardest answer, {name}, CPU", longest, "s", f"{LIMITS['hard']:g}", longest <= LIMITS["hard"])


def site(folder: Path) -> None:
    """A package with questions for a letter, and a grader that waits."""
    package, about = folder / "bench_letters", folder / "bench_letters-1.0.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    (package / "aiperf.yaml").write_text(MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-letters\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[aiperf.datasets]\nbench_letters = bench_letters:Letters\n")


def ttft_errors_us(server: Truth, requests: int, environment: dict[str, str], *, graded: bool) -> tuple[float, float]:
    """p50 and p99 of TTFT by the client less those by the server, in µs."""
    server.reset()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        words = [
            str(PROGRAM), "profile", "--model", "truth", "--url", f"http://127.0.0.1:{server.port}", "--endpoint-type", "chat",
            "--streaming", "--tokenizer", "builtin", "--custom-dataset-type", "bench_letters", "--request-count", str(requests),
            "--concurrency", "16", "--ui", "none", "--stats-interval", "0", "--no-server-metrics", "--artifact-dir", folder,
            *(["--accuracy-grader", "multiple_choice"] if graded else []),
        ]  # fmt: skip
        subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        said = json.loads((Path(folder) / "profile_export_aiperf.json").read_text())["time_to_first_token"]
    seen = server.stats()["ttft_ms"]
    return 1000 * (said["p50"] - seen["p50"]), 1000 * (said["p99"] - seen["p99"])


def beside(arguments: argparse.Namespace) -> Iterator[Figure]:
    bare: list[tuple[float, float]] = []
    graded: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, truthd(20, 5) as server:
        site(Path(folder))
        environment = {**os.environ, "PYTHONPATH": folder}
        for number in range(arguments.pairs):
            for with_grader in (False, True) if number % 2 == 0 else (True, False):
                errors = ttft_errors_us(server, arguments.requests, environment, graded=with_grader)
                (graded if with_grader else bare).append(errors)
    for place, name in enumerate(("p50", "p99")):
        before, after = ([pair[place] for pair in side] for side in (bare, graded))
        ratios = sorted(one / other for one, other in zip(after, before, strict=True) if other > 0)
        ratio = statistics.median(ratios) if ratios else 0.0
        apart = statistics.median(one - other for one, other in zip(after, before, strict=True))
        kept = ratio <= LIMITS["beside_ratio"] or apart <= LIMITS["beside_us"]
        allowed = f"{LIMITS['beside_ratio']:g} × or {LIMITS['beside_us']:g} µs apart"
        print(
            f"TTFT error {name}: bare {statistics.median(before):.1f} µs, graded {statistics.median(after):.1f} µs,"
            f" apart {apart:.1f} µs, bounds of the ratio {' – '.join(f'{each:.3f}' for each in interval(ratios))}",
            flush=True,
        )  # fmt: skip
        yield Figure(f"TTFT error {name}, graded/bare", ratio, "×", allowed, kept)


def graded_in_s(folder: Path, processes: int, answers: int) -> float:
    """The time in which answers that wait are graded, with the starts of the processes."""
    from aiperf_reducer_columns.reduce.grader_pool import GraderPool

    ref = PluginRef("graders", "waits", "bench_letters:Waits", "bench-letters", "1.0")
    pool = GraderPool(ref, None, folder / "grader.log", folder / "scratch", most=processes, limit_s=60.0)
    case: Callable[[], Case] = lambda: reasoned("A", "", "A")  # noqa: E731
    began, left = time.monotonic(), answers
    for number in range(answers):
        pool.add((0, number), case)
    while left:
        for _, reply in pool.replies(0.5):
            if reply.grade is None:
                raise SystemExit(f"grading.py: {reply.failed}")
            left -= 1
    took = time.monotonic() - began
    pool.stop()
    return took


def processes(arguments: argparse.Namespace) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        site(Path(folder))
        os.environ["PYTHONPATH"] = folder
        one, four = (graded_in_s(Path(folder), count, 40) for count in (1, 4))
    print(f"40 answers that wait 0.5 s: {one:.2f} s with one process, {four:.2f} s with four", flush=True)
    ratio = one / four
    yield Figure("four processes for one", ratio, "×", f"at least {LIMITS['processes']:g}", ratio >= LIMITS["processes"])


ROWS: dict[str, Callable[[argparse.Namespace], Iterator[Figure]]] = {
    "choices": choices, "pairs": pairs, "hard": hard, "processes": processes, "beside": beside,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: list[Figure] = []
    for row in arguments.only:
        for figure in ROWS[row](arguments):
            print(figure.line(), flush=True)
            found.append(figure)
    if arguments.json is not None:
        about = {"machine": machine(), "figures": [figure._asdict() for figure in found]}
        arguments.json.write_text(json.dumps(about, indent=1))
    return 0 if all(figure.kept for figure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
