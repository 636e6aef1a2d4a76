"""Chat templates: the text that a server makes of messages.

From the files beside a tokenizer: ``chat_template.jinja``, else ``chat_template`` of ``tokenizer_config.json``, a text or a
list of named ones, of which the one called ``default`` counts.  Rendered as transformers and the servers that follow it do:
Jinja2 in a sandbox, with ``trim_blocks`` and ``lstrip_blocks``, loop controls, ``raise_exception``, ``strftime_now``,
``tojson`` without HTML escapes, and the special tokens by their names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from aiperf import BadTokenizer
from aiperf_rendering.bounds import Bounded, TooCostly, joined, limited
from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

_FILE, _CONFIGURATION, _DEFAULT = "chat_template.jinja", "tokenizer_config.json", "default"
_HINT = "drop --apply-chat-template, or name another tokenizer"


class Template:
    """A chat template.  *render*: messages to text.  *encode*: ids of that text, in which special tokens are recognised."""

    def __init__(
        self, name: str, render: Callable[[Sequence[Mapping[str, Any]], bool], str], encode: Callable[[str], list[int]]
    ) -> None:  # fmt: skip
        self._name, self._render, self._encode = name, render, encode

    def count(self, messages: Sequence[Mapping[str, Any]], *, asks: bool = True) -> int:
        return len(self.ids(messages, asks=asks))

    def ids(self, messages: Sequence[Mapping[str, Any]], *, asks: bool = True) -> list[int]:
        try:
            with limited():
                text = self._render(messages, asks)
        except TooCostly as cost:
            raise BadTokenizer(f"the chat template of {self._name!r} can't be rendered: {cost}", _HINT) from None
        except Exception as error:  # code of the model's author
            raise BadTokenizer(f"the chat template of {self._name!r} refuses the messages: {_reason(error)}", _HINT) from error
        return self._encode(text)


def chat_template(name: str, beside: Callable[[str], Path | None], encode: Callable[[str], list[int]]) -> Template | None:
    """The template of the tokenizer *name*; None where it has none.  *beside*: the files beside it, None for missing ones.

    Raises:
        BadTokenizer: The files can't be read, or have no template that can be used.
    """
    file, about = beside(_FILE), beside(_CONFIGURATION)
    try:
        own = None if file is None else file.read_text(encoding="utf-8")
        settings = {} if about is None else json.loads(about.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadTokenizer(f"the chat template of {name!r} can't be read: {error}", _HINT) from error
    settings = settings if isinstance(settings, dict) else {}
    source = _chosen(name, settings.get("chat_template")) if own is None else own
    if source is None:
        return None
    try:
        template = (environment := _environment()).from_string(source)
    except TemplateSyntaxError as error:
        reason = f"{error.message} (line {error.lineno})"
        raise BadTokenizer(f"the chat template of {name!r} is no Jinja2 template: {reason}", _HINT) from error
    special = _special_tokens(settings)

    def render(messages: Sequence[Mapping[str, Any]], asks: bool) -> str:
        environment.begin()
        values = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": asks, **special}
        return joined(template.generate(values))

    return Template(name, render, encode)


def end_token(beside: Callable[[str], Path | None]) -> str | None:
    """The token with which the model ends an answer, of ``tokenizer_config.json``; None where that doesn't say it."""
    about = beside(_CONFIGURATION)
    try:
        settings = {} if about is None else json.loads(about.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return _special_tokens(settings).get("eos_token") if isinstance(settings, dict) else None


def _chosen(name: str, given: Any) -> str | None:
    """The template among several."""
    if given is None or isinstance(given, str):
        return given
    listed = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
    named = {each.get("name"): each.get("template") for each in listed}
    source = named.get(_DEFAULT)
    if not isinstance(source, str):
        names = ", ".join(map(repr, named)) or "none that can be read"
        raise BadTokenizer(
            f"the tokenizer {name!r} has chat templates and none called {_DEFAULT!r}; it has {names}",
            f"write the one that the server uses into {_FILE} beside its tokenizer.json",
        )
    return source


def _special_tokens(settings: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens by name: texts, or objects with a content."""
    contents = {name: value.get("content") if isinstance(value, dict) else value for name, value in settings.items()}
    return {name: value for name, value in contents.items() if name.endswith("_token") and isinstance(value, str)}


class _Generation(Extension):
    """``{% generation %}…{% endgeneration %}``: marks the assistant's words for training, and changes nothing."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Sandbox(Bounded, ImmutableSandboxedEnvironment):
    """What a template changes stays as it was, and what it makes is bounded."""


def _environment() -> _Sandbox:
    environment = _Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols], autoescape=False
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:  # fmt: skip
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _reason(error: Exception) -> str:
    first = next(iter(str(error).strip().splitlines()), "no reason given")
    return first if isinstance(error, TemplateError) else f"{type(error).__name__}: {first}"
