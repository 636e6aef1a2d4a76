"""The shared options, whether they want exporters, and the exporters that are asked anyway."""

from __future__ import annotations

import contextlib
import os
import socket
from urllib.parse import urlsplit

from aiperf.sdk.environment import number
from aiperf.sdk.errors import ConfigError
from aiperf_gpus.items import read_items
from aiperf_gpus.options import GpuOptions

_DEFAULT = "http://localhost:9400/metrics,http://localhost:9401/metrics"
_HTTP = 80
"""The port of an address without one."""
_IPV4, _IPV6 = (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")
_LOOPBACK = {"localhost": (_IPV4, _IPV6), "127.0.0.1": (_IPV4,), "::1": (_IPV6,)}
_ANSWER_S = 0.5
"""A port of this machine takes a connection at once, or refuses it."""
_VARIABLE = "AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS"


class DcgmOptions(GpuOptions):
    @property
    def exporters(self) -> bool:
        """Whether exporters are asked: those of ``--gpu-telemetry``, and default ones that may be there, without a local
        library."""
        if self.gpu_telemetry_enabled and self.gpu_telemetry is None:
            try:
                return any(map(_may_listen, default_urls()))
            except ConfigError:  # among the problems
                return True
        return self.gpu_telemetry_enabled and not self.items.local

    def problems(self, typed: dict[str, str]) -> list[str]:
        sentences = super().problems(typed)
        for read in (default_urls, timeout_s) if self.gpu_telemetry_enabled and not self.items.local else ():
            try:
                read()
            except ConfigError as error:
                sentences.append(error.message)
        return sentences


def default_urls() -> tuple[str, ...]:
    """``AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS``: pages with commas between them, or as a list of JSON; empty for none.

    Raises:
        ConfigError: An item is no address.
    """
    text = os.environ.get(_VARIABLE, _DEFAULT).strip().strip("[]")
    items = [item.strip().strip("\"'") for item in text.split(",")]
    try:
        return read_items([item for item in items if item]).urls
    except ValueError as error:
        raise ConfigError(f"{_VARIABLE}: {error}") from error


def _may_listen(url: str) -> bool:
    """Whether somebody may listen there, found out at once: a port of this machine is asked, another machine may be there.

    Without it, every run of a machine without GPUs would start a process that finds nothing.
    """
    address = urlsplit(url)
    families = _LOOPBACK.get(address.hostname or "", ())
    for family, host in families:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(_ANSWER_S)
            if client.connect_ex((host, address.port or _HTTP)) == 0:
                return True
    return not families


def timeout_s() -> float:
    """``AIPERF_HTTP_METRICS_SCRAPE_READ_TIMEOUT``: seconds for a whole page."""
    return number("AIPERF_HTTP_METRICS_SCRAPE_READ_TIMEOUT", 0.1, 300, 30)


__all__ = ["DcgmOptions", "default_urls", "timeout_s"]
