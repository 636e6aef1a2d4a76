"""Chat completions, and what dialects share that resemble them: messages, prompts, readers, what servers say of their decoding.

The dialect itself is loaded when it is used: packages that import the shared modules alone don't pay for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiperf_endpoint_chat.dialect import Chat

__all__ = ["Chat"]


def __getattr__(name: str) -> Any:
    if name != "Chat":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from aiperf_endpoint_chat.dialect import Chat

    return Chat
