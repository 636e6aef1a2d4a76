"""The native generate API of SGLang: encodes ``text`` and ``sampling_params``; decodes the text so far, ids and counts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.choices import reason_of
from aiperf_dialects.growing import BatchReader, GrowingText
from aiperf_dialects.prompts import prompt_of
from msgspec import Struct

log = logging.getLogger(__name__)
SAMPLING_PARAMS = frozenset((
    "max_new_tokens", "min_new_tokens", "stop", "stop_token_ids", "stop_regex", "temperature", "top_p", "top_k", "min_p",
    "frequency_penalty", "presence_penalty", "repetition_penalty", "n", "json_schema", "regex", "ebnf", "structural_tag",
    "ignore_eos", "skip_special_tokens", "spaces_between_special_tokens", "no_stop_trim", "stream_interval", "logit_bias",
    "custom_params", "sampling_seed",
))  # fmt: skip
"""Extra inputs that stand in ``sampling_params``; all others are fields of the body."""


class Meta(Struct, gc=False):
    """Counts so far, and the reason of the end: an object with ``type``, or its name."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    cached_tokens: Any = None
    finish_reason: Any = None


class Answer(Struct, gc=False):
    """An event, or a whole answer: both have the same form.  output_ids: a list instead of the text, or beside it."""

    text: str | None = None
    output_ids: msgspec.Raw = msgspec.Raw(b"")
    meta_info: Meta | None = None
    index: int = 0


_NO_IDS = (b"", b"null", b"[]")
_read_list = msgspec.json.Decoder(list[Answer]).decode


class SglangReader(BatchReader[Answer]):
    """Reads one answer, of one choice or of several (``n``).

    Servers repeat the text so far with every event, unless they were started with incremental output.
    """

    dialect, event_type = "sglang_generate", Answer

    def __init__(self, took_back: Callable[[], None] = lambda: None) -> None:
        """*took_back*: called behind an answer of which a part was taken back."""
        self._took_back = took_back
        self._growing: dict[int, GrowingText] = {}
        self._tokens: dict[int, int] = {}
        self._texts: dict[int, list[str]] = {}
        self._usages: dict[int, dict[str, Any]] = {}
        self._reasons: dict[int, str] = {}

    def delta(self, event: Answer, data: bytes) -> Delta | None:
        meta, text, index = event.meta_info, event.text, event.index
        if text is None and bytes(event.output_ids) in _NO_IDS:
            return self.empty(data)
        usage = finish = tokens = None
        if meta is not None:
            if meta.finish_reason is not None:
                finish = _finish(meta.finish_reason, data)
                if finish is not None:
                    self._reasons[index] = finish
            if (done := meta.completion_tokens) is not None:
                usage = {"prompt_tokens": meta.prompt_tokens, "completion_tokens": done, "cached_tokens": meta.cached_tokens}
                self._usages[index] = usage
                if type(done) is int:
                    if text is None:
                        tokens = done - self._tokens.get(index, 0)
                    self._tokens[index] = done
                    if len(self._tokens) > 1:
                        usage = {**usage, "completion_tokens": sum(self._tokens.values())}
        if text is None:  # token ids alone: each is content, and its text is unknown
            tokens = bytes(event.output_ids).count(b",") + 1 if tokens is None else tokens
            return Delta("", "", "", usage, finish, max(0, tokens))
        growing = self._growing.get(index)
        if growing is None:
            growing = self._growing[index] = GrowingText(usual=True)
        piece = growing.new(text)
        self._texts.setdefault(index, []).append(piece)
        return Delta(piece, "", "", usage, finish)

    def choices(self) -> Sequence[Delta] | None:
        """Each of several choices, in the order of their index; one where a part of its text was taken back."""
        took_back = any(each.took_back for each in self._growing.values())
        if took_back:
            self._took_back()
        elif len(self._texts) < 2:
            return None
        alone = self._usages if len(self._texts) > 1 else {}
        return [
            Delta(self._text(index), usage=alone.get(index), finish=self._reasons.get(index)) for index in sorted(self._texts)
        ]

    def _text(self, index: int) -> str:
        growing = self._growing[index]
        return growing.whole or "" if growing.took_back else "".join(self._texts[index])

    def each(self, data: bytes) -> Delta | None:
        """The Delta of one event; a whole answer of several choices stands in a list."""
        if not data.lstrip().startswith(b"["):
            return super().each(data)
        try:
            answers = _read_list(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return super().each(data)
        deltas = [self.delta(msgspec.structs.replace(answer, index=at), data) for at, answer in enumerate(answers)]
        told = [delta for delta in deltas if delta is not None]
        return Delta(
            "".join(delta.text for delta in told), usage=told[-1].usage if told else None,
            finish=told[0].finish if told else None, items=sum(delta.items for delta in told),
        )  # fmt: skip


def _finish(reason: Any, data: bytes) -> str | None:
    """The name of a reason.

    Raises:
        BadResponse: The server aborted the request.
    """
    if not isinstance(reason, dict):
        return reason_of(reason)
    kind, status = reason.get("type"), reason.get("status_code")
    if kind == "abort":
        message = reason.get("message")
        code = status if isinstance(status, int) else None
        raise BadResponse(message if isinstance(message, str) and message else "aborted", raw=data, code=code, kind="abort")
    return reason_of(reason if kind is None else kind)


class SglangGenerate(Endpoint):
    """``POST /generate``."""

    capabilities = Capabilities(
        path="/generate", streaming=True, produces_tokens=True, tokenizes_input=True, service_kind="sglang",
        settings={"seed": "sampling_seed"},
    )  # fmt: skip
    plain_prompts = True
    splices_text = True
    answers_each_text = True
    takes_back = True
    _told = False

    def encode(self, turn: Turn) -> HttpRequest:
        sampling: dict[str, Any] = {} if turn.max_tokens is None else {"max_new_tokens": turn.max_tokens}
        body: dict[str, Any] = {"text": list(turn.texts) if len(turn.texts) > 1 else turn.text, "sampling_params": sampling}
        body["stream"] = turn.stream
        for name, value in turn.extra.items():
            if name == "sampling_params" and isinstance(value, dict):
                sampling |= value
            else:
                (sampling if name in SAMPLING_PARAMS else body)[name] = value
        if "input_ids" in body:  # the server takes either
            del body["text"]
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def reader(self) -> SglangReader:
        return SglangReader(self._tell)

    def _tell(self) -> None:
        if not self._told:
            self._told = True
            log.warning(
                "sglang_generate: the server took back the end of texts that it had sent, as it does with stop strings: what"
                " stayed of them counts"
            )
