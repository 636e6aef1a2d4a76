"""Readers of typed events, for streams that may repeat the whole text so far.

The names are in the package ``aiperf-endpoint-chat`` and loaded from there; a package that uses them declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = ["BatchReader", "GrowingText"]

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_endpoint_chat.growing"))

if TYPE_CHECKING:
    from aiperf_endpoint_chat.growing import BatchReader, GrowingText
