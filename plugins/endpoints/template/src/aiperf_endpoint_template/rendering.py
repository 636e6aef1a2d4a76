"""Bodies from a Jinja2 template, in a sandbox.

Text is escaped as in a JSON string, and nothing is escaped as HTML: ``{"q": "{{ text }}"}`` and ``{"q": {{ text|tojson }}}``
say the same.  Any other value stands as its JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec
from aiperf import BadDataset, Media, Message, Turn
from aiperf_rendering.bounds import Bounded, TooCostly, joined, limited
from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, meta
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


class Described:
    """A turn, as templates see it; each part is made when it is asked for."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    @cached_property
    def turns(self) -> list[dict[str, Any]]:
        """The whole chat."""
        return list(map(_described, self.turn.messages))

    @cached_property
    def last(self) -> dict[str, Any]:
        """The last message."""
        own = self.turn.own
        return _described(own[-1] if own else Message(self.turn.role))

    @property
    def named(self) -> dict[str, list[str]]:
        named = {name: [value] if isinstance(value, str) else list(value) for name, value in self.turn.named.items()}
        return named or {"text": self.last["texts"]}

    @property
    def request(self) -> dict[str, Any]:
        turn = self.turn
        return {"model": turn.model, "max_tokens": turn.max_tokens, "stream": turn.stream, "turns": self.turns}

    def texts(self, *names: str) -> list[str]:
        return list(self.turn.texts_of(*names))


def _described(message: Message) -> dict[str, Any]:
    texts = list(message.words)
    described: dict[str, Any] = {"role": message.role, "texts": texts, "text": texts[0] if texts else ""}
    for kind in _KINDS:
        values = [each.value for each in message.media if each.kind == kind] if message.media else []
        described[kind], described[f"{kind}s"] = _first(values), values
    return described


def _of_last(name: str) -> Callable[[Described], Any]:
    return lambda described: described.last[name]


def _by_name(kind: str) -> Callable[[Described], Any]:
    return lambda described: {kind: described.last[f"{kind}s"]}


VARIABLES: dict[str, Callable[[Described], Any]] = {
    **{name: _of_last(name) for name in ("role", "text", "texts", *_KINDS, *(f"{kind}s" for kind in _KINDS))},
    **{f"{kind}s_by_name": _by_name(kind) for kind in _KINDS},
    "texts_by_name": lambda described: described.named,
    "queries": lambda described: described.texts("query", "queries"),
    "query": lambda described: _first(described.texts("query", "queries")),
    "passages": lambda described: described.texts("passages", "passage"),
    "passage": lambda described: _first(described.texts("passages", "passage")),
    "model": lambda described: described.turn.model,
    "max_tokens": lambda described: described.turn.max_tokens,
    "stream": lambda described: described.turn.stream,
    "turn": lambda described: described.last,
    "turns": lambda described: described.turns,
    "request_info": lambda described: described.request,
}
"""What a template may use; singular names and lists are of the last message, ``turns`` has the whole chat."""


def _first(values: list[str]) -> str | None:
    return values[0] if values else None


class Renderer:
    """Renders one template."""

    def __init__(self, text: str) -> None:
        environment = self._environment = Bounded(autoescape=False, finalize=finalized, undefined=StrictUndefined)
        environment.filters["tojson"] = tojson
        try:
            self._template = environment.from_string(text)
        except TemplateSyntaxError as error:
            raise ValueError(f"is no Jinja2 template: {error.message} (line {error.lineno})") from None
        except TemplateError as error:
            raise ValueError(f"is no Jinja2 template: {error}") from None
        self._names = meta.find_undeclared_variables(environment.parse(text))

    def check(self) -> None:
        """Whether it names known variables alone, and is JSON for a sample turn.

        A template that can't be rendered for the sample is tried on each turn of the data set, before load.

        Raises:
            ValueError: The message says why not, behind the name of the option.
        """
        unknown = sorted(self._names - VARIABLES.keys())
        if unknown:
            raise ValueError(f"names the unknown variable {', '.join(unknown)}; known are {', '.join(sorted(VARIABLES))}")
        try:
            rendered = self._rendered(_SAMPLE)
        except TooCostly as error:
            raise ValueError(f"can't be rendered: {error}") from None
        except Exception:  # noqa: BLE001  # a template may need a turn of another form
            return
        try:
            msgspec.json.decode(rendered)
        except msgspec.DecodeError as error:
            shown = rendered if len(rendered) <= 80 else f"{rendered[:80]}…"
            raise ValueError(f"renders to {shown!r}, which is no JSON: {error}") from None

    def _rendered(self, turn: Turn) -> str:
        described = Described(turn)
        self._environment.begin()
        with limited():
            return joined(self._template.generate({name: VARIABLES[name](described) for name in self._names}))

    def body(self, turn: Turn) -> Any:
        """The JSON value for a turn; of a list with one element, that element.

        Raises:
            BadDataset: The template can't be rendered for the turn, or renders to anything else.
        """
        try:
            rendered = self._rendered(turn)
        except TooCostly as error:
            raise BadDataset(f"the template can't be rendered: {error}") from error
        except Exception as error:
            raise BadDataset(f"the template can't be rendered: {type(error).__name__}: {error}") from error
        try:
            body = msgspec.json.decode(rendered)
        except msgspec.DecodeError as error:
            shown = rendered if len(rendered) <= 80 else f"{rendered[:80]}…"
            raise BadDataset(f"the template renders to {shown!r}, which is no JSON: {error}") from error
        return body[0] if isinstance(body, list) and len(body) == 1 else body
