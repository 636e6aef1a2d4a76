"""The verdict server_queue keeps its contract."""

from __future__ import annotations

from aiperf_verdict_server_queue.contract import ServerQueueContract


class TestItKeepsTheContract(ServerQueueContract):
    pass
