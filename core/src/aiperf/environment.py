"""Settings from the environment, read when first needed.  A command-line flag wins over its variable."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from aiperf.errors import ConfigError

IMPORT_S = 20.0
"""The default of :func:`import_s`."""
_SECRET_NAME = (
    r"(?:^|_)(?:API_?KEY|(?:ACCESS|SECRET|PRIVATE|AUTH)_?KEY|TOKEN|SECRETS?|CREDENTIALS?)(?:_|$)|PASSW(?:OR)?D|PASSPHRASE"
)
_PROXY_PASSWORD = r"^\w+_proxy=(?:\w+://)?[^/@]*:[^/@]*@"
_SHORTEST_SECRET = 4
"""A value with fewer characters is part of too many words."""
API_KEY = "AIPERF_API_KEY"
"""The variable that :func:`api_key` reads."""
_UNITS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = rf"(?P<number>[0-9]*\.?[0-9]+)\s*(?P<unit>{'|'.join(_UNITS)})"
_STATES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(("0", "false", "no", "off"), False)


def _found(pattern: str, text: str) -> bool:
    """Compiled with the first use: every process imports this module, and few start others."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def cache_directory() -> Path:
    """``$AIPERF_CACHE_DIR``, else ``$XDG_CACHE_HOME/aiperf``, else ``~/.cache/aiperf``."""
    own, base = os.environ.get("AIPERF_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")
    return Path(own) if own else (Path(base) if base else Path("~/.cache").expanduser()) / "aiperf"


def api_key() -> str | None:
    """``AIPERF_API_KEY``, None where it is empty: the key without ``--api-key`` and ``--api-key-file``."""
    return os.environ.get(API_KEY, "").strip() or None


def for_children(*, sends: bool = False, secrets: bool = False) -> dict[str, str]:
    """The environment of a child process, without variables that are named like secrets and without a proxy's password.

    The run's own key, and secret options of plugins, reach the processes that need them over the control channel.  *sends*: it
    sends the load, and may be asked to use a proxy.  *secrets*: it logs in elsewhere, as programs that upload do, and gets all
    variables but the run's own key.  ``AIPERF_PASS_VARIABLES`` names, by commas, secrets that are left.
    """
    if secrets:
        return {name: value for name, value in os.environ.items() if name != API_KEY}
    left = {name.strip() for name in os.environ.get("AIPERF_PASS_VARIABLES", "").split(",")}
    proxied = sends and trust_env()
    return {
        name: value for name, value in os.environ.items()
        if name in left or not (_found(_SECRET_NAME, name) or (_found(_PROXY_PASSWORD, f"{name}={value}") and not proxied))
    }  # fmt: skip


def secret_texts() -> list[str]:
    """Values of this process's variables that are named like secrets, and passwords of its proxies, the longest first."""
    named = {value for name, value in os.environ.items() if len(value) >= _SHORTEST_SECRET and _found(_SECRET_NAME, name)}
    addresses = (value for name, value in os.environ.items() if _found(_PROXY_PASSWORD, f"{name}={value}"))
    passwords = {address.rpartition("@")[0].rpartition("/")[2].partition(":")[2] for address in addresses}
    return sorted(named | passwords - {""}, key=len, reverse=True)


def flag(name: str, default: bool) -> bool:
    """A variable that is true or false; *default* where it is not set.

    Raises:
        ConfigError: It is neither.
    """
    value = os.environ.get(name, "").strip().lower()
    if value and value not in _STATES:
        raise ConfigError(f"{name} is {value!r}; it must be true or false")
    return _STATES.get(value, default)


def ssl_verify() -> bool:
    """``AIPERF_HTTP_SSL_VERIFY``, true: check certificates."""
    return flag("AIPERF_HTTP_SSL_VERIFY", True)


def trust_env() -> bool:
    """``AIPERF_HTTP_TRUST_ENV``, false: honour proxy variables; URLs behind a proxy get a transport that can."""
    return flag("AIPERF_HTTP_TRUST_ENV", False)


def ip_version() -> str:
    """``AIPERF_HTTP_IP_VERSION``, auto: address family, ``4``, ``6`` or ``auto``."""
    value = os.environ.get("AIPERF_HTTP_IP_VERSION", "").strip().lower() or "auto"
    if value not in ("4", "6", "auto"):
        raise ConfigError(f"AIPERF_HTTP_IP_VERSION is {value!r}; it must be 4, 6 or auto")
    return value


def socket_options() -> list[tuple[int, int, int]]:
    """Level, option and value of each ``setsockopt`` of a connection.

    Keep-alive finds a peer that vanished: ``AIPERF_HTTP_TCP_KEEPIDLE`` 60 s, ``_KEEPINTVL`` 30 s, ``_KEEPCNT`` 1,
    ``AIPERF_HTTP_TCP_USER_TIMEOUT`` 30,000 ms.  ``AIPERF_HTTP_SO_RCVBUF`` and ``_SO_SNDBUF``, bytes: the system's defaults
    grow as needed.
    """
    import socket

    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for suffix, low, high, default in (
        ("TCP_KEEPIDLE", 1, 32_767, 60), ("TCP_KEEPINTVL", 1, 32_767, 30), ("TCP_KEEPCNT", 1, 127, 1),
        ("TCP_USER_TIMEOUT", 1, 86_400_000, 30_000),
    ):  # fmt: skip
        name, in_seconds = f"AIPERF_HTTP_{suffix}", suffix in ("TCP_KEEPIDLE", "TCP_KEEPINTVL")
        value = round(_time(name, low, high, default)) if in_seconds else whole(name, low, high) or default
        if hasattr(socket, suffix):  # some systems lack some
            options.append((socket.IPPROTO_TCP, int(vars(socket)[suffix]), value))
    for suffix, option in (("SO_RCVBUF", socket.SO_RCVBUF), ("SO_SNDBUF", socket.SO_SNDBUF)):
        size = whole(f"AIPERF_HTTP_{suffix}", 1024, 1 << 30)
        if size is not None:
            options.append((socket.SOL_SOCKET, option, size))
    return options


def cpus() -> int:
    """CPUs that this process may use: fewer than the machine's in many containers."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def uvloop_wanted() -> bool:
    """``AIPERF_SERVICE_DISABLE_UVLOOP``, false; uvloop runs the loop where the platform has it."""
    return not flag("AIPERF_SERVICE_DISABLE_UVLOOP", False) and sys.platform != "win32"


def affinity_headers() -> list[str]:
    """Further headers that carry the session's id, for routers with session affinity.

    ``AIPERF_HTTP_X_SESSION_AFFINITY_FROM_CORRELATION_ID``, true, and the likes of the other headers, false, switch them.
    """
    known = {"X-Session-Affinity": True, "X-Session-ID": False, "X-SMG-Routing-Key": False, "X-Dynamo-Session-ID": False}
    variable = "AIPERF_HTTP_{}_FROM_CORRELATION_ID"
    return [header for header, on in known.items() if flag(variable.format(header.upper().replace("-", "_")), on)]


def console_export_width() -> int:
    """``AIPERF_UI_CONSOLE_EXPORT_WIDTH``, 140: columns of ``profile_export_console.txt``."""
    return whole("AIPERF_UI_CONSOLE_EXPORT_WIDTH", 40, 1000) or 140


def worker_cpu_share() -> float:
    """``AIPERF_WORKER_CPU_UTILIZATION_FACTOR``, 0.75: share of the CPUs that workers may take."""
    return number("AIPERF_WORKER_CPU_UTILIZATION_FACTOR", 0.05, 1.0, 0.75)


def workers_cap() -> int:
    """``AIPERF_WORKER_MAX_WORKERS_CAP``, 32: most workers without ``--workers-max``, at each site where there are some."""
    return whole("AIPERF_WORKER_MAX_WORKERS_CAP", 1, 1024) or 32


def forced_workers() -> int | None:
    """``AIPERF_WORKERS``: the number of workers without ``--workers``; None leaves it to the load."""
    return whole("AIPERF_WORKERS", 1, 1024)


def workers_per_reducer() -> int | None:
    """``AIPERF_RECORD_PROCESSOR_SCALE_FACTOR``: workers for each reducer; None: as many as it keeps pace with."""
    return whole("AIPERF_RECORD_PROCESSOR_SCALE_FACTOR", 1, 100)


def start_s() -> float:
    """``AIPERF_SERVICE_START_TIMEOUT``, 60 s: longest time for workers and reducers to get ready."""
    return _time("AIPERF_SERVICE_START_TIMEOUT", 1, 100_000, 60)


def plugin_s() -> float:
    """``AIPERF_PLUGIN_TIMEOUT``, 30 s: longest time for which a call of a stranger's plugin may do nothing."""
    return _time("AIPERF_PLUGIN_TIMEOUT", 0.1, 100_000, 30)


def import_s() -> float:
    """``AIPERF_PLUGIN_IMPORT_TIMEOUT``, 20 s: longest time that the import of a plugin's module may take."""
    return _time("AIPERF_PLUGIN_IMPORT_TIMEOUT", 0.1, 3600, IMPORT_S)


def most_line_bytes() -> int:
    """``AIPERF_DATASET_MAX_LINE_BYTES``, 16 MiB: the longest line of a data set's file."""
    return whole("AIPERF_DATASET_MAX_LINE_BYTES", 1024, 1 << 31) or 16 << 20


def most_expansion() -> int:
    """``AIPERF_DATASET_MAX_EXPANSION``, 200: how many times its size, and 64 MiB, a compressed file may unpack to."""
    return whole("AIPERF_DATASET_MAX_EXPANSION", 1, 1_000_000) or 200


def most_piped_bytes() -> int:
    """``AIPERF_DATASET_MAX_PIPE_BYTES``, 4 GiB: what is read of a pipe that is given as a file."""
    return whole("AIPERF_DATASET_MAX_PIPE_BYTES", 1024, 1 << 40) or 4 << 30


def render_s() -> float:
    """``AIPERF_TEMPLATE_TIMEOUT``, 2 s: processor time for one use of a template: a request's body, or a chat's text."""
    return _time("AIPERF_TEMPLATE_TIMEOUT", 0.01, 3600, 2)


def abort_wait_s() -> float:
    """``AIPERF_TIMING_CANCEL_DRAIN_TIMEOUT``, 10 s: longest wait for aborted requests to come back."""
    return _time("AIPERF_TIMING_CANCEL_DRAIN_TIMEOUT", 1, 300, 10)


def warmup_log_s() -> float:
    """``AIPERF_SERVICE_WARMUP_PROGRESS_LOG_INTERVAL``, 30 s: time between lines of the log while a warmup goes on."""
    return _time("AIPERF_SERVICE_WARMUP_PROGRESS_LOG_INTERVAL", 0.1, 3600, 30)


def progress_s() -> float:
    """``AIPERF_UI_REALTIME_METRICS_INTERVAL``, 5 s: time between lines of progress where there is no terminal."""
    return _time("AIPERF_UI_REALTIME_METRICS_INTERVAL", 0.1, 1000, 5)


def log_progress_s() -> float:
    """``AIPERF_UI_REALTIME_METRICS_INTERVAL``, here 30 s: time between the log's lines of progress."""
    return _time("AIPERF_UI_REALTIME_METRICS_INTERVAL", 0.1, 1000, 30)


def trace_hooks() -> bool:
    """``AIPERF_TRACE_HOOKS``, false: write every hook call to standard error."""
    return flag("AIPERF_TRACE_HOOKS", False)


def experimental() -> bool:
    """``AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS``, or ``AIPERF_DEV_MODE``, false: compute experimental metrics, too."""
    return flag("AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS", False) or flag("AIPERF_DEV_MODE", False)


NAMES = frozenset(f"AIPERF_{name}" for name in (
    "API_KEY", "CACHE_DIR", "PASS_VARIABLES", "DISABLE_PLUGINS", "PLUGIN_IMPORT_TIMEOUT", "PLUGIN_TIMEOUT", "WORKERS",
    "DATASET_MAX_LINE_BYTES", "DATASET_MAX_EXPANSION", "DATASET_MAX_PIPE_BYTES", "TEMPLATE_TIMEOUT", "TRACE_HOOKS",
    "HTTP_SSL_VERIFY", "HTTP_TRUST_ENV", "HTTP_IP_VERSION", "HTTP_TCP_KEEPIDLE", "HTTP_TCP_KEEPINTVL", "HTTP_TCP_KEEPCNT",
    "HTTP_TCP_USER_TIMEOUT", "HTTP_SO_RCVBUF", "HTTP_SO_SNDBUF", "HTTP_X_SESSION_AFFINITY_FROM_CORRELATION_ID",
    "HTTP_X_SESSION_ID_FROM_CORRELATION_ID", "HTTP_X_SMG_ROUTING_KEY_FROM_CORRELATION_ID",
    "HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID", "TIMING_CANCEL_DRAIN_TIMEOUT", "WORKER_CPU_UTILIZATION_FACTOR",
    "WORKER_MAX_WORKERS_CAP", "RECORD_PROCESSOR_SCALE_FACTOR", "SERVICE_START_TIMEOUT", "SERVICE_DISABLE_UVLOOP",
    "SERVICE_WARMUP_PROGRESS_LOG_INTERVAL", "UI_REALTIME_METRICS_INTERVAL", "UI_CONSOLE_EXPORT_WIDTH", "DEV_MODE",
    "DEV_SHOW_EXPERIMENTAL_METRICS",
))  # fmt: skip
"""The kernel's variables; a plugin's stand in its manifest."""
_READERS = (
    ssl_verify, trust_env, ip_version, uvloop_wanted, affinity_headers, console_export_width, trace_hooks, worker_cpu_share,
    workers_cap, forced_workers, workers_per_reducer, experimental, start_s, import_s, abort_wait_s, warmup_log_s, progress_s,
    socket_options, most_line_bytes, most_expansion, most_piped_bytes, render_s,
)  # fmt: skip


def problems() -> list[ConfigError]:
    """What is wrong with the variables that a run reads, an error for each reader."""
    errors = []
    for read in _READERS:
        try:
            read()
        except ConfigError as error:
            errors.append(error)
    return errors


def unread(of_plugins: Iterable[str]) -> list[str]:
    """A sentence on each variable that begins like ours and that nothing reads, with the nearest of those that are read."""
    known = NAMES.union(of_plugins)
    wrong = sorted(name for name in os.environ if name.startswith("AIPERF_") and name not in known)
    if not wrong:
        return []
    from difflib import get_close_matches  # only where it is needed: it costs a start 1 ms

    near = {name: get_close_matches(name, known, 1, 0.9) for name in wrong}
    return [f"nothing reads {name}" + "".join(f"; did you mean {one}?" for one in near[name]) for name in wrong]


def whole(name: str, low: int, high: int) -> int | None:
    """An integer variable, None where it is not set."""
    value = os.environ.get(name, "").strip()
    if not value:
        return None
    if not value.isdigit() or not low <= int(value) <= high:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number from {low} to {high}")
    return int(value)


def number(name: str, low: float, high: float, default: float, *, read: Callable[[str], float] = float) -> float:
    """A number variable, *read* from its text; *default* where it is not set."""
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    try:
        result = read(value)
    except ValueError:
        result = math.nan
    if not low <= result <= high:  # also false for NaN
        raise ConfigError(f"{name} is {value!r}; it must be a number from {low:g} to {high:g}")
    return result


def _time(name: str, low: float, high: float, default: float) -> float:
    """A variable in seconds, which may have a unit."""
    return number(name, low, high, default, read=_seconds)


def _seconds(text: str) -> float:
    value = duration_s(text)
    return float(text) if value is None else value


def duration_s(text: str) -> float | None:
    """The seconds of ``30s``, ``5m``, ``1.5h`` or ``200ms``; None for any other text."""
    match = re.fullmatch(_DURATION, text, re.IGNORECASE)
    return None if match is None else float(match["number"]) * _UNITS[match["unit"].lower()]
