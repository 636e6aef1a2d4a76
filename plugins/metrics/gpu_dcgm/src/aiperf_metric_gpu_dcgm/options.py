"""The shared options, whether they want exporters, and the exporters that are asked anyway."""

from __future__ import annotations

import os

from aiperf.sdk.environment import number
from aiperf.sdk.errors import ConfigError
from aiperf_gpus.items import read_items
from aiperf_gpus.options import GpuOptions

from aiperf_metric_gpu_dcgm.ports import may_listen

_DEFAULT = "http://localhost:9400/metrics,http://localhost:9401/metrics"
_VARIABLE = "AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS"


class DcgmOptions(GpuOptions):
    @property
    def exporters(self) -> bool:
        """Whether exporters are asked: those of ``--gpu-telemetry``, and default ones that may be there, without a local
        library."""
        if self.gpu_telemetry_enabled and self.gpu_telemetry is None:
            try:
                return any(map(may_listen, default_urls()))
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


def timeout_s() -> float:
    """``AIPERF_HTTP_METRICS_SCRAPE_READ_TIMEOUT``: seconds for a whole page."""
    return number("AIPERF_HTTP_METRICS_SCRAPE_READ_TIMEOUT", 0.1, 300, 30)


__all__ = ["DcgmOptions", "default_urls", "timeout_s"]
