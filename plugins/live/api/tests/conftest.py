"""A run that is told to the API as the kernel tells it, and a server of it in this process."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import ClientSession
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.live import LiveEnd, LiveFeed, LiveRun
from aiperf.sdk.plan import DataPlan, LoadPlan, OutputPlan, PhasePlan, Plan, PluginPlan, RunPlan, TargetPlan
from aiperf.sdk.snapshot import (
    LiveDelays,
    LiveFailures,
    LiveMetric,
    LiveObjective,
    LiveSeries,
    LiveStatistics,
    LiveWorker,
    LogLine,
    PhaseProgress,
    Snapshot,
    VerdictSoFar,
)
from aiperf_live_api import Api, ApiOptions
from aiperf_live_api.limits import Limits
from aiperf_live_api.serving import Serving

CANARY = "<script>window.canary=1</script><img src=x onerror=\"window.canary=1\">'\"&"
TOKEN = "a-token-of-twenty-characters"
BEGAN_NS = 1_700_000_000_000_000_000


class Told(LiveFeed):
    """A feed of calls that a test queues."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []
        self._read, self._write = os.pipe()
        self._over = False

    def fileno(self) -> int:
        return self._read

    def put(self, *calls: Callable[[], None]) -> None:
        self._calls += calls
        os.write(self._write, b".")

    def finish(self) -> None:
        self._over = True
        os.write(self._write, b".")

    def take(self, wait_s: float | None = 0.0) -> bool:
        os.read(self._read, 1 << 16)
        calls, self._calls = self._calls, []
        for call in calls:
            call()
        return not self._over


def plan_of(directory: str, model: str = "m1") -> Plan:
    """A plan with a warmup and a profiling phase."""
    chat, sockets, synthetic = (
        PluginRef(category, name, "module:Class", f"aiperf-{name}", "0.1.0")
        for category, name in (("endpoints", "chat"), ("transports", "sockets"), ("datasets", "synthetic"))
    )  # fmt: skip
    phases = (
        PhasePlan("warmup", "warmup", 0, "burst", request_count=10, concurrency=2),
        PhasePlan("profiling", "profiling", 1, "constant", request_count=5000, concurrency=8, rate=20.0),
    )
    return Plan(
        RunPlan("0123456789ab", "0.1.0", 7, True, "aiperf profile --model m1", config={"runtime": {"record_processors": 1}}),
        TargetPlan((model,), ("http://127.0.0.1:1",), "", True, 10**9), DataPlan(1), LoadPlan(phases),
        OutputPlan(f"{directory}/journal", directory), PluginPlan(chat, sockets, synthetic),
    )  # fmt: skip


def statistics(middle: float, count: int) -> LiveStatistics:
    shares = (1, 0.5, 3, 0.2, 0.9, 1.5, 1.8, 2.5)
    return LiveStatistics(*(middle * share for share in shares), count)


def snapshot_of(number: int, *, text: str = "", last: bool = False, workers: int = 2) -> Snapshot:
    """The snapshot of this number of a run of 20 requests/s, whose latency swings."""
    elapsed_s, done = number / 2, number * 10
    swing = 1 + 0.4 * math.sin(number / 9)
    phase = PhaseProgress(
        1, "profiling", "profiling", "Complete" if last else "Profiling", min(1, done / 5000), elapsed_s, 200.0, 5000, done + 8,
        done + 8, 1, 8, done - number, number, done, number,
    )  # fmt: skip
    warmup = PhaseProgress(0, "warmup", "warmup", "Complete", 1.0, 1.0, 0.0, 10, None, 10, None, 0, 10, 0, 10, 0, 0.0)
    return Snapshot(
        "profiling", "profiling", elapsed_s, done + 8, done - number, number, 8, 20.0, min(1, done / 5000), 200.0, None, None,
        number, BEGAN_NS + number * 500_000_000, phase.status, last, 20.0 * swing, (warmup, phase),
        (
            *(
                LiveMetric(tag, title, "ms", statistics(middle, done), statistics(middle * swing, 200))
                for tag, title, middle in (
                    ("time_to_first_token", f"Time to First Token{text}", 80),
                    ("inter_token_latency", "Inter Token Latency", 8), ("request_latency", "Request Latency", 700),
                )
            ),
            LiveMetric("output_token_throughput", "Output Token Throughput", "tokens/sec", *[LiveStatistics(640)] * 2),
        ),
        LiveObjective("all", "", None, done, done - number, 200, 190),
        (LiveObjective("TTFT ≤ 150 ms", "time_to_first_token", 150.0, done, done - number, 200, 190),),
        (LiveFailures(f"HTTPError{text}", number, 500, f"the server failed{text}"),), 0,
        tuple(LiveWorker(i, "healthy", 100 + i, 4, done // 2, 0, 35.0 + i, 60_000_000, 1_000_000) for i in range(workers)),
        LiveDelays(0.2, 0.1, 0.05),
        (
            LiveSeries("server_metrics", "vllm:num_requests_running", 8.0 * swing, "", {"model": f"m{text}"}, "http://127.0.0.1:1"),
            LiveSeries("server_metrics", "vllm:gpu_cache_usage_perc", 0.3 * swing, "", {}, "http://127.0.0.1:1"),
        ), 0, (), number, VerdictSoFar("suspect", (f"a reason{text}",), (), elapsed_s),
    )  # fmt: skip


class LiveApi:
    """An API in this process, its run, and a client."""

    def __init__(self, api: Api, url: str, feed: Told, session: ClientSession, directory: str) -> None:
        self.api, self.url, self.feed, self.session, self.directory = api, url, feed, session, directory
        self.asked: list[str] = []
        self.over: asyncio.Task[None] | None = None
        self.serving: Serving | None = None

    def routes(self) -> set[str]:
        """The paths of all routes."""
        return {route.resource.canonical for route in self.serving.app.router.routes()}

    async def tell(self, *calls: Callable[[], None]) -> None:
        """Tell the API, and wait until it has heard."""
        heard = asyncio.get_running_loop().create_future()
        self.feed.put(*calls, lambda: heard.set_result(None))
        await asyncio.wait_for(heard, 60)

    async def begin(self, model: str = "m1") -> None:
        run = LiveRun(plan_of(self.directory, model), None, BEGAN_NS)
        await self.tell(lambda: self.api.begin(run))

    async def show(self, *numbers: int, **more: Any) -> None:
        for number in numbers:
            await self.tell(lambda number=number: self.api.show(snapshot_of(number, **more)))

    async def log(self, text: str, level: int = 20) -> None:
        await self.tell(lambda: self.api.log(LogLine(text, level)))

    async def end(self, **fields: Any) -> None:
        await self.tell(lambda: self.api.end(LiveEnd(**fields)))

    async def get(self, path: str, **more: Any) -> tuple[int, Any]:
        async with self.session.get(self.url + path, **more) as answer:
            return answer.status, await answer.json()

    async def post(self, path: str, token: str | None = TOKEN, **more: Any) -> tuple[int, Any]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with self.session.post(self.url + path, headers=headers, **more) as answer:
            return answer.status, await answer.json()


@contextlib.asynccontextmanager
async def live_api(directory: str, limits: Limits | None = None, host: str = "127.0.0.1") -> AsyncIterator[LiveApi]:
    """An API that serves until the block's end."""
    api, feed = Api(ApiOptions(api_port=0, api_token=TOKEN, api_host=host)), Told()
    limits = limits or Limits(grace_s=0.0)
    api.board.streams.most = limits.most_clients
    asked: list[str] = []
    serving = Serving(api.options, api.board, limits, asked.append)
    url = serving.listen()
    task = asyncio.create_task(serving.run(feed))
    await asyncio.sleep(0)
    try:
        async with ClientSession() as session:
            made = LiveApi(api, url, feed, session, directory)
            made.asked, made.over, made.serving = asked, task, serving
            yield made
            feed.finish()
            await asyncio.wait_for(task, 60)
    finally:
        task.cancel()


@pytest.fixture
def served() -> Callable[..., Any]:
    return live_api
