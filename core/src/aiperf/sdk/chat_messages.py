"""Messages as OpenAI's chat API writes them; several dialects send them.

The names are in the package ``aiperf-endpoint-chat`` and loaded from there; a package that uses them declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = ["audio_data", "chat_messages", "one_system"]

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_endpoint_chat.messages"))

if TYPE_CHECKING:
    from aiperf_endpoint_chat.messages import audio_data, chat_messages, one_system
