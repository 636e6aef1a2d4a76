"""Several answers to one request (``n``): their pieces come mixed, and are put together apart."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from aiperf.parts.loading import why
from aiperf.sdk.endpoint import Endpoint, Reader
from aiperf.sdk.errors import ENDPOINT_ERROR, BadResponse
from aiperf.sdk.model import HIDDEN, Delta

from aiperf_reducer_columns.reduce.answer import Answer
from aiperf_reducer_columns.reduce.reasons import joined

_PROMPTS = ("prompt", "text", "input_ids")
"""Fields of bodies that have a prompt, or a list of them."""


class _Fed(Reader):
    """Feeds every event to a Reader, whichever class it derives from."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return self.reader.feed(events, names)

    def close(self) -> Delta | None:
        return self.reader.close()


class Choices:
    """Makes the Readers of one answer; of several the last one has read all of it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._reader = Reader()

    def reader(self) -> Reader:
        self._reader = self._endpoint.reader()
        return _Fed(self._reader)

    def put_apart(self, answer: Answer) -> None:
        """Give *answer* the texts, reasons and token counts of its choices, and its own text in their order."""
        try:
            choices = self._reader.choices()
        except Exception as error:  # noqa: BLE001  # code of a plugin
            answer.error = BadResponse(f"the endpoint can't tell the choices of the answer: {why(error)}", kind=ENDPOINT_ERROR)
            return
        if choices:
            answer.choices = [(each.text + each.tool, each.reasoning.replace(HIDDEN, "")) for each in choices]
            answer.text, answer.reasoning = ("".join(texts) for texts in zip(*answer.choices, strict=True))
            answer.finish = joined(each.finish for each in choices) or answer.finish
            usages = [each.usage for each in choices]
            if any(usage is not None for usage in usages):
                answer.usage = answer.first_usage = None
                answer.apart, answer.unread_usage = ([], True) if None in usages else (usages, False)


def prompts_in(body: bytes) -> int:
    """Number of the prompts that the body of a request has: several, where it has a list of them."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 1
    lists = (said.get(name) for name in _PROMPTS) if isinstance(said, dict) else ()
    return next((len(each) for each in lists if isinstance(each, list) and len(each) > 1 and not isinstance(each[0], int)), 1)
