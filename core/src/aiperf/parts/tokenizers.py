"""Opening tokenizers by name, and counting the tokens of chats."""

from __future__ import annotations

from aiperf.prepare.tokenizers import ChatCounter, open_tokenizer

__all__ = ["ChatCounter", "open_tokenizer"]
