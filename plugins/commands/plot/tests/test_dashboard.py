"""``aiperf plot --dashboard``: the list, figures, objectives, requests, and bad input, by the routes."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientSession
from aiperf import AiperfError, UsageError
from aiperf.registry.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf_command_plot import PlotCommand
from aiperf_command_plot.options import PlotOptions

Get = Callable[..., Awaitable[tuple[int, Any]]]
Visit = Callable[..., None]
CANARY = "<script>window.canary=1</script><img src=x onerror=\"window.canary=1\">'\"&"
SECRET = "sk-0123456789abcdefSECRET"


@pytest.fixture
def visit(dashboard: SimpleNamespace) -> Visit:
    """Calls a check with what gets a route's answer, and the names of the runs by label."""

    def visit(check: Callable[[Get, dict[str, str]], Awaitable[None]], *paths: Path, host: str = "127.0.0.1") -> None:
        async def visiting() -> None:
            async with dashboard.served(*paths, host=host) as url, ClientSession() as session:

                async def get(path: str, headers: dict[str, str] | None = None, **fields: Any) -> tuple[int, Any]:
                    async with session.get(url + path, params=fields, headers=headers) as answer:
                        text = await answer.text()
                        assert SECRET not in text
                        assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
                        return answer.status, text if path == "/" else json.loads(text)

                _, found = await get("/api/runs")
                await check(get, {run["label"]: run["id"] for run in found.get("runs", ())})

        asyncio.run(asyncio.wait_for(visiting(), 300))

    return visit


@pytest.fixture
def runs(several_runs: Path) -> Path:
    return several_runs


def test_runs_are_found_by_name_model_and_load(runs: Path, visit: Visit) -> None:
    async def check(get: Get, ids: dict[str, str]) -> None:
        _, found = await get("/api/runs")
        assert (found["total"], found["found"], found["read"]) == (7, 7, 7)
        by_label = {run["label"]: run for run in found["runs"]}
        assert by_label["other"]["models"] == [CANARY]
        assert (by_label["other"]["requests"], by_label["other"]["failed"]) == (60, 6)
        assert "can't be read" in by_label["broken"]["problem"]
        for fields, labels in (
            ({"find": "C"}, ["c1", "c2", "c4", "c8"]), ({"model": "script"}, ["other"]),
            ({"load": "concurrency 4"}, ["c4", "other"]), ({"find": "c", "load": "concurrency 4"}, ["c4"]), ({"page": "1"}, []),
        ):  # fmt: skip
            _, found = await get("/api/runs", **fields)
            assert [run["label"] for run in found["runs"]] == labels

    visit(check, runs)


def test_figures_name_the_run_of_each_point(runs: Path, visit: Visit) -> None:
    pytest.importorskip("aiperf_plot_basics")
    async def check(get: Get, ids: dict[str, str]) -> None:
        chosen = ",".join(ids[name] for name in ("c8", "c1", "broken", "c2"))
        status, found = await get("/api/figures", runs=chosen, only="ttft_vs_throughput")
        (series,) = found["figures"][0]["series"]
        assert status == 200
        assert (series["runs"], series["x"], series["y"]) == (["c1", "c2", "c8"], [14.0, 15.0, 21.0], [9.0, 18.0, 72.0])
        assert found["ids"]["c8"] == ids["c8"]
        assert "the run broken is left out" in found["failures"][0]

    visit(check, runs)


def test_own_pictures_are_those_of_the_configuration(runs: Path, visit: Visit) -> None:
    pytest.importorskip("aiperf_plot_basics")
    text = 'visualization: {multi_run_plots: {mine: {type: scatter_line, x: request_throughput, y: %s}}}'

    async def check(get: Get, ids: dict[str, str]) -> None:
        chosen = ",".join(ids[name] for name in ("c1", "c8"))
        _, found = await get("/api/figures", runs=chosen, file=text % "request_latency_p99")
        assert (found["figures"][0]["plot"], found["figures"][0]["series"][0]["y"]) == ("mine", [104.0, 111.0])
        assert "p99" in found["figures"][0]["y"]["label"]
        _, found = await get("/api/figures", runs=chosen, file=text % "request_latencz")
        assert "did you mean 'request_latency'?" in found["failures"][0]
        status, found = await get("/api/figures", runs=chosen, file="visualization: {plots: {}}")
        assert (status, "no key 'plots'" in found["detail"]) == (400, True)
        _, found = await get("/api/figures", runs=chosen, file=text % "nothing")
        assert found["figures"] == []
        assert "nothing to show" in found["failures"][0]

    visit(check, runs)


def test_a_rolling_median_is_of_all_requests(runs: Path, visit: Visit) -> None:
    pytest.importorskip("aiperf_plot_basics")
    async def check(get: Get, ids: dict[str, str]) -> None:
        _, found = await get("/api/figures", runs=ids["c4"], only="ttft_over_time", window="7")
        points, line = found["figures"][0]["series"]
        assert (line["name"], line["kind"]) == ("c4: rolling p50 of 7", "line")
        expected = [float(np.median(points["y"][max(0, end - 6) : end + 1])) for end in range(60)]
        assert line["y"] == pytest.approx(expected, rel=1e-9)

    visit(check, runs)


def test_objectives_count_failed_requests_and_name_the_highest_load(runs: Path, visit: Visit) -> None:
    async def check(get: Get, ids: dict[str, str]) -> None:
        chosen = ",".join(ids[name] for name in ("c1", "c2", "c4", "c8", "other", "lost"))
        _, found = await get("/api/objectives", runs=chosen, limits="time_to_first_token:16,request_latency:1000", share="60")
        shares = {run["label"]: (run["good"], run["count"], run["meets"]) for run in found["runs"]}
        expected = {load: sum(10 + load + n % 7 <= 16 for n in range(60)) for load in (1, 2, 4, 8)}
        assert shares["c1"] == (expected[1], 60, True)
        assert shares["c4"] == (expected[4], 60, False)
        assert shares["c8"] == (0, 60, False)
        assert shares["other"] == (sum(14 + n % 7 <= 16 for n in range(54)), 60, False)
        assert shares["lost"] == (0, 5, False)
        assert found["highest"]["label"] == "c2"
        status, found = await get("/api/objectives", runs=chosen, limits="time_to_first_token:nan")
        assert (status, "is no objective" in found["detail"]) == (400, True)

    visit(check, runs)


def test_a_point_leads_to_its_request_and_its_configuration(runs: Path, visit: Visit) -> None:
    async def check(get: Get, ids: dict[str, str]) -> None:
        _, found = await get(f"/api/runs/{ids['c2']}/requests/7")
        assert (found["metadata"]["x_request_id"], found["arrival"]) == ("r7", None)
        assert found["metrics"]["time_to_first_token"]["value"] == 12.0
        status, found = await get(f"/api/runs/{ids['c2']}/requests/60")
        assert (status, "60 good requests" in found["detail"]) == (400, True)
        _, found = await get(f"/api/runs/{ids['other']}")
        assert found["configuration"]["endpoint"]["api_key"] == "<redacted>"
        assert found["card"]["load_label"] == "concurrency 4"
        status, found = await get("/api/runs/0000000000")
        assert (status, "no run is called" in found["detail"]) == (400, True)

    visit(check, runs)


def test_strangers_get_sentences(runs: Path, visit: Visit) -> None:
    pytest.importorskip("aiperf_plot_basics")
    async def check(get: Get, ids: dict[str, str]) -> None:
        for path, fields, words in (
            ("/api/figures", {"only": "ttft_over_time"}, "no run is chosen"),
            ("/api/figures", {"runs": ids["c1"]}, "give names of plots"),
            ("/api/figures", {"runs": ids["c1"], "only": "ttft_over_tim"}, "did you mean"),
            ("/api/runs", {"page": "-1"}, "no whole number"), ("/api/objectives", {"runs": ids["c1"]}, "no objective is given"),
        ):  # fmt: skip
            status, found = await get(path, **fields)
            assert (status, words in found["detail"]) == (400, True), found
        status, _ = await get("/api/runs", headers={"Host": "elsewhere.example"})
        assert status == 403
        assert "plots.js" in (await get("/"))[1]

    visit(check, runs)


def test_other_machines_need_the_token(tmp_path: Path, visit: Visit, dashboard: SimpleNamespace) -> None:
    dashboard.write_run(tmp_path / "c1", 1)

    async def check(get: Get, ids: dict[str, str]) -> None:
        assert ids == {}
        status, found = await get("/api/runs", headers={"Host": "127.0.0.1"})
        assert (status, "needs the token" in found["detail"]) == (401, True)
        assert (await get("/", headers={"Host": "127.0.0.1"}))[0] == 200

    visit(check, tmp_path, host="0.0.0.0")


def test_the_list_of_ten_thousand_runs_is_read_page_by_page() -> None:
    from aiperf import PlotRun
    from aiperf_plot_site.catalog import RunCatalog
    from aiperf_plot_site.drawer import RunCard

    read: list[str] = []

    def card(run: PlotRun) -> RunCard:
        read.append(run.label)
        return RunCard(("m",), 1.0, "concurrency", "concurrency 1", 1, 0, 0, None, ())

    catalog = RunCatalog([PlotRun(f"run-{n}", {}) for n in range(10_000)], card)
    found = catalog.listed("run", "", "", 3)
    assert (found["total"], found["found"], found["pages"], len(read)) == (10_000, 10_000, 200, 50)
    assert [run["label"] for run in found["runs"]] == [f"run-{n}" for n in range(150, 200)]
    with pytest.raises(AiperfError, match="500 at most"):
        catalog.opened(catalog.names())


@pytest.mark.parametrize(
    ("given", "typed", "words"),
    [
        ({"port": 1}, {"port": "--port"}, "--port needs --dashboard"),
        ({"dashboard": True, "format": "svg"}, {"dashboard": "--dashboard", "format": "--format"}, "--format has no effect"),
        ({"dashboard": True}, {"dashboard": "--dashboard"}, None),
    ],
)
def test_options_without_an_effect_are_named(given: dict[str, Any], typed: dict[str, str], words: str | None) -> None:
    problems = PlotOptions(**given).problems(typed)
    assert [words in each for each in problems] == ([] if words is None else [True])


def test_a_port_in_use_is_named(runs: Path) -> None:
    pytest.importorskip("aiperf_plot_basics")
    command = PlotCommand()
    command.plugin_options = PluginOptions(Registry.discover(), {}, {})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises((AiperfError, UsageError), match=f"127.0.0.1:{port} is in use"):
            command.run(PlotOptions(dashboard=True, port=port), [str(runs)])


def test_help_and_pictures_import_no_server() -> None:
    program = "import sys, aiperf_command_plot, aiperf_command_plot.options; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=600).returncode == 0
