"""What counts as input tokens of a JSON body, whatever API it is of: ``prompt_of`` and ``chat_of`` in a call.

The names are in the package ``aiperf-endpoint-chat`` and loaded from there; a package that uses them declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = ["chat_of", "prompt_of"]

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_endpoint_chat.prompts"))

if TYPE_CHECKING:
    from aiperf_endpoint_chat.prompts import chat_of, prompt_of
