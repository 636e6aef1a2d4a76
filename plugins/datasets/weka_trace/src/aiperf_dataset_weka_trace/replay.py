"""Plans of recorded sessions as conversations: trees of streams, with texts."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import BadDataset, Conversation, DatasetContext, Message, Turn
from aiperf.sdk.model import Answers
from aiperf.sdk.trees import Branch, Stream, TreeBuilder, TreeOutline
from aiperf_dataset_synthetic.text import Writer
from aiperf_traces.agents import SUBAGENT
from aiperf_traces.layout import ASSISTANT, USER
from aiperf_traces.options import AgentTraceOptions
from aiperf_traces.plans import AgentPlan, MessagePlan, SessionPlan, TurnPlan, pauses

from aiperf_dataset_weka_trace.texts import BlockTexts

CORPUS = "coding"
"""What prompts of recorded agents are made of."""
_TOOL = {"name": "recorded_tool", "arguments": "{}"}


class Replay:
    """Makes conversations of plans.  source: the file, for messages.

    Raises:
        BadDataset: The endpoint has no use for a tokenizer.
    """

    def __init__(self, options: AgentTraceOptions, context: DatasetContext, source: str) -> None:
        if context.tokenizer is None:
            raise BadDataset(
                f"the prompts of {source} are measured in tokens, and this endpoint type has no use for a tokenizer",
                "choose an endpoint type whose input is text, such as chat",
            )
        self._options, self._context = options, context
        self._ignores_times = options.ignore_delays and not context.replay
        self.texts = BlockTexts(Writer(context.tokenizer, CORPUS, context.seed), context.tokenizer, context.seed)

    def conversation(self, plan: SessionPlan) -> Conversation:
        """The conversation of a plan with turns."""
        turns = tuple(turn for agent in plan.agents for turn in self._turns(plan, agent))
        return Conversation(plan.id, turns, answers=Answers.AUTHORED, streams=self._streams(plan))

    def outline(self, plan: SessionPlan) -> TreeOutline:
        """What is known of the conversation without its texts."""
        delays_ms = [delay_ms for agent in plan.agents for delay_ms in self._delays_ms(agent)]
        turns = [turn for agent in plan.agents for turn in agent.turns]
        return TreeOutline(plan.id, self._streams(plan), delays_ms, [self._recorded_ms(turn) for turn in turns])

    def _streams(self, plan: SessionPlan) -> tuple[Stream, ...]:
        if len(plan.agents) == 1:
            return ()
        builder = TreeBuilder()
        scopes: dict[int, int] = {}  # a subagent and its workers keep their order apart from the root and its workers
        for number, agent in enumerate(plan.agents):
            scope = scopes.setdefault(agent.outer, number) if agent.kind == SUBAGENT else 0
            builder.stream(agent.id, len(agent.turns), scope)
        for start in plan.starts:
            offsets: list[float] = []
            if not self._ignores_times:
                firsts = (plan.agents[number].turns[0].at_s for number in start.agents)
                offsets = [max(0.0, 1000.0 * (at_s - start.at_s)) for at_s in firsts]
            offsets_ms = tuple(offsets) if any(offsets) else ()
            at_ms = None if self._ignores_times else 1000.0 * start.at_s
            builder.branch(0, Branch(tuple(start.agents), start.after, start.joins, offsets_ms=offsets_ms, start_ms=at_ms))
        return builder.streams()

    def _delays_ms(self, agent: AgentPlan) -> list[float | None]:
        if self._ignores_times:
            return [None] * len(agent.turns)
        options = self._options
        return [*pauses(agent.turns, think_only=options.think_time_only, cap_s=options.delay_cap_s)]

    def _recorded_ms(self, turn: TurnPlan) -> tuple[float, float] | None:
        return None if self._ignores_times else (1000.0 * turn.at_s, 1000.0 * turn.end_s)

    def _turns(self, plan: SessionPlan, agent: AgentPlan) -> list[Turn]:
        waits = self._delays_ms(agent)
        return [self._turn(plan, agent, turn, delay_ms) for turn, delay_ms in zip(agent.turns, waits, strict=True)]

    def _turn(self, plan: SessionPlan, agent: AgentPlan, turn: TurnPlan, delay_ms: float | None) -> Turn:
        messages = self._messages(plan, agent, turn)
        last = messages[-1]
        plain = last.role == USER and last.item is None
        models, ignores = self._context.models, self._ignores_times
        whole = plain and len(messages) == 1 and turn is agent.turns[0]
        source: dict[str, str | int] = {"source_trace_id": plan.id, "source_kind": agent.kind}
        if agent.kind == SUBAGENT:
            source |= {"source_outer_idx": agent.outer, "source_inner_idx": turn.place}
        else:
            source["source_outer_idx"] = turn.place
        return Turn(
            texts=last.texts if plain else (), before=messages[:-1] if plain else (), items=None if plain else messages,
            model=models[turn.model % len(models)] if len(models) > 1 else "", max_tokens=turn.output_tokens,
            delay_ms=delay_ms, timestamp_ms=None if ignores else 1000.0 * turn.at_s,
            input_tokens=turn.input_tokens if whole else None, reset=turn.keeps == 0, keeps=turn.keeps or None,
            prefix_blocks=turn.blocks, prefix_hits=turn.hits, source=source,
            recorded_ms=self._recorded_ms(turn),
        )  # fmt: skip

    def _messages(self, plan: SessionPlan, agent: AgentPlan, turn: TurnPlan) -> tuple[Message, ...]:
        ids, place, made = turn.numbers(), 0, list[Message]()
        for message in turn.messages:
            tail_of = f"{agent.id}:{message.of}"
            text = self.texts.text(plan.id, ids[place : place + message.blocks], plan.block_tokens, message.tail, tail_of)
            place += message.blocks
            made.append(Message(message.role, (text,)))
        return _with_tools(made, turn.messages) if any(message.tool >= 0 for message in turn.messages) else tuple(made)


def _with_tools(messages: Sequence[Message], plans: Sequence[MessagePlan]) -> tuple[Message, ...]:
    """The messages with results of tools as the API has them, and their calls in the answers before."""
    made: list[Message] = []
    for message, plan in zip(messages, plans, strict=True):
        if plan.tool < 0:
            made.append(message)
            continue
        call = f"call_turn_{plan.tool}"
        if made and made[-1].role == ASSISTANT:
            calls = [{"id": call, "type": "function", "function": _TOOL}]
            made[-1] = Message.of({"role": ASSISTANT, "content": made[-1].text, "tool_calls": calls})
        made.append(Message.of({"role": "tool", "tool_call_id": call, "content": message.text}))
    return tuple(made)


__all__ = ["CORPUS", "Replay"]
