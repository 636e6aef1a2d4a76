"""Token ids of prompts, for endpoints that send them in place of texts (``Capabilities.takes_ids``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from aiperf.errors import BadDataset, BadTokenizer, ConfigError
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.model import Conversation, Message, Turn
from aiperf.sdk.plan import Plan
from aiperf.sdk.tokenizer import Tokenizer, end_id, template_ids


class PromptIds:
    """Gives turns their ids, by the run's tokenizer: of the texts of their messages, joined with spaces, or of the model's chat
    template where ``--apply-chat-template`` or the endpoint asks for it.

    Raises:
        ConfigError: There is no tokenizer.
        BadTokenizer: It has no chat template that gives ids.
    """

    def __init__(self, plan: Plan, endpoint: Endpoint, tokenizer: Tokenizer | None) -> None:
        if tokenizer is None:
            raise ConfigError(f"the endpoint type {plan.plugins.endpoint.name!r} sends token ids", "name a --tokenizer")
        self._tokenizer, self._end_id = tokenizer, end_id(tokenizer)
        templated = plan.data.chat_template or endpoint.templates_ids
        self._of_chat = template_ids(tokenizer) if templated else None

    def filled(self, conversation: Conversation) -> Conversation:
        """The conversation with ids in each turn that has none of its own and no payload.

        Raises:
            BadDataset: The chat template refuses the messages.
        """
        turns = [turn if turn.payload is not None else self._with_ids(conversation, turn) for turn in conversation.turns]
        return replace(conversation, turns=tuple(turns))

    def _with_ids(self, conversation: Conversation, turn: Turn) -> Turn:
        return replace(turn, ids=turn.ids or self._of(conversation, turn), end_id=self._end_id)

    def _of(self, conversation: Conversation, turn: Turn) -> tuple[int, ...]:
        messages = (*conversation.prelude, *turn.before, *turn.own)
        if self._of_chat is None:
            return tuple(self._tokenizer.encode(" ".join(text for message in messages for text in message.words)))
        try:
            return tuple(self._of_chat(_chat(messages)))
        except BadTokenizer as error:
            raise BadDataset(f"conversation {conversation.id!r}: {error.message}", *error.hints) from error


def _chat(messages: Sequence[Message]) -> list[Mapping[str, Any]]:
    return [message.item or {"role": message.role, "content": message.text} for message in messages]
