"""Hooks at run time."""

from __future__ import annotations

from aiperf.registry.hooks import REQUEST_PREPARED, Hooks

__all__ = ["REQUEST_PREPARED", "Hooks"]
