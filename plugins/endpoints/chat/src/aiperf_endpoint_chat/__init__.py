"""Chat completions."""

from __future__ import annotations

from aiperf_endpoint_chat.dialect import Chat

__all__ = ["Chat"]
