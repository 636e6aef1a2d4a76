"""What inference servers count of themselves, by the names of each engine, beside what the client saw."""

from __future__ import annotations

from aiperf_servers.client import Client, is_at_url, urls_of
from aiperf_servers.engines import ENGINES, Engine, engine_of, queued
from aiperf_servers.over_time import over_time
from aiperf_servers.server import Levels, ObservedTime, ServerCounts, Spread
from aiperf_servers.targets import carried, counts_requests, lacks, servers

__all__ = [
    "ENGINES", "Client", "Engine", "Levels", "ObservedTime", "ServerCounts", "Spread", "carried", "counts_requests",
    "engine_of", "is_at_url", "lacks", "over_time", "queued", "servers", "urls_of",
]  # fmt: skip
