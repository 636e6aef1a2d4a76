"""Settings in environment variables, read as the kernel reads its own."""

from aiperf.environment import number

__all__ = ["number"]
