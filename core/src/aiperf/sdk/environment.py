"""Settings in environment variables, read as the kernel reads its own."""

from aiperf.environment import experimental, number, socket_options

__all__ = ["experimental", "number", "socket_options"]
