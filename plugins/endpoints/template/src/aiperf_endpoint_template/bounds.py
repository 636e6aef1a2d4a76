"""What a template may cost: processor time, and the size of what it makes."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

from aiperf.sdk.environment import render_s
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

MOST_CHARACTERS = 64 << 20
_MOST_BITS = 1 << 20


class TooCostly(Exception):  # noqa: N818  # says what, not that something is wrong
    """A template takes too long, or makes too much."""


class Bounded(SandboxedEnvironment):
    """A sandbox without products and powers that fill the memory."""

    intercepted_binops = frozenset(("*", "**"))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _MOST_BITS:
            raise TooCostly(f"it asks for a number of more than {_MOST_BITS:,} bits")
        if operator == "*" and max(_size(left, right), _size(right, left)) > MOST_CHARACTERS:
            raise TooCostly(f"it makes more than {MOST_CHARACTERS >> 20} MiB")
        return super().call_binop(context, operator, left, right)


def _size(repeated: Any, times: Any) -> int:
    return len(repeated) * times if isinstance(times, int) and hasattr(repeated, "__len__") else 0


def joined(pieces: Iterable[str]) -> str:
    """The pieces of a rendered template.

    Raises:
        TooCostly: They are too many.
    """
    kept, size = [], 0
    for piece in pieces:
        size += len(piece)
        if size > MOST_CHARACTERS:
            raise TooCostly(f"it makes more than {MOST_CHARACTERS >> 20} MiB")
        kept.append(piece)
    return "".join(kept)


@contextmanager
def limited() -> Iterator[None]:
    """Ends what runs inside after AIPERF_TEMPLATE_TIMEOUT of processor time; in the main thread, which alone has signals.

    Raises:
        TooCostly: It did.
    """
    if current_thread() is not main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    seconds = render_s()

    def expired(number: int, frame: FrameType | None) -> None:
        raise TooCostly(f"it takes more than {seconds:g} s of processor time (AIPERF_TEMPLATE_TIMEOUT allows more)")

    before = signal.signal(signal.SIGVTALRM, expired)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
