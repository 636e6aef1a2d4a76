"""What is installed."""

from __future__ import annotations

from aiperf.registry.registry import Registry, strongest

__all__ = ["Registry", "strongest"]
