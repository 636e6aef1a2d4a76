"""A recorded session as it is replayed: what each turn says, when it was sent, and which agents start behind it.

A plan has blocks in place of texts, and of each prompt only what the one before lacks, so that those of a large corpus are
small: they are kept on disk, and texts are made of them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence

from aiperf import BadDataset
from msgspec import Struct

from aiperf_traces.agents import FLAT, Agent, Crew, Start, crew_of
from aiperf_traces.blocks import common, packed
from aiperf_traces.layout import Beginning, PromptLayout, PromptPart, prompts
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent
from aiperf_traces.settings import TraceSettings


class MessagePlan(Struct, array_like=True, frozen=True, gc=False):
    """A message: so many blocks, and tokens of no block, made for the turn *of*.  tool: as of :class:`PromptPart`."""

    role: str
    blocks: int
    tail: int = 0
    of: int = 0
    tool: int = -1


class TurnPlan(Struct, array_like=True, gc=False):
    """A request.

    at_s, end_s: recorded start and end.  think_s: recorded think time before it, None where it isn't known.
    input_tokens: of the whole prompt.  output_tokens: recorded, at least 1.  model: number among those of the session.
    keeps: how many messages of the prompt before stay; None is all.  messages: behind them; ids: their blocks.
    blocks, hits: of the prompt its blocks, and how many lead it and stood in an earlier prompt of the session.
    place: in the list of requests of the session, or of its subagent.
    """

    at_s: float
    end_s: float
    think_s: float | None
    input_tokens: int
    output_tokens: int
    model: int
    keeps: int | None
    messages: list[MessagePlan]
    ids: bytes
    blocks: int
    hits: int
    place: int

    def numbers(self) -> Sequence[int]:
        """The ids of the blocks."""
        return array("q", self.ids)


class AgentPlan(Struct, array_like=True):
    """The requests of an agent.  kind, outer: as of :class:`aiperf_traces.agents.Agent`."""

    id: str
    kind: str
    outer: int
    turns: list[TurnPlan]


class SessionPlan(Struct, array_like=True):
    """A session, the root first.  dropped: ids of subagents before which no turn stands.  seams: chains that were put back."""

    id: str
    block_tokens: int
    agents: list[AgentPlan]
    starts: list[Start]
    dropped: list[str]
    seams: int

    @property
    def turns(self) -> int:
        """Requests of all agents."""
        return sum(len(agent.turns) for agent in self.agents)


def plan_of(
    session: RecordedSession, rules: TraceSettings, most_input: int | None = None, most_output: int | None = None
) -> SessionPlan:  # fmt: skip
    """The plan of a session.

    most_input: requests of the root with more tokens in the prompt are left out.  most_output: answers of the root, and of
    workers that were recorded among its requests, are cut to this.

    Raises:
        BadDataset: The session contradicts itself; the message names it, and the agent.
    """
    crew = crew_of(session, rules.workers, most_input)
    known = {name: number for number, name in enumerate(models_of(session))}
    layouts: list[list[PromptLayout]] = []
    for agent in crew.agents:
        origin = _origin(agent, crew, layouts) if rules.fork_parent_messages else None
        try:
            laid = prompts(agent.requests, session.block_tokens, agent.head_tokens, origin, tool_shaped=rules.tool_shaped)
        except BadDataset as error:
            raise BadDataset(f"session {session.id!r}, agent {agent.id!r}: {error.message}") from error
        layouts.append(laid)
    hits = _hits(crew)
    agents = []
    for number, (agent, laid) in enumerate(zip(crew.agents, layouts, strict=True)):
        cut = most_output if agent.kind == FLAT or not number else None
        turns = [
            _turn(request, prompt, before, place, known.get(request.model, 0), hits[number][turn], cut)
            for turn, (request, prompt, before, place) in enumerate(
                zip(agent.requests, laid, [None, *laid], agent.places, strict=False)
            )
        ]
        agents.append(AgentPlan(agent.id, agent.kind, agent.outer, turns))
    return SessionPlan(session.id, session.block_tokens, agents, crew.starts, crew.dropped, crew.seams)


def models_of(session: RecordedSession) -> list[str]:
    """The models of a session: that of the root's first request, then others in the order in which they appear."""
    own = [entry.model for entry in session.requests if not isinstance(entry, Subagent)]
    return list(dict.fromkeys((*own[:1], *(request.model for request in session.every()))))


def _origin(agent: Agent, crew: Crew, layouts: Sequence[Sequence[PromptLayout]]) -> Beginning | None:
    """The prompt that the agent's first one may share its begin with; the agents before it have their layouts."""
    origin = agent.origin
    if origin is None or origin.agent >= len(layouts):
        return None
    return Beginning(layouts[origin.agent][origin.turn].parts, crew.agents[origin.agent].requests[origin.turn].blocks)


def _turn(
    request: RecordedRequest, prompt: PromptLayout, before: PromptLayout | None, place: int, model: int, hits: int,
    most_output: int | None,
) -> TurnPlan:  # fmt: skip
    kept = prompt.kept if prompt.kept < len(prompt.parts) else 0  # nothing is new: all of it is said again
    keeps = None if before is None or kept == len(before.parts) else kept
    new: Sequence[PromptPart] = prompt.parts[kept:]
    start, end = new[0].first, new[-1].first + new[-1].blocks
    output = request.output_tokens if most_output is None else min(request.output_tokens, most_output)
    return TurnPlan(
        request.at_s, request.end_s, request.think_s, request.input_tokens, max(1, output), model, keeps,
        [MessagePlan(part.role, part.blocks, part.tail, part.of, part.tool) for part in new], packed(request.blocks[start:end]),
        len(request.blocks), hits, place,
    )  # fmt: skip


def _hits(crew: Crew) -> list[list[int]]:
    """By agent and turn, how many blocks lead the prompt and stood in an earlier one of the session, by the recorded times."""
    order = sorted(
        (request.at_s, agent.outer if agent.outer >= 0 else agent.places[turn], number if agent.outer >= 0 else 0, turn, number)
        for number, agent in enumerate(crew.agents) for turn, request in enumerate(agent.requests)
    )  # fmt: skip
    seen, found = set[int](), [[0] * len(agent.requests) for agent in crew.agents]
    said: list[bytes] = [b""] * len(crew.agents)
    for _, _, _, turn, number in order:
        blocks = crew.agents[number].requests[turn].blocks
        ids = packed(blocks)
        known = common(said[number], ids)  # they were seen with the prompt before
        said[number] = ids
        hits = known
        while hits < len(blocks) and blocks[hits] in seen:
            hits += 1
        seen.update(blocks[known:])
        found[number][turn] = hits
    return found


def pauses(turns: Sequence[TurnPlan], *, think_only: bool, cap_s: float | None) -> Iterator[float | None]:
    """By turn of an agent, how many ms it waits behind the answer before; None is not at all.

    think_only: waits the recorded think time where that is known, in place of the time between answer and request.
    cap_s: the longest pause in s; None is no bound.  (Spec: datasets §3.11, delay.)
    """
    before: TurnPlan | None = None
    for turn in turns:
        seconds = 0.0 if before is None else turn.at_s - before.end_s
        if before is not None and think_only and turn.think_s is not None:
            seconds = turn.think_s
        before = turn
        if not 0 < seconds < math.inf:
            yield None
        else:
            yield 1000.0 * (seconds if cap_s is None else min(seconds, cap_s)) or None


__all__ = ["AgentPlan", "MessagePlan", "SessionPlan", "TurnPlan", "models_of", "pauses", "plan_of"]
