"""One page of metrics, read again and again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aiperf.sdk.telemetry import Absent, Fetched, FetchError, Reading, TelemetryContext, TelemetryTarget

from aiperf_metric_server_metrics.addresses import Address
from aiperf_metric_server_metrics.errors import PageError

if TYPE_CHECKING:
    from aiperf_metric_server_metrics.page import Page

log = logging.getLogger("aiperf.telemetry.server_metrics")

ACCEPT = "text/plain;version=0.0.4,*/*;q=0.1"
_STARTING = (429, 500, 502, 503, 504)
"""Answers of a server that may have its page later."""


class MetricsTarget(TelemetryTarget):
    """A page.  asked: the user named it, so that its absence is a fault.  second: a path of the server to try instead."""

    def __init__(
        self, address: Address, context: TelemetryContext, interval_s: float, timeout_s: float, *, asked: bool, second: str = ""
    ) -> None:
        self.name, self.interval_s = address.name, interval_s
        self._address, self._context, self._timeout_s = address, context, timeout_s
        self._asked, self._second, self._answered = asked, second, False
        self._page: Page | None = None

    def sample(self) -> Reading:
        try:
            try:
                reading = self._read(self._address.url)
            except PageError as error:
                if not (error.other and self._second) or self._answered:
                    raise
                reading = self._instead(error)
        except (FetchError, PageError) as error:
            if self._missing(error):
                raise Absent(f"{self.name} has no metrics: {_why(error, self.name)}") from error
            raise
        self._answered = True
        for sentence in () if self._page is None else self._page.sentences:
            log.warning("%s: %s", self.name, sentence)
        return reading

    def _read(self, url: str) -> Reading:
        headers = {"Accept": ACCEPT, **({"Authorization": self._address.login} if self._address.login else {})}
        try:
            fetched: Fetched = self._context.fetch(url, self._timeout_s, headers=headers)
        except FetchError as error:
            raise _explained(error) from error
        try:
            if self._page is None:
                from aiperf_metric_server_metrics.page import Page  # with the parsers; many servers have no page

                self._page = Page()
            points = self._page.read(fetched.body, fetched.content_type)
        except PageError as error:
            raise PageError(f"{self.name}: {error.message}", other=error.other) from error
        return Reading(points, fetched.sent_ns, fetched.at_ns)

    def _instead(self, error: PageError) -> Reading:
        """The page at the second path; where there is none either, the first one's error counts."""
        url = self._address.url.removesuffix("/metrics") + self._second
        try:
            reading = self._read(url)
        except (FetchError, PageError):
            raise error from None
        log.info("%s; %s is read", error.message, url)
        self._address = Address(url, self._address.login)
        return reading

    def _missing(self, error: FetchError | PageError) -> bool:
        """Whether a page that nobody asked for isn't there, and won't come."""
        if self._asked or self._answered:
            return False
        return error.other if isinstance(error, PageError) else error.status is not None and error.status not in _STARTING


def _explained(error: FetchError) -> FetchError:
    """The error, and what to do about it."""
    why, status = _why(error, error.url), error.status
    if status is not None and 300 <= status < 400:
        return FetchError(error.url, f"{why}; redirects are not followed: give the address that it leads to", status)
    if status in (401, 403):
        return FetchError(error.url, f"{why}; a login is given as http://USER:PASSWORD@HOST:PORT/metrics", status)
    return error


def _why(error: FetchError | PageError, name: str) -> str:
    return error.message.removeprefix(f"{error.url if isinstance(error, FetchError) else name}: ")
