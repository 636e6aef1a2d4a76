"""otel_spans: requests recorded as OpenTelemetry GenAI spans; each sends its whole chat again."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import BadDataset, Capabilities, Conversation, Dataset, DatasetContext, Turn
from aiperf.sdk.model import names
from aiperf_dataset_single_turn.dataset import NO_HISTORY, texts_of, verbatim
from aiperf_dataset_synthetic.file import FileDefaults

from aiperf_dataset_otel_spans.messages import Chat, SpanError, older_messages, sampling, tokens, tools
from aiperf_dataset_otel_spans.options import OtelSpansOptions
from aiperf_dataset_otel_spans.replay import Place, Timeline
from aiperf_dataset_otel_spans.spans import Span, spans

log = logging.getLogger(__name__)

_CHATS = ("chat", "generate_content", "text_completion")
_EMBEDDINGS = "embeddings"
_FAILED, _OTHER, _EMPTY = "failed", "of other operations", "without messages"
_NO_CONTENT = (
    "the instrumentation records contents only where it is told to: OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"
)


class OtelSpans(Dataset[OtelSpansOptions]):
    """Spans of a file in the order of their times; those of a conversation, else of a trace, are one session."""

    trace = True

    def __init__(self, options: OtelSpansOptions, context: DatasetContext) -> None:
        super().__init__(options, context)
        self._defaults = FileDefaults(options, context)

    @classmethod
    def recognises(cls, path: Path, first_row: Any) -> bool:
        return isinstance(first_row, dict)

    def __iter__(self) -> Iterator[Conversation]:
        path, replay = self._defaults.path, self.context.replay
        skipped: Counter[str] = Counter()
        chat = Chat(self.context.capabilities.media_in)
        recorded, models = 0, set()
        places = []
        for number, span in enumerate(spans(path)):
            turn, why = self._turn(span, chat)
            if turn is None:
                skipped[why] += 1
                continue
            counted = span.attributes.get("gen_ai.usage.input_tokens")
            recorded += counted if isinstance(counted, int) else 0
            models.add(str(span.attributes.get("gen_ai.request.model", "an unknown model")))
            places.append(Place(span.session, span.start_ms, span.end_ms, number))
        if not places:
            raise BadDataset(f"{path} has no span that can be sent{_counted(skipped)}", *[_NO_CONTENT] * bool(skipped[_EMPTY]))
        first_ms = min(place.start_ms for place in places)
        timeline = Timeline(places, apart=replay, zero_ms=first_ms)
        log.info(
            "%s: %d requests of %d sessions, recorded of %s; %d overlap; %s recorded input tokens%s%s", path, len(places),
            timeline.sessions, names(sorted(models)), timeline.overlaps, f"{recorded:,}" if recorded else "no",
            _counted(skipped), _counted(chat.left_out, "parts of messages "),
        )  # fmt: skip
        quiet = Chat(self.context.capabilities.media_in)
        turns = ((number, turn) for number, span in enumerate(spans(path)) if (turn := self._turn(span, quiet)[0]) is not None)
        for number, (name, session) in enumerate(timeline.conversations(turns)):
            yield self._defaults.conversation(number, name, session, alone=True)

    def _turn(self, span: Span, chat: Chat) -> tuple[Turn | None, str]:
        """The request of a span; None, and why, where it sends none."""
        attributes, can = span.attributes, self.context.capabilities
        operation = attributes.get("gen_ai.operation.name")
        if span.failed:
            return None, _FAILED
        embeds = not can.produces_tokens and not can.multi_turn
        if (operation == _EMBEDDINGS) is not embeds or operation not in (*_CHATS, _EMBEDDINGS, None):
            return None, _OTHER
        try:
            messages = chat.messages(attributes) or older_messages(attributes, span.events)
            if not messages:
                return None, _OTHER if operation is None else _EMPTY
            asked, made = (tokens(attributes, f"gen_ai.{name}_tokens") for name in ("request.max", "usage.output"))
            extra = sampling(attributes)
            definitions = tools(attributes)
        except SpanError as error:
            raise BadDataset(f"{span.where}: the span of {span.session}: {error}") from error
        if self._defaults.stands_before:
            before = self._defaults.stands_before
            raise BadDataset(f"{span.where}: messages are sent unchanged: the {before} can't come before them")
        return request(messages, definitions, extra, asked or made or None, can, span.where), ""


def request(
    messages: list[dict[str, Any]], definitions: list[dict[str, Any]], extra: dict[str, Any], max_tokens: int | None,
    can: Capabilities, where: str,
) -> Turn:  # fmt: skip
    """A turn that sends the chat as it is; an endpoint without a history gets the text of a single message.

    Raises:
        BadDataset: There are several messages, and the endpoint has no history.
    """
    texts = tuple(texts_of(messages))
    if not can.multi_turn:
        if len(messages) > 1 or definitions or not texts:
            raise BadDataset(f"{where}: {NO_HISTORY}")
        return Turn(texts=texts, max_tokens=max_tokens, extra=extra)
    chat = {"messages": messages, **({"tools": definitions} if definitions else {})}
    turn = Turn(texts=texts, max_tokens=max_tokens, extra=chat | extra)
    return verbatim(turn) if can.verbatim else turn


def _counted(counts: Counter[str], what: str = "") -> str:
    said = [f"{count} {why}" for why, count in sorted(counts.items())]
    return f"; skipped: {what}{names(said)}" if said else ""


__all__ = ["Chat", "OtelSpans", "Place", "SpanError", "Timeline", "request", "sampling", "tokens", "tools"]
