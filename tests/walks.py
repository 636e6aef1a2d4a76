"""The two ways through the program, taken from a run: ``make walks`` writes their stacks to docs/architecture.md.

A way has landmarks: functions that all it carries comes to.  Each is reached on several stacks of calls, and the usual one
counts: that of most calls while the load goes on.  The sockets are read in C, by the loop.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from aiperf_command_simulate.testing import running
from msgspec import Struct
from program import Program
from requirements import ROOT

PAGE = ROOT / "docs" / "architecture.md"
REQUESTS = 40
"""Enough that the load lasts two seconds, in which a reducer takes several steps."""


class Landmark(Struct, frozen=True):
    """A function, or the qualified name of one in C.  *through*: a function that is on its stacks while the load goes on."""

    function: str
    through: str = ""


_HEAD = "aiperf.prepare.entries:Entries.head"
_STEP = "aiperf.run.reducer_process:ReducerProcess._step"
_TAKE = "aiperf_transport_sockets.poller:ReaderPoller._take"
_TICK = "aiperf.worker.process:Worker._tick"
WAYS: Mapping[str, Mapping[str, Landmark]] = {
    "Options to socket": {
        "encode": Landmark("aiperf_endpoint_chat.dialect:Chat.encode", _HEAD),
        "add": Landmark("aiperf.rundir.store_writer:StoreWriter.add", _HEAD),
        "send": Landmark("socket.send", _TAKE),
    },
    "Socket to statistic": {
        "read": Landmark("Reader.read"),
        "pack": Landmark("aiperf.rundir.journal:pack", _TICK),
        "decode": Landmark("aiperf_endpoint_chat.dialect:Chat.decode", _STEP),
        "column": Landmark("aiperf_metric_latency:InterChunkLatency.column", _STEP),
        "fold": Landmark("aiperf_reducer_columns.statistics.fold:Samples.add", _STEP),
        "cell": Landmark("aiperf_exporter_console.table:cells_of"),
    },
}
"""The landmarks of each way, in their order."""
LIKE = "aiperf.rundir.store_writer:StoreWriter.add_like"
"""Stores a body that a template made."""
_BLOCK = re.compile(r"(?<=<!-- stacks -->\n).*?(?=<!-- end of stacks -->)", re.DOTALL)


def traced(folder: Path) -> list[list[str]]:
    """What each process of one run with the usual options called, as ``tests/calls`` writes it."""
    (folder / "calls").mkdir()
    aiperf = Program(folder)
    aiperf.program = [str(Path(sys.executable).parent / "aiperf")]
    landmarks = [landmark.function for way in WAYS.values() for landmark in way.values()]
    aiperf.environment |= {
        "AIPERF_READER": "compiled", "AIPERF_TEST_CALLS": str(folder / "calls"),
        "AIPERF_TEST_LANDMARKS": " ".join([*landmarks, LIKE]),
        "PYTHONPATH": str(Path(__file__).parent / "calls"),
    }  # fmt: skip
    with running() as simulator:
        done = aiperf(
            "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--streaming", "--isl", 16,
            "--osl", 7, "--request-count", REQUESTS, "--ui", "none",
        )  # fmt: skip
        assert done.code == 0, done.err
        assert simulator.summary()["requests"] == REQUESTS
    return [file.read_text().splitlines() for file in (folder / "calls").iterdir()]


def stacks(lines: Sequence[Sequence[str]], landmark: Landmark) -> Counter[tuple[str, ...]]:
    """How often the landmark was reached on each stack, outermost function first."""
    words = (line.split() for process in lines for line in process if line.startswith(f"@{landmark.function} "))
    return Counter(tuple(stack) for _, *stack in words if not landmark.through or landmark.through in stack)


def usual(lines: Sequence[Sequence[str]], landmark: Landmark) -> tuple[str, ...]:
    """The stack of most calls; of several the shortest."""
    found = stacks(lines, landmark)
    assert found, f"the run has not come to {landmark}"
    return min(found, key=lambda stack: (-found[stack], len(stack), stack))


def functions(lines: Sequence[Sequence[str]], way: str) -> list[str]:
    """The functions on the usual stacks of a way, each once, in their order."""
    return list(dict.fromkeys(name for landmark in WAYS[way].values() for name in usual(lines, landmark)))


def modules(names: Sequence[str]) -> set[str]:
    return {name.partition(":")[0] for name in names}


def block(lines: Sequence[Sequence[str]], way: str) -> str:
    """The stacks of a way as Markdown: functions that a landmark shares with the one before stand there alone."""
    return "".join(f"{line}\n" for line in _block(lines, way))


def _block(lines: Sequence[Sequence[str]], way: str) -> Iterator[str]:
    names = functions(lines, way)
    yield f"{len(names)} functions in {len(modules(names))} modules:"
    yield ""
    yield "```text"
    before: tuple[str, ...] = ()
    for word, landmark in WAYS[way].items():
        stack = usual(lines, landmark)
        shared = next((i for i, (one, other) in enumerate(zip(stack, before, strict=False)) if one != other), len(before))
        shared = min(shared, len(stack))
        yield f"{word}" + (f"  from {stack[shared - 1]}" if shared else "")
        yield from (f"    {name}" for name in stack[shared:])
        before = stack
    yield "```"


def page(text: str, lines: Sequence[Sequence[str]]) -> str:
    """The page with the stacks of these calls."""
    for way in WAYS:
        begin = text.index(f"\n## {way}\n")
        text = text[:begin] + _BLOCK.sub(lambda _, way=way: block(lines, way), text[begin:], count=1)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        PAGE.write_text(page(PAGE.read_text(), traced(Path(made))))
