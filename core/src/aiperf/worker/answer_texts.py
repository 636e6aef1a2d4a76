"""What the journal has of an answer in words: its head, trailers and error, without the run's secrets."""

from __future__ import annotations

from aiperf.redaction import scrubbed
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.transport import Exchange
from aiperf.worker.logbook import Logbook


class AnswerTexts:
    """Journals texts of answers.  *secrets*: what none of them may have."""

    def __init__(self, logbook: Logbook, secrets: tuple[str, ...]) -> None:
        self._logbook, self._secrets = logbook, secrets

    def trailers(self, exchange: Exchange, trailers: list[tuple[str, str]]) -> None:
        self._logbook.text(exchange.request, "trailers", self._without_secrets(trailers))

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        reason, headers = scrubbed(reason, self._secrets), self._without_secrets(headers)
        self._logbook.text(exchange.request, "head", {"status": status, "reason": reason, "headers": headers})

    def error(self, exchange: Exchange, error: ErrorDetails) -> None:
        self._logbook.text(exchange.request, "error", error.without(self._secrets))

    def _without_secrets(self, fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
        texts = self._secrets
        if texts:
            whole = "\n".join(map("\n".join, fields))  # one look instead of some twenty
            if scrubbed(whole, texts) != whole:
                return [(scrubbed(name, texts), scrubbed(value, texts)) for name, value in fields]
        return fields
