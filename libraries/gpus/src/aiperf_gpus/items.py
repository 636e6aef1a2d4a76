"""The items of ``--gpu-telemetry``: what is asked for GPUs, and how the figures are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from aiperf.sdk.redaction import redact, without_secrets
from msgspec import Struct

PYNVML, AMDSMI, DASHBOARD = "pynvml", "amdsmi", "dashboard"
LOCAL = (PYNVML, AMDSMI)
"""Libraries of this machine that are asked instead of DCGM exporters."""
_KINDS = "write HOST:PORT or a URL of a DCGM exporter, pynvml, amdsmi, dashboard, or a file that ends in .csv"


class GpuItems(Struct, frozen=True):
    """The items by kind.  local: ``pynvml``, ``amdsmi``, or "" for DCGM exporters.  urls: as asked, none twice."""

    local: str = ""
    dashboard: bool = False
    urls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def read_items(items: Iterable[str]) -> GpuItems:
    """The items by kind.

    Raises:
        ValueError: An item is of no kind, a file is not there, or two items exclude each other.
    """
    local: list[str] = []
    urls: list[str] = []
    files: list[str] = []
    dashboard = False
    for item in items:
        if item.lower() in LOCAL:
            local.append(item.lower())
        elif item.lower() == DASHBOARD:
            dashboard = True
        elif item.lower().endswith(".csv"):
            if not Path(item).is_file():
                raise ValueError(f"there is no file {item}: metrics of DCGM exporters are read from it")
            files.append(item)
        else:
            urls.append(_url(item))
    if len(set(local)) > 1:
        raise ValueError("pynvml and amdsmi exclude each other: name one of them")
    if local and (urls or files):
        what = without_secrets(urls[0]) if urls else files[0]
        raise ValueError(f"{local[0]} asks this machine's GPUs, and {what} is for DCGM exporters: drop one of the two")
    return GpuItems("".join(local[:1]), dashboard, tuple(dict.fromkeys(urls)), tuple(dict.fromkeys(files)))


def _url(item: str) -> str:
    """The address of an exporter's page."""
    url = item if re.match("https?://", item, re.IGNORECASE) else f"http://{item}"
    try:
        parts = urlsplit(url)
        bad = not parts.hostname or parts.port == 0
    except ValueError:
        bad = True
    if bad or "://" in url.partition("://")[2] or (":" not in item and not item.lower().startswith("http")):
        raise ValueError(f"{redact(item)!r} is no item of it: {_KINDS}")
    url = url.rstrip("/")
    return url if url.endswith("/metrics") or parts.query else f"{url}/metrics"


__all__ = ["AMDSMI", "DASHBOARD", "LOCAL", "PYNVML", "GpuItems", "read_items"]
