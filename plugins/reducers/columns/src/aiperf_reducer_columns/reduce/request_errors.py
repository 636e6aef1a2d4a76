"""Why a request counts as an error, in the words of its server or its transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec
from aiperf.parts import journal
from aiperf.parts.segments import JournalRequest
from aiperf.sdk.errors import ENDPOINT_ERROR
from aiperf.sdk.model import LATER, STILL_COMING, ErrorDetails
from aiperf.sdk.redaction import scrubbed

from aiperf_reducer_columns.reduce.answer import Answer
from aiperf_reducer_columns.reduce.heads import kind_of, redirect_of, said_in

Report: TypeAlias = Callable[[str, str], None]
"""Reports a failure: the plugin, a sentence that names it."""
ERROR_CHARACTERS = 4096
"""The longest text of a server that an error keeps."""
FIRST_BYTES = 80
"""What an error keeps of an answer that can't be read: errors are counted by it, too, and ids often stand further on."""
_STARTED = journal.SENT_FIELDS.index("started_ns")
_INVALID = "InvalidInferenceResultError"


class RequestErrors:
    """Errors of requests, without secrets.  *endpoint*: the plugin that decoded the answers, as reports name it."""

    def __init__(self, endpoint: str, report: Report, secret_texts: Sequence[str], zero_ns: int) -> None:
        self._endpoint, self._report, self._secret_texts, self._zero_ns = endpoint, report, secret_texts, zero_ns

    def of(self, request: JournalRequest, answer: Answer) -> ErrorDetails | None:
        """Why the request counts as an error, or was too long for the model; None where its answer is good."""
        _, outcome, status, *_ = request.done
        bad, error, endpoint = answer.error, None, self._endpoint
        if outcome == journal.COMPLETED and bad is not None:
            told = not bad.unreadable and (bad.code or bad.kind)  # the server's own words
            begin = None if told else self.scrubbed(bad.raw.decode("utf-8", "replace"))[:FIRST_BYTES] or None
            message = _shortened(self.scrubbed(bad.message)) + kind_of(request.texts.get("head"))
            error = ErrorDetails(message, type=bad.kind or _INVALID, code=bad.code, cause=begin).without(self._secret_texts)
        elif outcome == journal.COMPLETED and not answer.stamps:
            about = self.scrubbed(_end_of(answer)) + kind_of(request.texts.get("head"))
            error = ErrorDetails(f"the answer has no content{about}", type=_INVALID)
        elif outcome in (journal.ERROR, journal.CANCELLED, journal.OVERFLOWED):
            error = self._failure(request, status)
        if bad is not None and bad.kind == ENDPOINT_ERROR:
            self._report(endpoint, f"{endpoint} failed: {self.scrubbed(bad.message)}")
        elif error is not None and error.type == ENDPOINT_ERROR:
            self._report(endpoint, f"{endpoint} failed: {error.message}")
        return error

    def _failure(self, request: JournalRequest, status: int) -> ErrorDetails:
        """The error of a failed request: the transport's, else the status with the body."""
        error, head = request.texts.get("error"), request.texts.get("head")
        if error is not None:
            details = msgspec.convert(error, ErrorDetails)
            if details.type == "TimeoutError":
                return msgspec.structs.replace(details, cause=STILL_COMING) if self._was_coming(request) else details
            return msgspec.structs.replace(details, cause=details.cause or _later(request))
        body = self.scrubbed(said_in(b"".join(read[3] for read in request.reads), head))
        body = " ".join(filter(None, (redirect_of(status, head), body)))
        kind = f"HTTP {status}" if head is None else head["reason"]
        return ErrorDetails(_shortened(body), type=kind, code=status or None, cause=_later(request))

    def _was_coming(self, request: JournalRequest) -> bool:
        """Whether bytes of the answer came in the last tenth of the request's time."""
        (*_, ended, _, _, _, _, _), started, reads = request.done, request.sent[_STARTED], request.reads
        return bool(reads) and reads[-1][0] + self._zero_ns > ended - (ended - started) // 10

    def scrubbed(self, text: str) -> str:
        """A text of the server without secrets."""
        return scrubbed(text, self._secret_texts)


def _later(request: JournalRequest) -> str | None:
    """LATER where the exchange that failed was not the request's first."""
    return LATER if len(request.texts.get("legs", ())) > 1 else None


def _end_of(answer: Answer) -> str:
    """What the server says of the end of an answer without content; "" where it says nothing."""
    completion = answer.counts().usage.completion
    parts = [] if answer.reason is None else [f"the server says that it ended with {answer.reason!r}"]
    if completion is not None:
        parts.append("counts output tokens" if completion else "counts no output tokens")
        parts[-1] = f"{'' if len(parts) > 1 else 'the server '}{parts[-1]}"
    return f": {' and '.join(parts)}" if parts else ""


def _shortened(message: str) -> str:
    """A server may answer with megabytes: errors are counted by their text, and every request has its own."""
    return message if len(message) <= ERROR_CHARACTERS else f"{message[:ERROR_CHARACTERS]}… ({len(message):,} characters)"
