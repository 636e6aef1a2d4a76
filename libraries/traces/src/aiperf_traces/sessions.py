"""What a file of recorded agents holds, whatever its format: sessions, their requests and their subagents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct


class RecordedRequest(Struct):
    """A request of an agent.

    at_s: when it was sent, in seconds on the session's clock.  input_tokens: of its whole prompt.
    output_tokens: of its answer.
    blocks: ids of the prompt's blocks, the first block first; equal ids of one session are equal blocks.
    answer_s: from its sending to the end of its answer; None where it isn't known.
    think_s: recorded time between the answer before and this request; None where it isn't known.
    tool_result: what is new in its prompt is the result of a tool; None where the file doesn't say.
    stop: why its answer ended.
    """

    at_s: float
    input_tokens: int
    output_tokens: int
    blocks: Sequence[int] = ()
    model: str = ""
    answer_s: float | None = None
    think_s: float | None = None
    tool_result: bool | None = None
    stop: str = ""

    @property
    def end_s(self) -> float:
        """When its answer had come; a length of the answer that is unknown, negative or not finite is 0."""
        return self.at_s + (self.answer_s if self.answer_s is not None and 0 <= self.answer_s < math.inf else 0.0)


class Subagent(Struct):
    """An agent that another one started, and that starts none itself.

    id: unique in its session.  at_s: when it was started.  duration_ms: until it had ended; None where it isn't known.
    """

    id: str
    at_s: float
    requests: list[RecordedRequest]
    duration_ms: float | None = None
    kind: str = ""
    tool_tokens: int = 0
    system_tokens: int = 0

    @property
    def end_s(self) -> float:
        """When it had ended, by its duration, else by its last answer; a negative or endless duration is 0."""
        if self.duration_ms is not None:
            return self.at_s + (self.duration_ms / 1000.0 if 0 <= self.duration_ms < math.inf else 0.0)
        return max((one.end_s for one in self.requests), default=self.at_s)


class RecordedSession(Struct):
    """A session: the requests of its agent and of those that it started, in the file's order.

    block_tokens: length of a block.  tool_tokens, system_tokens: at the begin of its prompts, definitions of tools and the
    system prompt.
    """

    id: str
    block_tokens: int
    requests: list[RecordedRequest | Subagent]
    tool_tokens: int = 0
    system_tokens: int = 0

    def every(self) -> Iterator[RecordedRequest]:
        """All requests, those of subagents at their place."""
        for entry in self.requests:
            if isinstance(entry, Subagent):
                yield from entry.requests
            else:
                yield entry

    def longest_context(self, most_output: int | None = None) -> int:
        """The largest sum of a prompt and its answer in tokens; the answers of the root cut to *most_output* where given."""
        longest = 0
        for entry in self.requests:
            if isinstance(entry, Subagent):
                lengths = [one.input_tokens + max(1, one.output_tokens) for one in entry.requests]
            else:
                output = entry.output_tokens if most_output is None else min(entry.output_tokens, most_output)
                lengths = [entry.input_tokens + max(1, output)]
            longest = max(longest, *lengths) if lengths else longest
        return longest
