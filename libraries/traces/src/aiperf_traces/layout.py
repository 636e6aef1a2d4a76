"""The messages of an agent's prompts: which blocks each has, and what is new in a prompt (spec: datasets §3.11, content).

Nothing is made of text here.  A part is a message: blocks of the prompt, and tokens that no block stands for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from aiperf import BadDataset

from aiperf_traces.blocks import common, packed
from aiperf_traces.sessions import RecordedRequest

SYSTEM, USER, ASSISTANT = "system", "user", "assistant"


class PromptPart(NamedTuple):
    """A message of a prompt.

    first, blocks: its blocks in the list of the request.  tail: tokens behind them that are of no block, and *of* the turn that
    they were made for.  tool: the turn whose prompt ends with the result of a tool, where it is that; -1 for other messages.
    """

    role: str
    first: int
    blocks: int
    tail: int = 0
    of: int = 0
    tool: int = -1


class PromptLayout(NamedTuple):
    """A turn's prompt.  parts: all of its messages.  kept: how many of the prompt before stay at its begin, as they are."""

    parts: tuple[PromptPart, ...]
    kept: int


class Beginning(NamedTuple):
    """A prompt that another one may begin with: its messages and its blocks."""

    parts: tuple[PromptPart, ...]
    blocks: Sequence[int]


class _Turn(NamedTuple):
    """What a turn does to the blocks of the prompt before: *stay* of them, *new* follow, and *tail* further tokens.

    again: it has the prompt of the turn before.
    """

    stay: int
    new: int
    tail: int
    again: bool


def prompts(
    requests: Sequence[RecordedRequest], block_tokens: int, head_tokens: int = 0, origin: Beginning | None = None, *,
    tool_shaped: bool = False,
) -> list[PromptLayout]:  # fmt: skip
    """The prompts of an agent's requests.

    head_tokens: of definitions of tools and the system prompt at the begin.  origin: the prompt that the first one may share
    its begin with.  tool_shaped: results of tools are parts of their own kind.

    Raises:
        BadDataset: The first prompt has fewer blocks than its head.
    """
    steps = _steps(requests, block_tokens)
    bounds = _bounds(steps)
    made: list[PromptLayout] = []
    tools = 0 if origin is None else 1 + max((part.tool for part in origin.parts), default=-1)  # their numbers are taken
    for turn, request in enumerate(requests):
        if not turn:
            shared = () if origin is None else _shared(request, steps[0], origin, bounds.ends)
            made.append(PromptLayout(shared or _first(request, steps[0], block_tokens, head_tokens), 0))
            continue
        before, earlier = requests[turn - 1], made[-1].parts
        if steps[turn].again:
            made.append(PromptLayout(earlier, 0))
            continue
        stay = _until(earlier, steps[turn].stay)
        tool = tools + turn if tool_shaped and _is_tool_result(request, before) else -1
        answered = math.ceil(max(0, before.output_tokens) / block_tokens)
        if (bound := bounds.answered.get(turn)) is not None:
            answered = min(answered, bound)
        parts = (*stay, *_new(stay, steps[turn], answered, turn, tool))
        made.append(PromptLayout(parts, _kept(earlier, stay)))
    return made


def _steps(requests: Sequence[RecordedRequest], block_tokens: int) -> list[_Turn]:
    steps: list[_Turn] = []
    covered, said, tokens = 0, b"", 0
    for request in requests:
        ids, whole = packed(request.blocks), request.input_tokens // block_tokens
        blocks = min(len(request.blocks), whole)
        stay = min(common(said, ids), covered, blocks)
        again = ids == said != b"" and request.input_tokens == tokens
        steps.append(_Turn(stay, blocks - stay, request.input_tokens - blocks * block_tokens, again))
        covered, said, tokens = blocks, ids, request.input_tokens
    return steps


class _Bounds(NamedTuple):
    """What later prompts that are only a begin of an earlier one ask of that, so that they end with the user.

    answered: by turn, the most blocks that are an answer.  ends: where they end in the first prompt.
    """

    answered: dict[int, int]
    ends: set[int]


def _bounds(steps: Sequence[_Turn]) -> _Bounds:
    bounds = _Bounds({}, set())
    made_by: list[int] = []
    for turn, step in enumerate(steps):
        if turn and not (step.new or step.tail) and step.stay:
            owner = made_by[step.stay - 1]
            bound = step.stay - 1 - steps[owner].stay
            if not owner:
                bounds.ends.add(step.stay)
            elif bound >= 0:
                bounds.answered[owner] = min(bound, bounds.answered.get(owner, bound))
        del made_by[step.stay :]
        made_by += [turn] * step.new
    return bounds


def _first(request: RecordedRequest, step: _Turn, block_tokens: int, head_tokens: int) -> tuple[PromptPart, ...]:
    head = math.ceil(head_tokens / block_tokens)
    if head > len(request.blocks):
        raise BadDataset(
            f"its first prompt begins with {head_tokens} tokens of tools and system prompt, {head} blocks of {block_tokens},"
            f" and has {len(request.blocks)} hash_ids"
        )
    head = min(head, step.new)
    parts = [PromptPart(SYSTEM, 0, head)] if head else []
    if step.new > head or step.tail or not parts:
        parts.append(PromptPart(USER, head, step.new - head, step.tail))
    return tuple(parts)


def _shared(request: RecordedRequest, step: _Turn, origin: Beginning, ends: Collection[int]) -> tuple[PromptPart, ...]:
    """The messages of *origin*, as far as both begin alike, and one for the rest; () where that is nothing to keep.

    *ends*: where a later prompt ends that adds nothing, and which so must end with the user.
    """
    said = sum(part.blocks for part in origin.parts)
    alike = _whole_calls(origin.parts, min(common(packed(origin.blocks), packed(request.blocks)), said, step.new))
    least = next((part.first + part.blocks for part in origin.parts if part.role != SYSTEM), said)
    if alike <= least or any(part.role != USER and part.first < end <= part.first + part.blocks and end <= alike
                             for part in origin.parts for end in ends):  # fmt: skip
        return ()
    parts = _until(origin.parts, alike)
    if alike < step.new or step.tail:
        parts = (*parts, PromptPart(USER, alike, step.new - alike, step.tail))
    return parts if parts[-1].role == USER else ()


def _whole_calls(parts: Sequence[PromptPart], blocks: int) -> int:
    """*blocks*, less those of a call of a tool whose result is not among them."""
    for part, after in pairwise(parts):
        if after.tool >= 0 and part.first < blocks <= part.first + part.blocks:
            return part.first
    return blocks


def _until(parts: Sequence[PromptPart], blocks: int) -> tuple[PromptPart, ...]:
    """The messages of a prompt, cut behind so many blocks."""
    kept: list[PromptPart] = []
    for part in parts:
        count = min(part.blocks, blocks - part.first)
        if count <= 0:
            break
        kept.append(part if count == part.blocks and not part.tail else part._replace(blocks=count, tail=0, of=0))
    return tuple(kept)


def _new(stay: Sequence[PromptPart], step: _Turn, answered: int, turn: int, tool: int) -> list[PromptPart]:
    """The messages behind those that stay: the answer of the turn before, and what the user says."""
    if not any(part.role == USER for part in stay):  # the context is lost, and begins with the user
        answered = 0
    answered = min(answered, step.new)
    if answered == step.new and not step.tail:
        answered = max(0, answered - 1)
    new = [PromptPart(ASSISTANT, step.stay, answered)] if answered else []
    if step.new > answered or step.tail:
        mark = tool if answered else -1
        new.append(PromptPart(USER, step.stay + answered, step.new - answered, step.tail, turn if step.tail else 0, mark))
    return new


def _kept(before: Sequence[PromptPart], stay: Sequence[PromptPart]) -> int:
    """How many messages stay uncut.  One of the user must be among them: a prompt whose first one is another is a new one."""
    kept = sum(part == earlier for part, earlier in zip(stay, before, strict=False))
    return kept if any(part.role == USER for part in stay[:kept]) else 0


def _is_tool_result(request: RecordedRequest, before: RecordedRequest) -> bool:
    return before.stop == "tool_use" if request.tool_result is None else request.tool_result


__all__ = ["ASSISTANT", "SYSTEM", "USER", "Beginning", "PromptLayout", "PromptPart", "prompts"]
