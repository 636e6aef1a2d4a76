"""What the client saw: latencies, requests and tokens, of the whole run or of one of its URLs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiperf import Evidence

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats

_COMPLETED = 0
"""The outcome of a request with a whole answer, as the column ``outcome`` has it."""


def urls_of(evidence: Evidence, target: str) -> tuple[int, ...]:
    """The indices of the run's URLs at whose host and port *target* is; all of them for another host."""
    return _at(evidence, target) or tuple(range(len(evidence.plan.target.urls)))


def is_at_url(evidence: Evidence, target: str) -> bool:
    """Whether *target* is at the host and port of one of the run's URLs."""
    return bool(_at(evidence, target))


def _at(evidence: Evidence, target: str) -> tuple[int, ...]:
    place = _place(target)
    return tuple(i for i, url in enumerate(evidence.plan.target.urls) if _place(url) == place)


def _place(url: str) -> tuple[str, int | None]:
    """Host and port; this machine's own names are one."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return "127.0.0.1" if host in ("localhost", "::1") else host, parts.port


class Client:
    """The client's side, of requests to the URLs of these indices."""

    def __init__(self, evidence: Evidence, urls: tuple[int, ...]) -> None:
        self._evidence, summary = evidence, evidence.summary
        self._urls = None if len(urls) == len(evidence.plan.target.urls) else urls
        self.whole = self._urls is None
        """Whether it is the whole run's."""
        alone = self._urls is not None and len(urls) == 1 and urls[0] < len(summary.urls)
        self._results = summary.urls[urls[0]].results if alone else summary.results
        error = summary.measurement.client_error_ms
        self.error_ms = 0.0 if error is None else error.p99

    def latency(self, tag: str | None, statistic: str) -> float | None:
        """A statistic of a metric, in ms; None where the run has it not."""
        result = self._results.get(tag or "")
        return None if result is None or result.unit != "ms" else result.stats.get(statistic)

    @cached_property
    def completed(self) -> int:
        """Requests with a whole answer."""
        return sum(int((outcome == _COMPLETED).sum()) for (outcome,) in self._blocks("outcome"))

    @cached_property
    def sent(self) -> int:
        """Requests of which the server may know: a byte of them was sent."""
        return sum(len(_known(sent)) for (sent,) in self._blocks("sent_ns"))

    def usage(self, name: str) -> float | None:
        """A sum of the server's own counts in answers; None where an answer has none."""
        return self.counted(name)

    def counted(self, *names: str) -> float | None:
        """A sum of the run's own counts of completed requests; None where the first of them is unknown."""
        count, total = 0, 0.0
        for outcome, *columns in self._blocks("outcome", *names):
            good = outcome == _COMPLETED
            first, *others = (column[good] for column in columns)
            count += len(first)
            total += float(first.sum() + sum(_known(other).sum() for other in others))
        return total if count and math.isfinite(total) else None

    def cached_share(self) -> float | None:
        """The part (%) of prompt tokens that the server says it found in its cache."""
        prompt, cached = self.usage("usage_prompt_tokens"), self.usage("usage_cached_tokens")
        return None if not prompt or cached is None else 100 * cached / prompt

    def _blocks(self, *names: str) -> Iterator[tuple[Floats, ...]]:
        """These columns, of the requests to the URLs."""
        if self._urls is None:
            yield from self._evidence.columns(*names)
            return
        for url, *columns in self._evidence.columns("url", *names):
            chosen = url == self._urls[0]
            for other in self._urls[1:]:
                chosen |= url == other
            yield tuple(column[chosen] for column in columns)


def _known(column: Floats) -> Floats:
    """The values that aren't NaN."""
    known: Floats = column[column == column]  # without numpy's functions: the options of a command import this package
    return known
