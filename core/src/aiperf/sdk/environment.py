"""Settings in environment variables, read as the kernel reads its own."""

from aiperf.environment import experimental, ip_version, number, progress_s, socket_options

__all__ = ["experimental", "ip_version", "number", "progress_s", "socket_options"]
