"""The error of a missing tokenizer that another place may still have."""

from __future__ import annotations

from aiperf import BadTokenizer


class NotThere(BadTokenizer):
    """``transformers`` can't open the tokenizer from the permitted places."""
