"""What a template may cost: processor time, and the size of what it makes.

What an operation makes is estimated before it is done, because one of C code can't be interrupted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from itertools import chain
from typing import Any

from aiperf.sdk.environment import render_s
from aiperf.sdk.limits import OutOfTime, processor_time
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

MOST_CHARACTERS = 64 << 20
_MOST_MADE = 4 * MOST_CHARACTERS
"""Characters of all intermediate results together."""
_ELEMENT = 8
"""Characters that an element of a list counts for, beside its own."""
_HOLDING = (list, tuple, dict)
_MOST_DIVIDED = MOST_CHARACTERS // _ELEMENT
"""Characters of a text that may be divided into a list, whose elements are larger."""
_MOST_BITS = 1 << 20
_NUMBER = re.compile(r"\d+")
_FIELD = re.compile(r"%(?:\([^)]*\))?[-+ #0]*([\d*]*(?:\.[\d*]+)?)|(?<!\{)\{[^{}]*:([^{}]*\{?)")
"""Width and precision of a field of either kind; they end in ``*`` or ``{`` where they are among the values."""
_DIVIDING = frozenset(("list", "sort", "batch", "slice", "unique", "split", "rsplit", "splitlines"))
_PADDING = frozenset(("ljust", "rjust", "center", "zfill", "indent", "batch"))
_JOINING = frozenset(("join", "sum"))


class TooCostly(Exception):  # noqa: N818  # says what, not that something is wrong
    """A template takes too long, or makes too much."""


class _Code(CodeGenerator):
    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802  # the base class names it
        self.write("environment.concatenated((")
        for each in node.nodes:
            self.visit(each, frame)
            self.write(", ")
        self.write("))")


class Bounded(SandboxedEnvironment):
    """A sandbox whose operations make no more than fits.  :meth:`begin` comes before each rendering."""

    intercepted_binops = frozenset(("*", "**", "+", "%"))
    code_generator_class = _Code

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._made = 0
        self.filters = {name: self._bounded(name, each) for name, each in self.filters.items()}

    def begin(self) -> None:
        self._made = 0

    def concatenated(self, values: Iterable[Any]) -> str:
        """The texts of ``~``."""
        texts = [str(value) for value in values]
        _check(sum(map(len, texts)))
        self._counted(text := "".join(texts))
        return text

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _MOST_BITS:
            raise TooCostly(f"it asks for a number of more than {_MOST_BITS:,} bits")
        if operator == "*":
            _check(max(_size(left) * _whole(right), _size(right) * _whole(left)))
        elif operator == "+":
            _check(_size(left) + _size(right))
        elif operator == "%" and isinstance(left, str):
            _check(_formatted(left, right if isinstance(right, tuple) else (right,), {}))
        return self._counted(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805  # as the sandbox does
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str | bytes | list):
            named = {name: value for name, value in kwargs.items() if name not in ("_block_vars", "_loop_vars")}  # Jinja2's
            _check(_estimated(__obj.__name__, (owner, *args), named))
        return __self._counted(super().call(__context, __obj, *args, **kwargs))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        inner, text = super().wrap_str_format(value), getattr(value, "__self__", "")
        if inner is None:
            return None

        @wraps(inner)
        def formatted(*args: Any, **kwargs: Any) -> str:
            _check(_formatted(text, args, kwargs))
            return inner(*args, **kwargs)

        return formatted

    def _bounded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The filter *name*, whose first argument may be one of Jinja2's own."""
        first = 1 if hasattr(function, "jinja_pass_arg") else 0

        @wraps(function)
        def filtered(*args: Any, **kwargs: Any) -> Any:
            given = args[first:]
            if name in _JOINING and given and not hasattr(given[0], "__len__"):  # a generator can be read once
                given = (list(given[0]), *given[1:])
            _check(_estimated(name, given, kwargs))
            return self._counted(function(*args[:first], *given, **kwargs))

        return filtered

    def _counted(self, value: Any) -> Any:
        self._made += _size(value)
        if self._made > _MOST_MADE:
            raise TooCostly(f"it makes more than {_MOST_MADE >> 20} MiB of intermediate results")
        return value


def _check(size: int) -> None:
    if size > MOST_CHARACTERS:
        raise TooCostly(f"it makes more than {MOST_CHARACTERS >> 20} MiB")


def _size(value: Any) -> int:
    """Characters of a text; of a list as many as its elements take."""
    return len(value) if isinstance(value, str | bytes) else _ELEMENT * len(value) if isinstance(value, _HOLDING) else 0


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _estimated(name: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    """At least what a method of a text or a list makes, or a filter of that name; *given* begins with the text or list."""
    value, more = (given[0] if given else None), (*given[1:], *named.values())
    if name in _DIVIDING and isinstance(value, str) and len(value) > _MOST_DIVIDED:
        return MOST_CHARACTERS + 1
    if name == "format":
        return _formatted(str(value), tuple(given[1:]), named)
    if name == "join" and isinstance(value, str) and len(more) == 1 and isinstance(more[0], list | tuple):  # the method
        return sum(map(_size, more[0])) + len(value) * len(more[0])
    if name in _JOINING and isinstance(value, list | tuple):
        return sum(map(_size, value)) + len(value) * max(map(_size, more), default=0)
    if name == "replace" and isinstance(value, str) and len(more) >= 2 and isinstance(more[0], str):
        return len(value) + value.count(more[0]) * _size(more[1])
    if name == "expandtabs" and isinstance(value, str):
        return len(value) + value.count("\t") * max(map(_whole, more), default=8)
    if name == "indent" and isinstance(value, str):
        return len(value) + (value.count("\n") + 1) * max(chain(map(_whole, more), map(_size, more)), default=4)
    if name == "translate" and isinstance(value, str) and more and isinstance(more[0], dict):
        return len(value) * max(map(_size, more[0].values()), default=1)
    if name == "extend":
        return _size(value) + max(map(_size, more), default=0)
    return max(map(_whole, more), default=0) if name in _PADDING else 0


def _formatted(text: str, given: tuple[Any, ...], named: Mapping[str, Any]) -> int:
    """At least the length of *text* with these values in its fields, whose widths may be among them."""
    values = [*given, *named.values(), *(value for each in given if isinstance(each, dict) for value in each.values())]
    fields = "".join(f" {percent}{braces}" for percent, braces in _FIELD.findall(text))
    numbers = [int(digits) if len(digits) < 10 else MOST_CHARACTERS + 1 for digits in _NUMBER.findall(fields)]
    widths = sum(numbers) + (max(map(abs, map(_whole, values)), default=0) if "*" in fields or "{" in fields else 0)
    again = "{" in text or "%(" in text
    sizes = [_size(value) for value in values]
    return len(text) + widths + (max(sizes, default=0) * max(text.count("{"), text.count("%(")) if again else sum(sizes))


def joined(pieces: Iterable[str]) -> str:
    """The pieces of a rendered template.

    Raises:
        TooCostly: They are too many.
    """
    kept, size = [], 0
    for piece in pieces:
        size += len(piece)
        _check(size)
        kept.append(piece)
    return "".join(kept)


@contextmanager
def limited() -> Iterator[None]:
    """Ends what runs inside after AIPERF_TEMPLATE_TIMEOUT of processor time; in the main thread, which alone has signals.

    Raises:
        TooCostly: It did.
    """
    try:
        with processor_time(seconds := render_s()):
            yield
    except OutOfTime:
        raise TooCostly(
            f"it takes more than {seconds:g} s of processor time (AIPERF_TEMPLATE_TIMEOUT allows more)"
        ) from None
