"""Settings in environment variables, read as the kernel reads its own."""

from aiperf.environment import (
    cache_directory,
    experimental,
    flag,
    ip_version,
    most_expansion,
    most_line_bytes,
    number,
    progress_s,
    render_s,
    secret_texts,
    socket_options,
    trust_env,
)  # fmt: skip

__all__ = [
    "cache_directory", "experimental", "flag", "ip_version", "most_expansion", "most_line_bytes", "number", "progress_s",
    "render_s", "secret_texts", "socket_options", "trust_env",
]  # fmt: skip
