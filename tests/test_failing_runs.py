"""A run in which many requests fail says so, with cause and way out, while it goes on."""

from __future__ import annotations

import itertools
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
    """servers: the n-th answer of each.  words: of the run.  told: parts of each warning of failures, in their order."""

    about: str
    servers: tuple[Callable[[int], bytes], ...]
    words: tuple[str, ...]
    told: tuple[tuple[str, ...], ...]


_RATE = ("--request-rate", "100", "--arrival-pattern", "constant")
_SLOW = (*_RATE, "--request-count", "250")
CASES = (
    Case("the cause changes", (lambda n: _bad(500 if n < 60 else 401),), _SLOW, (
        ("requests failed: the server fails (500)", "its own log says why"),
        ("requests failed: the server refuses who asks (401)", "--api-key"),
    )),
    Case("half of the last hundred fail", (lambda n: _GOOD if n < 60 or n % 3 == 0 else _bad(429),), _SLOW, (
        ("of the last 100 requests failed: the server limits requests (429)", "--concurrency"),
    )),
    Case("nine of ten fail, then none", (lambda n: _bad(500) if n < 9 else _GOOD,), _SLOW, ()),
    Case("all is well", (lambda n: _GOOD,), _SLOW, ()),
    Case("the warm-up fails", (lambda n: _bad(503) if n < 100 else _GOOD,),
        ("--warmup-request-count", "100", "--warmup-request-rate", "100", *_RATE, "--request-count", "100"),
        (("requests failed: the server isn't ready",),)),
    Case("one of two servers fails", (lambda n: _GOOD, lambda n: _bad(404)), (*_RATE, "--request-count", "300"), (
        ("of the last 100 requests failed: the server has nothing at", "-u URL1 its base"),
    )),
    Case("nothing is back when the load ends", (lambda n: b"",),
        (*_RATE, "--benchmark-duration", "1", "--benchmark-grace-period", "0", "--request-count", "500"), ()),
)  # fmt: skip


class _Scripted(WrongServer):
    """Gives the n-th answer to the n-th request; keeps silent where that is empty."""

    def __init__(self, script: Callable[[int], bytes]) -> None:
        self._script, self._numbers = script, itertools.count()
        super().__init__()

    def reply(self) -> bytes | None:
        return self._script(next(self._numbers)) or None


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Did, Path, list[str]]]]:
    folder = tmp_path_factory.mktemp("failing")
    with ExitStack() as stack:
        given: list[Given] = []
        urls: list[list[str]] = []
        for number, case in enumerate(CASES):
            urls.append([stack.enter_context(_Scripted(script)).url for script in case.servers])
            start = ["profile", "-m", "m", "--tokenizer", "builtin", "--isl", "3", "--ui", "none", "--export-level", "summary"]
            to = ["--artifact-dir", str(folder / str(number)), "-u", *urls[-1]]
            given.append({"words": [*start, *case.words, *to], "environment": {}})
        did = run(given, folder, at_once=2)
        yield {case.about: (each, folder / str(n), urls[n]) for n, (case, each) in enumerate(zip(CASES, did, strict=True))}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_each_cause_of_many_failures_is_told_once(case: Case, runs: dict[str, tuple[Did, Path, list[str]]]) -> None:
    did, place, urls = runs[case.about]
    log = (place / "logs" / "aiperf.log").read_text()
    for text in (did.err, log):
        lines = [line for line in text.splitlines() if "WARNING" in line and "requests failed:" in line]
        assert len(lines) == len(case.told), text
        for line, parts in zip(lines, case.told, strict=True):
            assert [part for part in parts if part.replace("URL1", urls[-1]) not in line] == []
    if case.told:
        assert log.index("requests failed:") < log.rindex("complete |"), "while the load goes on"
