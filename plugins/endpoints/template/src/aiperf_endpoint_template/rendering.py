"""Bodies from a Jinja2 template, in a sandbox.

Text is escaped as in a JSON string, and nothing is escaped as HTML: ``{"q": "{{ text }}"}`` and ``{"q": {{ text|tojson }}}``
say the same.  Any other value stands as its JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadDataset, Media, Message, Turn
from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, meta
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

_KINDS = ("image", "audio", "video")
_SAMPLE = Turn(
    ("Hello",), tuple(Media(kind, "data:,") for kind in _KINDS), model="model", max_tokens=8,
    named={"query": "Hello", "passages": ("Hello", "Hello")},
)  # fmt: skip


def tojson(value: Any, indent: int | None = None) -> Markup:
    """The JSON of a value, which stands as it is.  *indent* is that of Jinja2: bodies are sent without spaces in any case."""
    return Markup(msgspec.json.encode(value, enc_hook=_plain).decode())


def finalized(value: Any) -> Any:
    """A value of ``{{ … }}`` as it stands in JSON: text without its quotes."""
    if isinstance(value, Markup | Undefined):
        return value
    encoded = tojson(value)
    return encoded[1:-1] if isinstance(value, str) else encoded


def _plain(value: Any) -> Any:
    """Sets and generators as lists, for filters that make them."""
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise TypeError(f"{type(value).__name__} is no JSON value")
    return list(value)


def variables(turn: Turn) -> dict[str, Any]:
    """What a template may use; singular names and lists are of the last message, ``turns`` has the whole chat."""
    turns = list(map(_described, turn.messages))
    last: dict[str, Any] = turns[-1] if turns else _described(Message(turn.role))
    named = {name: [value] if isinstance(value, str) else list(value) for name, value in turn.named.items()}
    queries, passages = list(turn.texts_of("query", "queries")), list(turn.texts_of("passages", "passage"))
    values: dict[str, Any] = {
        **last, "queries": queries, "query": _first(queries), "passages": passages, "passage": _first(passages),
        "texts_by_name": named or {"text": last["texts"]}, "model": turn.model, "max_tokens": turn.max_tokens,
        "stream": turn.stream, "turn": last, "turns": turns,
    }  # fmt: skip
    values |= {f"{kind}s_by_name": {kind: last[f"{kind}s"]} for kind in _KINDS}
    values["request_info"] = {name: values[name] for name in ("model", "max_tokens", "stream", "turns")}
    return values


def _described(message: Message) -> dict[str, Any]:
    texts = list(message.words)
    media = {kind: [each.value for each in message.media if each.kind == kind] for kind in _KINDS}
    described: dict[str, Any] = {"role": message.role, "texts": texts, "text": texts[0] if texts else ""}
    for kind, values in media.items():
        described |= {kind: _first(values), f"{kind}s": values}
    return described


def _first(values: list[str]) -> str | None:
    return values[0] if values else None


class Renderer:
    """Renders one template."""

    def __init__(self, text: str) -> None:
        environment = SandboxedEnvironment(autoescape=False, finalize=finalized, undefined=StrictUndefined)
        environment.filters["tojson"] = tojson
        self._environment, self._text = environment, text
        try:
            self._template = environment.from_string(text)
        except TemplateSyntaxError as error:
            raise ValueError(f"is no Jinja2 template: {error.message} (line {error.lineno})") from None
        except TemplateError as error:
            raise ValueError(f"is no Jinja2 template: {error}") from None

    def check(self) -> None:
        """Whether it names known variables alone, and is JSON for a sample turn.

        A template that can't be rendered for the sample is tried on each turn of the data set, before load.

        Raises:
            ValueError: The message says why not, behind the name of the option.
        """
        known = variables(_SAMPLE)
        unknown = sorted(meta.find_undeclared_variables(self._environment.parse(self._text)) - known.keys())
        if unknown:
            raise ValueError(f"names the unknown variable {', '.join(unknown)}; known are {', '.join(sorted(known))}")
        try:
            rendered = self._template.render(known)
        except Exception:  # noqa: BLE001  # a template may need a turn of another form
            return
        try:
            msgspec.json.decode(rendered)
        except msgspec.DecodeError as error:
            shown = rendered if len(rendered) <= 80 else f"{rendered[:80]}…"
            raise ValueError(f"renders to {shown!r}, which is no JSON: {error}") from None

    def body(self, turn: Turn) -> Any:
        """The JSON value for a turn; of a list with one element, that element.

        Raises:
            BadDataset: The template can't be rendered for the turn, or renders to anything else.
        """
        try:
            rendered = self._template.render(variables(turn))
        except Exception as error:
            raise BadDataset(f"the template can't be rendered: {type(error).__name__}: {error}") from error
        try:
            body = msgspec.json.decode(rendered)
        except msgspec.DecodeError as error:
            shown = rendered if len(rendered) <= 80 else f"{rendered[:80]}…"
            raise BadDataset(f"the template renders to {shown!r}, which is no JSON: {error}") from error
        return body[0] if isinstance(body, list) and len(body) == 1 else body
