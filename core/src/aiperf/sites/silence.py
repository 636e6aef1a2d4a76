"""How long a run and its sites wait for each other."""

from __future__ import annotations

SILENCE_S = 30.0
"""Each takes the other for gone after so long without a word."""
