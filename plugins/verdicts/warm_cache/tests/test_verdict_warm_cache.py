"""The verdict warm_cache keeps its contract."""

from __future__ import annotations

from aiperf_verdict_warm_cache.contract import WarmCacheContract


class TestItKeepsTheContract(WarmCacheContract):
    pass
