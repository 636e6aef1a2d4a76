"""What a data set asks of answers: several of them to a request, and their length."""

from __future__ import annotations

import logging

from aiperf.errors import ConfigError
from aiperf.registry.third_party import blamed
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.grader import Grader
from aiperf.sdk.model import LENGTH_FIELDS, Conversation, asks_several
from aiperf.sdk.plan import Plan

log = logging.getLogger(__name__)

_SHOWN = 60
"""Characters of an expected answer that a message has."""


class AskedAnswers:
    """Notes what conversations ask of their answers, and warns of what the report or the server makes of it.

    several: whether a request asks for several answers.  grader: of the run; it takes the first expected answer, or is refused.
    """

    def __init__(self, plan: Plan, endpoint: Endpoint, grader: Grader | None = None) -> None:
        self._unchecked, self._plugins = grader, plan.plugins
        self._endpoint, self._produces_tokens = endpoint, endpoint.capabilities.produces_tokens
        self._kind, self._extra = plan.plugins.endpoint.name, plan.target.extra
        self.several = self._produces_tokens and asks_several(self._extra)
        self._unenforced_length = self._useless_length = self._warned = False

    def note(self, conversation: Conversation) -> None:
        """
        Raises:
            ConfigError: The grader can't compare with what is expected.
        """
        if self._unchecked is not None:
            self._check_grader(self._unchecked, conversation)
        self._unenforced_length = self._unenforced_length or self._has_unenforced_length(conversation)
        self._useless_length = self._useless_length or self._has_useless_length(conversation)
        self.several = self.several or (self._produces_tokens and self._asks_several(conversation))

    def _check_grader(self, grader: Grader, conversation: Conversation) -> None:
        expected = next((turn.expected for turn in conversation.turns if turn.expected is not None), None)
        if expected is None:
            return
        self._unchecked, ref = None, self._plugins.grader
        assert ref is not None
        with blamed(ref, "failed"):
            reason = grader.unfit(expected)
        if reason is not None:
            shown = expected if len(expected) <= _SHOWN else expected[:_SHOWN] + "…"
            raise ConfigError(
                f"the grader {ref.name} can't compare with the expected answer {shown!r} of {conversation.id}: {reason}",
                "choose another --accuracy-grader, or drop it where the data set has its own",
            )

    def _asks_several(self, conversation: Conversation) -> bool:
        for turn in conversation.turns:
            texts = len(turn.texts) > 1 and self._endpoint.answers_each_text and turn.payload is None
            if texts or ((turn.extra or turn.payload) and (asks_several(turn.extra) or asks_several(turn.payload))):
                return True
            if turn.settings and asks_several({**turn.settings, **self._extra}):
                return True
        return False

    def _has_unenforced_length(self, conversation: Conversation) -> bool:
        """Whether a turn asks for an output length without a field that makes the server keep to it.

        Of an answer that is graded the length is its budget.
        """
        if not self._produces_tokens or LENGTH_FIELDS & self._extra.keys():
            return False
        return any(
            turn.max_tokens is not None and turn.payload is None and turn.expected is None
            and not LENGTH_FIELDS & (turn.extra.keys() | turn.settings.keys())
            for turn in conversation.turns
        )

    def _has_useless_length(self, conversation: Conversation) -> bool:
        """Whether a turn asks for an output length, and the endpoint makes no tokens."""
        return not self._produces_tokens and any(turn.max_tokens is not None for turn in conversation.turns)

    def warn(self) -> None:
        """Warn once, ahead of the load where the first entries show it."""
        if self._warned:
            return
        self._warned = self._unenforced_length or self._useless_length or self.several
        if self.several:
            log.warning(
                "a request asks for several answers (n, or several prompts): the output length sums them, the first token is"
                " the first of any, and inter-token latency and throughput per user are left out"
            )
        if self._useless_length:
            log.warning("the endpoint type %r makes no tokens: output lengths are not sent", self._kind)
        if self._unenforced_length:
            log.warning(
                "answers may be shorter than the length asked for, because a model may stop early; where the server supports"
                " it, --extra-inputs ignore_eos:true prevents that"
            )
