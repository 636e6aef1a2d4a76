"""How long the prompts of a data set are: counted, or as the data set says."""

from __future__ import annotations

from msgspec.structs import replace

from aiperf.errors import BadDataset, BadTokenizer
from aiperf.prepare.tokenizers import ChatCounter
from aiperf.registry.third_party import blamed
from aiperf.sdk.endpoint import Endpoint, prompt
from aiperf.sdk.model import Conversation, HttpRequest, speaks
from aiperf.sdk.plan import Plan
from aiperf.sdk.tokenizer import Tokenizer, adds_up


class PromptTokens:
    """Counts the tokens of prompts.  *tokenizer*: None where nothing is tokenized.

    counted: whether they are counted here; else the server counts them.
    """

    def __init__(self, plan: Plan, endpoint: Endpoint, tokenizer: Tokenizer | None) -> None:
        self._plan, self._endpoint = plan, endpoint
        counts = endpoint.capabilities.tokenizes_input and not plan.target.use_server_token_count
        self._tokenizer = tokenizer if counts else None
        self.counted = self._tokenizer is not None
        chats = plan.data.chat_template and not endpoint.capabilities.takes_ids  # ids are counted as they are
        self._chats = ChatCounter(endpoint, tokenizer) if chats and counts and tokenizer is not None else None
        self._speaks = speaks(plan.target.extra)
        self._plain_prompts = endpoint.plain_prompts or type(endpoint).prompt_of is Endpoint.prompt_of

    @property
    def add_up(self) -> bool:
        """Whether the tokenizer promises that a text has the tokens of its parts."""
        return self._tokenizer is not None and adds_up(self._tokenizer)

    def known(self, conversation: Conversation, index: int) -> int | None:
        """What the data set says, where the texts of the turn are all of its prompt; None where the request must be counted."""
        turn = conversation.turns[index]
        by_itself = self._plain_prompts and turn.tools is None and turn.items is None and len(turn.texts) <= 1
        by_itself = by_itself and self._chats is None and not (self._speaks or speaks(turn.extra))
        return turn.input_tokens if by_itself and not (conversation.prelude or turn.before) else None

    def of(self, conversation: Conversation, index: int, request: HttpRequest) -> int | None:
        """Tokens of what counts as the prompt of the turn's request (spec: metrics §5).

        None where the server counts, and behind an answer, which only the run knows.

        Raises:
            BadDataset: The chat template refuses the messages.
        """
        if self._tokenizer is None or (index > 0 and not conversation.alone):
            return None
        if self._chats is not None:
            try:
                return self._chats.tokens(request.body)
            except BadTokenizer as error:
                raise BadDataset(f"turn {index} of conversation {conversation.id!r}: {error.message}", *error.hints) from error
        known = self.known(conversation, index)
        if known is not None:
            return known
        turn = conversation.turns[index]
        turn = replace(turn, history=(*conversation.prelude, *turn.before), extra={**self._plan.target.extra, **turn.extra})
        with blamed(self._plan.plugins.endpoint, f"can't read the prompt of turn {index} of conversation {conversation.id!r}"):
            counted = prompt(self._endpoint, turn, request)
        return self._tokenizer.count(" ".join(counted.texts)) + len(counted.ids)
