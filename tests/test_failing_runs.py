"""A run in which many requests fail says so, with cause and way out, while it goes on."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from aiperf_testing.server import answer
from command_lines import Did, Given, run
from wrong_servers import WrongServer

_GOOD = answer(b'{"choices": [{"message": {"content": "one"}, "finish_reason": "stop"}]}')


def _bad(status: int) -> bytes:
    return answer(b'{"error": {"message": "no luck"}}', status=status)


class Case(NamedTuple):
    """servers: the n-th answer of each, None for silence.  words: of the run.

    holds: the last server keeps its n-th answer back until the log has so many warnings, for 2 s where none is to come.
    told: parts of each warning of failures, in their order.
    """

    about: str
    servers: tuple[Callable[[int], bytes | None], ...]
    words: tuple[str, ...]
    holds: dict[int, int]
    told: tuple[tuple[str, ...], ...]


_ONE = ("--concurrency", "1", "--request-count", "250")
_RATE = ("--request-rate", "100", "--benchmark-duration", "1", "--benchmark-grace-period", "0", "--request-count", "500")
CASES = (
    Case("the cause changes", (lambda n: _bad(500 if n < 60 else 401),), _ONE, {60: 1, 249: 2}, (
        ("requests failed: the server fails (500)", "its own log says why"),
        ("requests failed: the server wants a valid key (401)", "--api-key"),
    )),
    Case("half of the last hundred fail", (lambda n: _GOOD if n < 60 or n % 3 == 0 else _bad(429),), _ONE, {249: 1}, (
        ("of the last 100 requests failed: the server limits requests (429)", "--concurrency"),
    )),
    Case("nine of ten fail, then none", (lambda n: _bad(500) if n < 9 else _GOOD,), _ONE, {249: 1}, ()),
    Case("all is well", (lambda n: _GOOD,), _ONE, {249: 1}, ()),
    Case("the warm-up fails", (lambda n: _bad(503) if n < 30 else _GOOD,), ("--warmup-request-count", "30", *_ONE), {29: 1},
        (("the first 10 requests failed: the server isn't ready",),)),
    Case("one of two servers fails", (lambda n: _GOOD, lambda n: _bad(404)), _ONE, {124: 1}, (
        ("of the last 100 requests failed: the server has nothing at", "is -u URL its base"),
    )),
    Case("nothing is back when the load ends", (lambda n: None,), _RATE, {}, ()),
)  # fmt: skip


class _Scripted(WrongServer):
    """Gives the n-th answer to the n-th request."""

    def __init__(self, case: Case, place: int, log: Path) -> None:
        self._case, self._script, self._numbers, self._log = case, case.servers[place], itertools.count(), log
        self._holds = case.holds if place == len(case.servers) - 1 else {}
        super().__init__()

    def reply(self, path: str = "") -> bytes | None:
        if not path.endswith("completions"):  # a page of metrics is no request
            return self._script(0)
        number = next(self._numbers)
        until_s = time.monotonic() + (60 if self._case.told else 2)
        while time.monotonic() < until_s and len(_warnings(self._log.read_text())) < self._holds.get(number, 0):
            time.sleep(0.05)
        return self._script(number)


def _warnings(log: str) -> list[str]:
    return [line for line in log.splitlines() if "WARNING" in line and "requests failed:" in line]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Did, Path, str]]]:
    folder = tmp_path_factory.mktemp("failing")
    with ExitStack() as stack:
        given: list[Given] = []
        last: list[str] = []
        for number, case in enumerate(CASES):
            log = folder / str(number) / "logs" / "aiperf.log"
            urls = [stack.enter_context(_Scripted(case, place, log)).url for place in range(len(case.servers))]
            last.append(urls[-1])
            start = ["profile", "-m", "m", "--tokenizer", "builtin", "--isl", "3", "--ui", "none", "--export-level", "summary"]
            to = ["--artifact-dir", str(folder / str(number)), "-u", *urls]
            given.append({"words": [*start, *case.words, *to], "environment": {}})
        did = run(given, folder, at_once=2, loads=True)
        yield {case.about: (each, folder / str(n), last[n]) for n, (case, each) in enumerate(zip(CASES, did, strict=True))}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_each_cause_of_many_failures_is_told_once(case: Case, runs: dict[str, tuple[Did, Path, str]]) -> None:
    did, place, url = runs[case.about]
    log = (place / "logs" / "aiperf.log").read_text()
    for text in (did.err, log):
        lines = _warnings(text)
        assert len(lines) == len(case.told), text
        for line, parts in zip(lines, case.told, strict=True):
            assert [part for part in parts if part.replace("URL", url) not in line] == []
    if case.told:
        assert log.index("requests failed:") < log.rindex("complete |"), "while the load goes on"
