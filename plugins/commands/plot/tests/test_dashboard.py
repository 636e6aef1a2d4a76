"""``aiperf plot --dashboard``: the list, figures, objectives, requests, and bad input, by the routes."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import socket
import subprocess
import sys
import zipfile
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


def test_a_bar_of_failures_leads_to_each_error(runs: Path, visit: Visit) -> None:
    async def check(get: Get, ids: dict[str, str]) -> None:
        run = f"/api/runs/{ids['other']}/failures"
        _, found = await get(run, **{"from": "0", "to": "1000", "kind": "500 =cmd()"})
        assert (found["total"], [each["number"] for each in found["requests"]]) == (6, [0, 1, 2, 3, 4, 5])
        ended_s = [54 * 0.05 + n * 0.05 + (14.0 + (54 + n) % 7 + 90) / 1000 for n in range(6)]
        assert [each["ended_s"] for each in found["requests"]] == pytest.approx(ended_s, abs=1e-6)
        assert found["requests"][0]["message"].startswith(CANARY) and "<redacted>" in found["requests"][0]["message"]
        _, found = await get(run, **{"from": "2.86", "to": "2.95"})
        assert [each["number"] for each in found["requests"]] == [n for n, at in enumerate(ended_s) if 2.86 <= at <= 2.95]
        _, found = await get(run, **{"from": "0", "to": "1000", "kind": "503"})
        assert (found["total"], found["requests"]) == (0, [])
        _, found = await get(f"{run}/5")
        assert (found["metadata"]["x_request_id"], found["error"]["code"]) == ("r59", 500)
        status, found = await get(f"{run}/6")
        assert (status, "has 6 failed requests" in found["detail"]) == (400, True)
        status, found = await get(run, **{"from": "nan", "to": "1"})
        assert (status, "no number of seconds" in found["detail"]) == (400, True)

    visit(check, runs)


@pytest.mark.parametrize("extra", [True, False])
def test_all_numbers_come_in_one_archive(
    runs: Path, dashboard: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, extra: bool
) -> None:
    pytest.importorskip("aiperf_plot_basics")
    if extra:
        pytest.importorskip("aiperf_painting")
    else:
        monkeypatch.setitem(sys.modules, "aiperf_painting", None)
    mine = '{type: scatter_line, x: request_throughput, y: request_latency_p99, title: "=cmd"}'
    file = f"visualization: {{multi_run_defaults: [ttft_vs_throughput, mine], multi_run_plots: {{mine: {mine}}}}}"

    async def check() -> None:
        async with dashboard.served(runs) as url, ClientSession() as session:
            async with session.get(f"{url}/api/runs") as answer:
                ids = {run["label"]: run["id"] for run in (await answer.json())["runs"]}
            chosen = ",".join(ids[name] for name in ("c1", "c2", "other", "broken"))
            fields = {"runs": chosen, "file": file, "state": "zoom=1,2"}
            async with session.get(f"{url}/api/zip", params=fields) as answer:
                assert answer.status == 200
                content = await answer.read()
            async with session.get(f"{url}/api/zip", params={"runs": chosen}) as answer:
                assert (answer.status, "give runs=ID,ID" in (await answer.json())["detail"]) == (400, True)
        archive = zipfile.ZipFile(io.BytesIO(content))
        assert archive.testzip() is None
        names = {"ttft_vs_throughput.csv", "mine.csv", "plots.yaml", "state.json", "summary.txt"}
        assert set(archive.namelist()) == names | ({"ttft_vs_throughput.svg", "mine.svg"} if extra else set())
        head, *rows = csv.reader(archive.read("mine.csv").decode().splitlines())
        assert head == ["series", "requests per second, avg", "request latency, p99 (ms)", "label", "run"]
        assert [(float(row[1]), float(row[2]), row[4]) for row in rows] == [
            (9.0, 104.0, "c1"), (18.0, 105.0, "c2"), (36.0, 107.0, "other"),
        ]  # fmt: skip
        state = json.loads(archive.read("state.json"))
        assert state["address"].startswith("/?runs=") and state["address"].endswith("&zoom=1,2")
        assert [run["label"] for run in state["runs"]] == ["c1", "c2", "other", "broken"]
        told = archive.read("summary.txt").decode()
        assert "the run broken is left out" in told and ("extra plots" in told) != extra
        for name in archive.namelist():
            text = archive.read(name).decode()
            assert SECRET not in text and ("<script>" not in text or name.endswith((".csv", ".txt")))  # models' names

    asyncio.run(asyncio.wait_for(check(), 300))


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
