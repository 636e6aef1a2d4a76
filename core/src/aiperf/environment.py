"""Settings from the environment, read when first needed.  A command-line flag wins over its variable."""

from __future__ import annotations

import math
import os
import sys

from aiperf.errors import ConfigError

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def _flag(name: str, default: bool) -> bool:
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise ConfigError(f"{name} is {value!r}; it must be true or false")


def ssl_verify() -> bool:
    """``AIPERF_HTTP_SSL_VERIFY``, true: check certificates."""
    return _flag("AIPERF_HTTP_SSL_VERIFY", True)


def trust_env() -> bool:
    """``AIPERF_HTTP_TRUST_ENV``, false: honour proxy variables (transports that can)."""
    return _flag("AIPERF_HTTP_TRUST_ENV", False)


def ip_version() -> str:
    """``AIPERF_HTTP_IP_VERSION``, auto: address family, ``4``, ``6`` or ``auto``."""
    value = os.environ.get("AIPERF_HTTP_IP_VERSION", "").strip().lower() or "auto"
    if value not in ("4", "6", "auto"):
        raise ConfigError(f"AIPERF_HTTP_IP_VERSION is {value!r}; it must be 4, 6 or auto")
    return value


def socket_options() -> list[tuple[int, int, int]]:
    """What ``setsockopt`` is told of each connection: level, option and value.

    A peer that is gone without a word is noticed: ``AIPERF_HTTP_TCP_KEEPIDLE`` 60 s, ``_KEEPINTVL`` 30 s, ``_KEEPCNT`` 1,
    ``AIPERF_HTTP_TCP_USER_TIMEOUT`` 30,000 ms.  ``AIPERF_HTTP_SO_RCVBUF`` and ``_SO_SNDBUF``, bytes: the system's, which
    grow as needed.
    """
    import socket

    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for suffix, low, high, default in (
        ("TCP_KEEPIDLE", 1, 32_767, 60), ("TCP_KEEPINTVL", 1, 32_767, 30), ("TCP_KEEPCNT", 1, 127, 1),
        ("TCP_USER_TIMEOUT", 1, 86_400_000, 30_000),
    ):  # fmt: skip
        value = whole(f"AIPERF_HTTP_{suffix}", low, high) or default
        if hasattr(socket, suffix):  # not every system has each
            options.append((socket.IPPROTO_TCP, int(vars(socket)[suffix]), value))
    for suffix, option in (("SO_RCVBUF", socket.SO_RCVBUF), ("SO_SNDBUF", socket.SO_SNDBUF)):
        size = whole(f"AIPERF_HTTP_{suffix}", 1024, 1 << 30)
        if size is not None:
            options.append((socket.SOL_SOCKET, option, size))
    return options


def uvloop_wanted() -> bool:
    """``AIPERF_SERVICE_DISABLE_UVLOOP``, false; uvloop serves where the platform has it."""
    return not _flag("AIPERF_SERVICE_DISABLE_UVLOOP", False) and sys.platform != "win32"


def affinity_headers() -> list[str]:
    """Further headers that carry the session's id, for routers with session affinity."""
    known = (
        ("AIPERF_HTTP_X_SESSION_AFFINITY_FROM_CORRELATION_ID", "X-Session-Affinity", True),
        ("AIPERF_HTTP_X_SESSION_ID_FROM_CORRELATION_ID", "X-Session-ID", False),
        ("AIPERF_HTTP_X_SMG_ROUTING_KEY_FROM_CORRELATION_ID", "X-SMG-Routing-Key", False),
        ("AIPERF_HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID", "X-Dynamo-Session-ID", False),
    )
    return [header for variable, header, default in known if _flag(variable, default)]


def console_export_width() -> int:
    """``AIPERF_UI_CONSOLE_EXPORT_WIDTH``, 140: columns of ``profile_export_console.txt``."""
    width = whole("AIPERF_UI_CONSOLE_EXPORT_WIDTH", 40, 1000)
    return 140 if width is None else width


def worker_cpu_share() -> float:
    """``AIPERF_WORKER_CPU_UTILIZATION_FACTOR``, 0.75: share of the CPUs that workers may take."""
    return number("AIPERF_WORKER_CPU_UTILIZATION_FACTOR", 0.05, 1.0, 0.75)


def workers_cap() -> int:
    """``AIPERF_WORKER_MAX_WORKERS_CAP``, 32: most workers where ``--workers-max`` doesn't say."""
    return whole("AIPERF_WORKER_MAX_WORKERS_CAP", 1, 1024) or 32


def workers_per_reducer() -> int:
    """``AIPERF_RECORD_PROCESSOR_SCALE_FACTOR``, 4: workers whose journals one reducer reads."""
    return whole("AIPERF_RECORD_PROCESSOR_SCALE_FACTOR", 1, 100) or 4


def start_s() -> float:
    """``AIPERF_SERVICE_START_TIMEOUT``, 60 s: longest time for workers and reducers to get ready."""
    return number("AIPERF_SERVICE_START_TIMEOUT", 1, 100_000, 60)


def abort_wait_s() -> float:
    """``AIPERF_TIMING_CANCEL_DRAIN_TIMEOUT``, 10 s: longest wait for aborted requests to come back."""
    return number("AIPERF_TIMING_CANCEL_DRAIN_TIMEOUT", 1, 300, 10)


def warmup_log_s() -> float:
    """``AIPERF_SERVICE_WARMUP_PROGRESS_LOG_INTERVAL``, 30 s: time between lines of the log while a warmup goes on."""
    return number("AIPERF_SERVICE_WARMUP_PROGRESS_LOG_INTERVAL", 0.1, 3600, 30)


def progress_s() -> float:
    """``AIPERF_UI_REALTIME_METRICS_INTERVAL``, 5 s: time between lines of progress where there is no terminal."""
    return number("AIPERF_UI_REALTIME_METRICS_INTERVAL", 0.1, 1000, 5)


def trace_hooks() -> bool:
    """``AIPERF_TRACE_HOOKS``, false: tell of every hook call on standard error."""
    return _flag("AIPERF_TRACE_HOOKS", False)


def experimental() -> bool:
    """``AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS``, or ``AIPERF_DEV_MODE``, false: compute experimental metrics, too."""
    return _flag("AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS", False) or _flag("AIPERF_DEV_MODE", False)


def check() -> None:
    """Range-check every variable the run will read, before anything is started."""
    ssl_verify(), trust_env(), ip_version(), uvloop_wanted(), affinity_headers(), console_export_width(), trace_hooks()
    worker_cpu_share(), workers_cap(), workers_per_reducer()
    experimental(), start_s(), abort_wait_s(), warmup_log_s(), progress_s(), socket_options()


def whole(name: str, low: int, high: int) -> int | None:
    """An integer variable, None where it isn't set."""
    value = os.environ.get(name, "").strip()
    if not value:
        return None
    if not value.isdigit() or not low <= int(value) <= high:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number from {low} to {high}")
    return int(value)


def number(name: str, low: float, high: float, default: float) -> float:
    """A variable that may have a fraction; *default* where it isn't set."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        found = float(value)
    except ValueError:
        found = math.nan
    if not low <= found <= high:  # nor is NaN
        raise ConfigError(f"{name} is {value!r}; it must be a number from {low:g} to {high:g}")
    return found
