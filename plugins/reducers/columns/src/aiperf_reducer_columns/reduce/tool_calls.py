"""Tool calls of graded answers: an answer that has any is read once more by a reader of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from aiperf.parts.segments import Read
from aiperf.sdk.endpoint import Reader
from aiperf.sdk.framing import Framing
from aiperf.sdk.model import ToolCall
from aiperf.sdk.sse import Messages

from aiperf_reducer_columns.reduce.answer import TOOL, Answer

_OTHERS = bytes(kind for kind in range(256) if not kind & TOOL)


def has_tool_calls(answer: Answer) -> bool:
    """Whether any piece of the answer is of a tool call."""
    return bool(answer.kinds.translate(None, _OTHERS))


def tool_calls(
    reads: Sequence[Read], new_reader: Callable[[], Reader], *, streamed: bool, framing: type[Framing]
) -> tuple[ToolCall, ...]:
    """The tool calls of the answer in these reads.

    Raises:
        Exception: Anything that the endpoint raises, or TypeError where it gives something else.
    """
    messages, reader = reads[0][2] < 0, new_reader()
    if streamed or (messages and len(reads) > 1):
        splitter = (Messages if messages else framing)()
        events = [*chain.from_iterable(splitter.feed(read[3]) for read in reads), *splitter.close()]
        reader.feed([event.data for event in events], [event.name for event in events])
    else:
        reader.feed([b"".join([read[3] for read in reads])], [None])
    reader.close()
    calls = tuple(reader.tool_calls())
    if wrong := [call for call in calls if not isinstance(call, ToolCall)]:
        raise TypeError(f"tool_calls gave {type(wrong[0]).__name__}, not ToolCall")
    return calls


__all__ = ["has_tool_calls", "tool_calls"]
