"""Settings in environment variables, read as the kernel reads its own."""

from aiperf.environment import number, socket_options

__all__ = ["number", "socket_options"]
