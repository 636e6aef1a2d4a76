"""What the symbolic engine may use for two texts."""

LIMIT_S = 5.0
"""Processor time, in s."""
LIMIT_BYTES = 2 << 30
"""Memory of its process."""
