"""Prompts sized with the chat template: the tokens around a user's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiperf import Tokenizer
from aiperf.sdk.tokenizer import ChatTemplate

_PROBE = "Which way is north?"
_SPOKEN = ({"role": "user", "content": "Good morning."}, {"role": "assistant", "content": "How can I help?"})


class Wrapped:
    """A tokenizer whose count of a text is that of a user's message with it, less *added*.

    *later*: the message stands behind others, and only its own wrap counts.  Else it is the whole chat, with all that the
    template adds to one message, and with what opens the answer.  added: tokens around a probe.
    """

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate, *, later: bool) -> None:
        """
        Raises:
            BadTokenizer: The template refuses a message of the user.
        """
        self.name, self.size, self.encode, self.decode = tokenizer.name, tokenizer.size, tokenizer.encode, tokenizer.decode
        self._template, self._later = template, later
        self._before: Sequence[Mapping[str, str]] = _SPOKEN if later else ()
        self._left_out = template.count(self._before, asks=False) if later else 0
        self.added = self.whole(_PROBE) - tokenizer.count(_PROBE)

    def count(self, text: str) -> int:
        return self.whole(text) - self.added

    def whole(self, text: str) -> int:
        """Tokens of the text and of what is around it."""
        messages = (*self._before, {"role": "user", "content": text})
        return self._template.count(messages, asks=not self._later) - self._left_out
