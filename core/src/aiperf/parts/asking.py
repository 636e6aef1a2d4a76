"""Calls of the run's servers over the run's transport, for companions."""

from __future__ import annotations

from aiperf.worker.asking import Asker

__all__ = ["Asker"]
