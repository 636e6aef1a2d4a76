"""Not finding a tokenizer, where another place may still be tried."""

from __future__ import annotations

from aiperf import BadTokenizer


class NotThere(BadTokenizer):
    """What ``transformers`` was asked for is not where it may look."""
