"""Rows of Exgentic as conversations."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from aiperf import BadDataset, Capabilities, Turn
from aiperf.sdk.model import names
from aiperf_dataset_otel_spans.dataset import Chat, Place, SpanError, Timeline, request, sampling, tokens, tools
from aiperf_dataset_otel_spans.spans import iso_ms
from msgspec.structs import replace

log = logging.getLogger(__name__)

_PROVIDERS = ("openai/azure/", "azure/", "aws/", "gcp/")
_SESSION_HEADER = "x-dynamo-session-id"
_SAMPLING = ("temperature", "stop_sequences")
_NON_LLM, _FAILED, _ZERO = "other calls than of a model", "failed", "without tokens"
_FILTERS = ("harness", "source_model", "benchmark")


def source_model(name: str) -> str:
    """The name of a recorded model without its provider."""
    lowered = name.casefold()
    return next((name[len(prefix) :] for prefix in _PROVIDERS if lowered.startswith(prefix)), name)


class Sessions:
    """Makes conversations of rows, one after the other.

    apart: the run keeps to recorded times, so each span is by itself.
    filters: values of ``harness``, ``source_model`` and ``benchmark`` that a row must have, in any case; of the models one.

    Raises:
        BadDataset: There is no such filter.
    """

    def __init__(self, can: Capabilities, *, apart: bool, filters: Mapping[str, str] | None = None) -> None:
        self._can, self._apart = can, apart
        self._filters = {name: source_model(value).casefold() for name, value in (filters or {}).items()}
        if unknown := [name for name in self._filters if name not in _FILTERS]:
            raise BadDataset(f"there is no filter {names(unknown)}", f"filters: {', '.join(_FILTERS)}")
        self._chat = Chat(can.media_in, strict=True)
        self._seen: set[str] = set()
        self._pairs: set[str] = set()
        self._skipped: Counter[str] = Counter()
        self._requests = self._overlaps = 0

    def of(self, row: dict[str, Any], where: str) -> Iterator[tuple[str, tuple[Turn, ...]]]:
        """Names and turns of the conversations of a row; none where the filters leave it out, or it has nothing to send.

        Raises:
            BadDataset: The row breaks a rule; the message begins with *where*.
        """
        session, harness = (_text(row, key, where) for key in ("session_id", "harness"))
        models, spans = row.get("models"), row.get("spans")
        if not isinstance(models, list) or not all(isinstance(model, str) and model for model in models):
            raise BadDataset(f"{where}: models must be a list of names")
        if not isinstance(spans, list) or not all(isinstance(span, dict) for span in spans):
            raise BadDataset(f"{where}: spans must be a list of objects")
        known = [source_model(model) for model in models]
        self._pairs.update(f"{harness}/{model}" for model in known)
        if not self._wanted(harness, known, row.get("benchmark")):
            return
        places, turns = [], []
        for index, span in enumerate(spans):
            try:
                turn = self._turn(span, session, f"{where}: span {index}")
                if turn is None:
                    continue
                start_ms, end_ms = (iso_ms(span.get(key), key) for key in ("start_time", "end_time"))
                if end_ms < start_ms:
                    raise SpanError("it ends before it starts")
            except SpanError as error:
                raise BadDataset(f"{where}: span {index}: {error}") from error
            places.append(Place(session, start_ms, end_ms, index, str(index)))
            turns.append((index, turn))
        if not places:
            return
        if session in self._seen:
            raise BadDataset(f"{where}: session_id is {session!r}, which an earlier row has; each row has its own")
        self._seen.add(session)
        timeline = Timeline(places, apart=self._apart)
        self._requests, self._overlaps = self._requests + len(places), self._overlaps + timeline.overlaps
        yield from timeline.conversations(turns)

    def finish(self, source: object) -> None:
        """Log what was read of *source*.

        Raises:
            BadDataset: Nothing was; the message has the pairs of harness and model that there are.
        """
        skipped = [f"{count} {why}" for why, count in sorted(self._skipped.items())]
        said = f"; skipped: {names(skipped)}" if skipped else ""
        if not self._seen:
            chosen = names([f"{name} {value}" for name, value in self._filters.items()]) if self._filters else ""
            what = f"has no session with {chosen}" if chosen else "has no span that can be sent"
            raise BadDataset(f"{source} {what}{said}", f"it has harness/model {', '.join(sorted(self._pairs)) or 'none'}")
        log.info(
            "%s: %d requests of %d sessions; %d overlap%s", source, self._requests, len(self._seen), self._overlaps, said
        )

    def _wanted(self, harness: str, models: list[str], benchmark: Any) -> bool:
        given = {"harness": [harness], "source_model": models, "benchmark": [benchmark] if isinstance(benchmark, str) else []}
        return all(value in [each.casefold() for each in given[name]] for name, value in self._filters.items())

    def _turn(self, span: dict[str, Any], session: str, where: str) -> Turn | None:
        attributes, status = span.get("attributes") or {}, span.get("status") or {}
        if not isinstance(attributes, dict):
            raise SpanError("its attributes are no object")
        kind = span.get("type")
        if kind != "llm_call" and (kind is not None or attributes.get("gen_ai.operation.name") != "chat"):
            self._skipped[_NON_LLM] += 1
            return None
        if isinstance(status, dict) and status.get("code") == 2:  # an error, in OpenTelemetry
            self._skipped[_FAILED] += 1
            return None
        used = [tokens(attributes, f"gen_ai.usage.{side}_tokens") for side in ("input", "output")]
        if None in used:
            raise SpanError("gen_ai.usage.input_tokens and gen_ai.usage.output_tokens must be whole numbers")
        if not all(used):
            self._skipped[_ZERO] += 1
            return None
        asked = tokens(attributes, "gen_ai.request.max_tokens")
        if asked == 0:
            raise SpanError("gen_ai.request.max_tokens is 0; it must be at least 1")
        messages = self._chat.messages(attributes)
        if not messages:
            raise SpanError("gen_ai.input.messages has no messages")
        definitions, extra = tools(attributes, strict=True), sampling(attributes, _SAMPLING)
        turn = request(messages, definitions, extra, asked or used[1], self._can, where)
        return replace(turn, headers={_SESSION_HEADER: session})


def _text(row: dict[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise BadDataset(f"{where}: the row has no {key}; it must be a text")
    return value


__all__ = ["Sessions", "source_model"]
