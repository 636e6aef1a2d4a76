"""Expressions in ``{{ }}`` over names with plain values: arithmetic, comparison and a few filters, in Jinja2's syntax.

There are no loops, no statements, no attributes and no calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from jinja2 import StrictUndefined, TemplateError, nodes

from aiperf_rendering.bounds import Bounded, TooCostly, limited

_FILTERS = (
    "abs", "capitalize", "default", "first", "float", "int", "join", "last", "length", "lower", "max", "min", "replace",
    "round", "string", "sum", "title", "tojson", "trim", "upper",
)  # fmt: skip
_ALLOWED = (
    nodes.Const, nodes.TemplateData, nodes.Name, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.BinExpr,
    nodes.UnaryExpr, nodes.Compare, nodes.Operand, nodes.CondExpr, nodes.Concat, nodes.Filter, nodes.Getitem, nodes.Keyword,
)  # fmt: skip
_REFUSED: tuple[tuple[type[nodes.Node], str], ...] = (
    (nodes.For, "a loop can't be computed"), (nodes.Getattr, "an attribute can't be read; a key is read with name['key']"),
    (nodes.Call, "nothing can be called"), (nodes.Stmt, "a statement can't be computed"),
)  # fmt: skip
_MOST_CHARACTERS = 10_000
_RESULT = "result"


class BadExpression(Exception):  # noqa: N818  # says what, not that something is wrong
    """A text can't be computed; the message completes a sentence that begins with the text's place."""


class Expressions:
    """Computes texts.  Each name's value is asked of *value_of* where a text has it; *known*: all names, for messages."""

    def __init__(self, value_of: Callable[[str], Any], known: Mapping[str, Any] | tuple[str, ...]) -> None:
        self._value_of, self._known = value_of, tuple(known)
        self._environment = Bounded(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        self._environment.filters = {name: self._environment.filters[name] for name in _FILTERS}
        self._environment.globals = {}

    def value(self, text: str) -> Any:
        """What the text comes to: the plain value of one that is a single expression, else a text.

        Raises:
            BadExpression: It can't be computed.
        """
        parts = self._parsed(text.strip() if _single(text) else text)
        names = {each.name: self._named(each.name) for part in parts for each in _all(part) if isinstance(each, nodes.Name)}
        try:
            with limited():
                values = [_plain(self._computed(part, names)) for part in parts]
        except BadExpression:
            raise
        except TooCostly as error:
            raise BadExpression(f"it costs too much: {error}") from error
        except Exception as error:  # of an operation on values that it doesn't fit
            raise BadExpression(f"it can't be computed: {error}") from error
        return values[0] if len(values) == 1 else "".join(map(str, values))

    def _parsed(self, text: str) -> list[nodes.Expr]:
        try:
            return list(self._checked(text))
        except RecursionError as error:
            raise BadExpression("it is nested too deeply") from error
        except TemplateError as error:
            raise BadExpression(f"it can't be read: {error.message}") from error

    def _checked(self, text: str) -> Iterator[nodes.Expr]:
        """The text's expressions and the texts between them.  Loops, statements and attributes are refused by name."""
        if len(text) > _MOST_CHARACTERS:
            raise BadExpression(f"it has more than {_MOST_CHARACTERS:,} characters")
        for statement in self._environment.parse(text).body:
            for node in _all(statement):
                self._check(node)
            assert isinstance(statement, nodes.Output)
            yield from statement.nodes

    def _check(self, node: nodes.Node) -> None:
        for kind, why in _REFUSED:
            if isinstance(node, kind) and not isinstance(node, nodes.Output):
                raise BadExpression(why)
        if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
            raise BadExpression(f"there is no filter {node.name}; filters are {', '.join(_FILTERS)}")
        if not isinstance(node, (*_ALLOWED, nodes.Output)):
            raise BadExpression(f"it has a {type(node).__name__.lower()}, which can't be computed")

    def _computed(self, node: nodes.Expr, names: Mapping[str, Any]) -> Any:
        if isinstance(node, nodes.TemplateData):
            return node.data
        body: list[nodes.Node] = [nodes.Assign(nodes.Name(_RESULT, "store"), node, lineno=1)]
        self._environment.begin()
        template = self._environment.from_string(nodes.Template(body, lineno=1))
        context = template.new_context(dict(names))
        for _ in template.root_render_func(context):
            pass
        value = context.vars[_RESULT]
        if isinstance(value, StrictUndefined):
            raise BadExpression("it has no value: no such key")
        return value

    def _named(self, name: str) -> Any:
        if name not in self._known:
            near = get_close_matches(name, self._known, 1, 0.6)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._known) or 'none'}"
            raise BadExpression(f"no variable is called {name}; {hint}")
        return self._value_of(name)


def _single(text: str) -> bool:
    return text.strip().startswith("{{") and text.strip().endswith("}}")


def _all(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for below in node.iter_child_nodes():
        yield from _all(below)


def _plain(value: Any) -> Any:
    """A whole number is no float: lengths and counts are divided, too."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value
