"""The page of runs in a directory, served in this process, and the runs themselves."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf_command_plot.dashboard import CommandDrawer
from aiperf_pages.guard import Guard
from aiperf_pages.ports import listen
from aiperf_pages.server import Server
from aiperf_plot_site.catalog import RunCatalog
from aiperf_plot_site.site import PUBLIC, PlotSite
from aiperf_plotting.installed import wanted_plots
from aiperf_results import open_cells

TOKEN = "a-token-of-twenty-characters"
CANARY = "<script>window.canary=1</script><img src=x onerror=\"window.canary=1\">'\"&"
SECRET = "sk-0123456789abcdefSECRET"
NS = 1_000_000


def write_run(folder: Path, concurrency: int, model: str = "m1", requests: int = 60, failed: int = 0) -> Path:
    """A run as the reference writes it: latency grows with the load; the last *failed* requests failed."""
    folder.mkdir(parents=True)
    lines, good = [], requests - failed
    for n in range(requests):
        start, ttft = 1_700_000_000_000_000_000 + n * 50 * NS, 10.0 + concurrency + n % 7
        about = {
            "session_num": n, "conversation_id": f"c{n}", "x_request_id": f"r{n}", "request_start_ns": start,
            "request_end_ns": start + round((ttft + 90) * NS), "benchmark_phase": "profiling", "was_cancelled": False,
        }  # fmt: skip
        metrics = {"time_to_first_token": {"value": ttft, "unit": "ms"}, "request_latency": {"value": ttft + 90, "unit": "ms"}}
        if n >= good:
            error = {"code": 500, "type": "=cmd()", "message": f"{CANARY} api_key={SECRET}"}
            lines.append({"metadata": about, "metrics": {}, "error": error})
        else:
            lines.append({"metadata": about, "metrics": metrics, "error": None})
    (folder / "profile_export.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    middle = 13.0 + concurrency

    def of(value: float, unit: str = "ms") -> dict[str, object]:
        return {"unit": unit, **dict.fromkeys(("avg", "p50", "p90", "p99", "min"), value), "max": value + 3, "std": 1.0}

    phases = [{"name": "profiling", "kind": "profiling", "concurrency": concurrency}]
    summary = {
        "schema_version": "1.0", "aiperf_version": "0.13.0",
        "input_config": {
            "models": {"items": [{"name": model}]}, "phases": phases,
            "endpoint": {"type": "chat", "api_key": SECRET, "url": f"http://user:{SECRET}@127.0.0.1:1"},
        },
        "time_to_first_token": of(middle), "request_latency": of(middle + 90),
        "request_throughput": {"unit": "requests/sec", "avg": concurrency * 9.0},
        "output_token_throughput": {"unit": "tokens/sec", "avg": concurrency * 300.0},
        "effective_concurrency": {"unit": "requests", "avg": float(concurrency)},
        "request_count": {"unit": "requests", "avg": float(good)},
        "error_request_count": {"unit": "requests", "avg": float(failed)},
        "nothing": {"unit": "ms", "avg": float("nan"), "p99": None},
    }  # fmt: skip
    (folder / "profile_export_aiperf.json").write_text(json.dumps(summary))
    return folder


def several(folder: Path) -> Path:
    """Four loads of a model, a run of another one, a run that is broken, and one of which all requests failed."""
    for load in (1, 2, 4, 8):
        write_run(folder / f"c{load}", load)
    write_run(folder / "other", 4, model=CANARY, failed=6)
    write_run(folder / "lost", 2, requests=5, failed=5)
    (write_run(folder / "broken", 1) / "profile_export_aiperf.json").write_text("{")
    return folder


def drawer() -> CommandDrawer:
    """What the command passes to the page."""
    return CommandDrawer(partial(wanted_plots, PluginOptions(Registry.discover(), {}, {}), broken=[]))


@contextlib.asynccontextmanager
async def served(*paths: Path, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """The URL of the page."""
    made = drawer()
    listening = listen("127.0.0.1", 0)
    site = PlotSite(RunCatalog(open_cells(paths), made.card), made)
    server = Server(site.application(), Guard(host, TOKEN, PUBLIC), listening)
    await server.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        await server.stop()


@pytest.fixture
def dashboard() -> SimpleNamespace:
    """The functions of this module."""
    return SimpleNamespace(served=served, several=several, write_run=write_run)


@pytest.fixture(scope="session")
def several_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return several(tmp_path_factory.mktemp("runs"))
