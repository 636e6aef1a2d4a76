"""How long answers become."""

from __future__ import annotations

import math
import random

from aiperf_command_simulate.answer import Length
from aiperf_command_simulate.dialect import Ask, AskError
from aiperf_command_simulate.faults import Faults
from aiperf_command_simulate.scenario import ServerScenario


class Lengths:
    """Lengths of choices, from what was asked, the faults of the request, and the scenario's chance."""

    def __init__(self, scenario: ServerScenario) -> None:
        self._scenario = scenario
        self._dice = random.Random(f"lengths {scenario.seed}")

    def of(self, ask: Ask, faults: Faults, prompt_tokens: int, *, reasons: bool, pieces: int = 0) -> Length:
        """The length of a choice.  *reasons*: its dialect can show reasoning.  *pieces*: of a known answer, 0 for none.

        Raises:
            AskError: Prompt and answer are longer than the context.
        """
        scenario = self._scenario
        room = scenario.max_context - prompt_tokens
        asked = ask.max_tokens or 0
        wanted = 0 if ask.prefill_only else max(asked, ask.min_tokens, 1)
        if wanted > room:
            raise _too_long(prompt_tokens, max(asked, ask.min_tokens), scenario.max_context, wanted - room)
        if ask.prefill_only:  # the step that computes the prompt ends it
            return Length(1, 0, "stop")
        thought = (scenario.reasoning_tokens if faults.reasoning is None else faults.reasoning) if reasons else 0
        if pieces:
            tokens = min(faults.tokens or ask.max_tokens or room, room)
            whole = thought + pieces
            return Length(min(tokens, whole), min(thought, tokens), "length" if tokens < whole else "stop")
        tokens = faults.tokens or ask.max_tokens or max(scenario.tokens, ask.min_tokens)
        if scenario.stop_tokens is not None and faults.tokens is None and not ask.ignore_eos:
            tokens = min(tokens, max(_geometric(scenario.stop_tokens, self._dice), ask.min_tokens))
        tokens = min(tokens, room)
        return Length(tokens, min(thought, tokens), "length" if tokens in (ask.max_tokens, room) else "stop")


def _too_long(prompt_tokens: int, asked: int, limit: int, over: int) -> AskError:
    """The refusal in vLLM's words, which clients look for.  *asked*: output tokens, 0 where the request sets none."""
    said = f"This model's maximum context length is {limit} tokens. However, "
    if not asked:
        said += f"your request has {prompt_tokens} input tokens. Please reduce the length of the input messages."
        return AskError(said, over=over)
    said += f"you requested {asked} output tokens and your prompt contains at least {prompt_tokens} input tokens, for a total"
    said += f" of at least {prompt_tokens + asked} tokens. Please reduce the length of the input prompt or the number of"
    return AskError(f"{said} requested output tokens.", over=over)


def _geometric(mean: float, dice: random.Random) -> int:
    """At least 1, *mean* on average."""
    if mean <= 1:
        return 1
    return 1 + int(math.log(1 - dice.random()) / math.log(1 - 1 / mean))
