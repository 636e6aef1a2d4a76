"""Requests of conversations: encoded by the endpoint, or made of the bytes of one that it has encoded."""

from __future__ import annotations

from msgspec.structs import replace

from aiperf.errors import ConfigError
from aiperf.prepare.conversations import check
from aiperf.prepare.prompt_ids import PromptIds
from aiperf.prepare.prompt_tokens import PromptTokens
from aiperf.prepare.templates import BodyTemplate, Templates
from aiperf.registry.third_party import blamed, load
from aiperf.sdk.endpoint import Endpoint, completed, encoded
from aiperf.sdk.model import Conversation, HttpRequest
from aiperf.sdk.plan import Plan
from aiperf.sdk.tokenizer import Tokenizer


class Encoder:
    """Encodes each turn on its own.  *tokenizer*: None where nothing is tokenized.  tokens: of the prompts."""

    def __init__(self, plan: Plan, endpoint: Endpoint, tokenizer: Tokenizer | None) -> None:
        self._plan, self._endpoint = plan, endpoint
        self.tokens = PromptTokens(plan, endpoint, tokenizer)
        takes_ids = endpoint.capabilities.takes_ids
        self._templates = Templates(plan.plugins.endpoint) if endpoint.splices_text and not takes_ids else None
        self._ids = PromptIds(plan, endpoint, tokenizer) if takes_ids else None
        self._latest: BodyTemplate | None = None

    def completed(self, conversation: Conversation) -> Conversation:
        """The conversation with what requests need of its tokens.

        Raises:
            BadDataset: The chat template refuses its messages.
        """
        return conversation if self._ids is None else self._ids.filled(conversation)

    def requests(self, conversation: Conversation) -> list[list[HttpRequest]]:
        """The requests by turn, and for each turn by model.

        Raises:
            BadDataset: The endpoint doesn't accept the conversation.
            PluginError: The endpoint failed, or broke a promise.
        """
        self._latest = None
        if self._templates is None:
            return self._encoded(conversation)
        kind, template = self._templates.of(conversation)
        if kind is None:
            return self._encoded(conversation)
        if template is None:
            requests = self._encoded(conversation)
            if requests[0][0].parts:  # their bodies are divided by more than the text
                self._templates = None
                return requests
            other = self._encoded(self._templates.other(conversation))
            self._latest = self._templates.learn(kind, conversation.turns[0].text, requests[0], other[0])
            return requests
        self._latest = template
        try:
            filled = template.filled(conversation.turns[0].text)
        except UnicodeError:  # the endpoint has the word
            return self._encoded(conversation)
        if template.uses & (template.uses - 1) == 0:
            self._templates.check(filled, self._encoded(conversation)[0])
        return [filled]

    def stored(self, conversation: Conversation, row: tuple[int, ...]) -> None:
        """Note the row in the store of the conversation that was encoded last: others of its kind differ from it in tokens."""
        if self._latest is not None and (not self.tokens.counted or self.tokens.known(conversation, 0) is not None):
            self._latest.row = row

    def repeated(self, conversation: Conversation) -> tuple[BodyTemplate, int | None] | None:
        """The template of a conversation of a kind that was stored before, and its tokens; None for other conversations."""
        template = None if self._templates is None else self._templates.of(conversation)[1]
        # At powers of two the endpoint encodes it as well, as a check of its promise.
        if template is None or not template.row or (template.uses + 1) & template.uses == 0:
            return None
        if not self.tokens.counted:
            return template, None
        tokens = conversation.turns[0].input_tokens
        return None if tokens is None else (template, tokens)

    def _check_parts(self) -> None:
        """Refuse requests of several messages where the transport can't send them."""
        who, transport = self._plan.plugins.endpoint.name, self._plan.plugins.transport
        if not getattr(load(transport), "sends_parts", False):
            raise ConfigError(
                f"the endpoint type {who!r} sends several messages in a request, and the transport {transport.name!r} can't",
                "name one that can with --transport",
            )

    def _encoded(self, conversation: Conversation) -> list[list[HttpRequest]]:
        check(conversation, self._endpoint.capabilities, self._plan.plugins.endpoint.name)
        target, requests, later = self._plan.target, [], conversation
        if len(conversation.turns) > 1 and not conversation.alone:
            # Workers add the messages before a later turn, because live answers exist only in the run.
            later = replace(conversation, system=None, context=None, opening=(), streams=())
        tools, begins = None, {stream.first for stream in conversation.streams}
        for index, authored in enumerate(conversation.turns):
            shown, by_model = conversation, []  # the first turn is the root's
            fresh = conversation.alone or index in begins or authored.tools is not None
            tools = authored.tools if fresh else tools
            if index:  # by itself: a look back for the tools would cost the square of the turns
                shown = replace(later, turns=(replace(authored, tools=tools),))
            for model in (authored.model,) if authored.model else target.models:
                turn = completed(shown, 0, target, model)
                with blamed(self._plan.plugins.endpoint, f"can't encode turn {index} of conversation {conversation.id!r}"):
                    by_model.append(encoded(self._endpoint, turn, target.given_path))
                if by_model[-1].parts:
                    self._check_parts()
            requests.append(by_model * (len(target.models) // len(by_model)))
        return requests
