"""Bodies from a Jinja2 template; text and numbers of the answer from a JMESPath, or from the usual places."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from aiperf import BadDataset, BadResponse, Capabilities, ConfigError, Delta, Endpoint, HttpRequest, Turn, in_band_error
from aiperf.sdk.endpoint import Prompt, decoded
from aiperf_dialects.prompts import prompt_of

from aiperf_endpoint_template.extraction import delta_of, detected, extractor, is_plain
from aiperf_endpoint_template.options import RawOptions, TemplateOptions

if TYPE_CHECKING:
    from aiperf_endpoint_template.rendering import Renderer

_read: Callable[[bytes], Any] = msgspec.json.Decoder().decode


class Template(Endpoint[TemplateOptions]):
    """``POST`` to the URL as it is, unless ``--endpoint`` gives a path."""

    capabilities = Capabilities(
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        media_in=("image", "audio", "video"),
        multi_turn=True,
        takes=("payload_template", "response_field"),
        service_kind="template",
    )

    def __init__(self, options: TemplateOptions | None = None) -> None:
        super().__init__(options or TemplateOptions())
        self._extract, self.repeats_envelope = _reading(self.options.response_field)  # type: ignore[misc]

    @cached_property
    def _renderer(self) -> Renderer:
        from aiperf_endpoint_template.rendering import Renderer  # jinja2, only where requests are encoded

        if self.options.payload_template is None:
            raise ConfigError(
                "--endpoint-type template has no template",
                "add --extra-inputs 'payload_template:{\"q\": {{ text|tojson }}}', or the name of a file with one",
            )
        return Renderer(self.options.payload_template)

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The template gives no JSON for it, or there are extra inputs and no object to put them into.
        """
        body = self._renderer.body(turn)
        if turn.extra:
            if not isinstance(body, dict):
                raise BadDataset("extra inputs need an object to stand in, and the template renders to another JSON value")
            body |= turn.extra
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def decode(self, event: bytes) -> Delta | None:
        if not event or event == b"[DONE]":
            return None
        return read(decoded("template", _read, event), event, self._extract)


class Raw(Endpoint[RawOptions]):
    """``POST`` of payloads of the data set, byte by byte, to the URL as it is, unless ``--endpoint`` gives a path."""

    capabilities = Capabilities(
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        media_in=("image", "audio", "video"),
        multi_turn=True,
        takes=("response_field",),
        service_kind="raw",
    )
    probe_payload: ClassVar[dict[str, Any]] = {"prompt": "Hello", "max_tokens": 1}

    def __init__(self, options: RawOptions | None = None) -> None:
        super().__init__(options or RawOptions())
        self._extract, self.repeats_envelope = _reading(self.options.response_field)  # type: ignore[misc]

    def probe(self) -> Turn:
        return Turn(payload=self.probe_payload)

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has no payload.
        """
        payload = turn.payload
        if payload is None:
            raise BadDataset(
                "raw sends payloads as they are, and a turn has none",
                "use a data set with payloads (raw_payload, inputs_json, a trace with the field payload)",
            )
        body = payload if isinstance(payload, bytes) else msgspec.json.encode(payload)
        return HttpRequest(self.path(streaming=turn.stream), body)

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def decode(self, event: bytes) -> Delta | None:
        if not event or event == b"[DONE]":
            return None
        try:
            answer = _read(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # text of any kind
            try:
                return Delta(event.decode())
            except UnicodeDecodeError as error:
                raise BadResponse("raw: neither JSON nor text", raw=event, unreadable=True) from error
        if not isinstance(answer, dict | list):
            return Delta(event.decode())
        found = None if self._extract is None else self._extract(answer)
        return read(answer, event, None if found is None else self._extract)


def _reading(expression: str | None) -> tuple[Callable[[Any], Any] | None, bool]:
    """What finds the content of an answer (None searches the usual places), and ``repeats_envelope``.

    Events of one envelope differ in their text alone where names and indexes lead to it; a condition may look elsewhere.
    """
    return (None, True) if expression is None else (extractor(expression), is_plain(expression))


def read(answer: Any, event: bytes, extract: Callable[[Any], Any] | None) -> Delta:
    """The Delta of an answer; *extract* finds its content, None searches the usual places.

    Raises:
        BadResponse: The answer is an error, or no object or list.
    """
    if not isinstance(answer, dict | list):
        raise BadResponse("template: neither an object nor a list", raw=event)
    found = detected(answer) if extract is None else extract(answer)
    if found is None:
        failure = in_band_error(event)
        if failure is not None:
            raise failure
    return delta_of(found, answer)
