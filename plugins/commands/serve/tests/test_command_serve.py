"""``aiperf serve``: the list, and the routes of finished runs, this program's and the reference's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import jsonschema
import pytest
from aiohttp import ClientSession
from aiperf import AiperfError, UsageError
from aiperf_command_serve import Serve
from aiperf_command_serve.finished import status_of, title_of
from aiperf_command_serve.options import ServeOptions
from aiperf_command_serve.runs import ServedRuns
from aiperf_command_serve.site import Site
from aiperf_live_api.openapi import document
from aiperf_live_api.routes import PUBLIC
from aiperf_pages.guard import Guard
from aiperf_pages.ports import listen
from aiperf_pages.server import Server

REFERENCE = Path(__file__).parent / "reference"
TOKEN = "a-token-of-twenty-characters"
CANARY = "<script>window.canary=1</script>"
GETS = (
    "/api/run", "/api/config", "/api/progress", "/api/metrics", "/api/workers", "/api/server-metrics", "/api/results",
    "/api/results/list", "/api/history",
)  # fmt: skip


def run(check: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(check(), 300))


@contextlib.asynccontextmanager
async def site(*paths: Path) -> AsyncIterator[tuple[str, ClientSession]]:
    runs = ServedRuns(paths)
    runs.look()
    listening = listen("127.0.0.1", 0)
    server = Server(Site(runs).application(asyncio.Event()), Guard("127.0.0.1", TOKEN, PUBLIC), listening)
    await server.start()
    async with ClientSession() as session:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", session
    await server.stop()


async def get(session: ClientSession, url: str) -> tuple[int, object]:
    async with session.get(url) as answer:
        return answer.status, await answer.json()


def two(folder: Path) -> Path:
    """A folder of two runs, one with a model that is markup."""
    for name in ("first", "second"):
        shutil.copytree(REFERENCE, folder / name)
    summary = folder / "second" / "profile_export_aiperf.json"
    changed = json.loads(summary.read_text())
    changed["input_config"]["models"]["items"][0]["name"] = CANARY
    changed |= {"was_cancelled": True, "error_summary": [
        {"error_details": {"code": 500, "type": "HTTPError", "message": CANARY}, "count": 3}]}  # fmt: skip
    summary.write_text(json.dumps(changed))
    return folder


def test_the_list_has_what_tells_runs_apart(tmp_path):
    async def check():
        async with site(two(tmp_path)) as (url, session):
            _, found = await get(session, f"{url}/api/runs")
            runs = {entry["label"]: entry for entry in found["runs"]}
            assert set(runs) == {"first", "second"}
            assert runs["first"]["models"] == ["m1"]
            assert (runs["first"]["status"], runs["second"]["status"], runs["second"]["failed"]) == ("complete", "cancelled", 3)
            assert runs["first"]["requests"] == 12
            assert runs["first"]["ours"] is False
            async with session.get(f"{url}/") as answer:
                assert "Runs" in await answer.text()
            status, answer = await get(session, f"{url}/api/progress")
            assert (status, "/api/runs" in answer["detail"]) == (404, True)

    run(check)


def test_every_route_of_a_run_fits_the_description(tmp_path):
    async def check():
        whole = document()
        async with site(two(tmp_path)) as (url, session):
            _, found = await get(session, f"{url}/api/runs")
            for entry in found["runs"]:
                base = f"{url}/runs/{entry['id']}"
                for path in GETS:
                    status, answer = await get(session, base + path)
                    assert status == 200, (path, answer)
                    schema = whole["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
                    jsonschema.validate(answer, {**schema, "components": whole["components"]})
                _, history = await get(session, f"{base}/api/history")
                assert history["series"]["done.profiling"]["values"][-1] == 12
                assert max(filter(None, history["series"]["metric.time_to_first_token.p99"]["values"])) > 0
                assert max(history["series"]["in_flight"]["values"]) == 2
                async with session.get(f"{base}/api/events") as answer:
                    kinds = re.findall(r"^event: (\w+)", await answer.text(), re.MULTILINE)
                    assert (kinds[0], kinds[-2:]) == ("run", ["snapshot", "end"])
                async with session.get(f"{base}/api/results/files/profile_export_aiperf.json") as answer:
                    assert (await answer.json(content_type=None))["aiperf_version"] == "0.13.0"
                async with session.get(f"{base}/metrics") as answer:
                    assert 'quantile="0.99"' in await answer.text()
                for path in ("/api/stop", "/api/cancel"):
                    async with session.post(base + path, headers={"Authorization": f"Bearer {TOKEN}"}) as answer:
                        assert (answer.status, "has ended" in (await answer.json())["detail"]) == (409, True)

    run(check)


def test_an_only_run_has_its_routes_at_the_top(tmp_path):
    async def check():
        async with site(REFERENCE) as (url, session):
            status, results = await get(session, f"{url}/api/results")
            assert (status, results["status"]) == (200, "complete")
            assert results["results"]["results"]["successful_request_count"] == 12

    run(check)


@pytest.mark.parametrize(("path", "status"), [
    ("/runs/nothing/api/run", 404), ("/runs/../api/run", 404), ("/runs/%2e%2e%2f/api/run", 404),
    ("/runs/x/api/results/files/a", 404), ("/runs/x/", 404),
])  # fmt: skip
def test_an_unknown_run_is_a_sentence(tmp_path, path, status):
    async def check():
        async with site(two(tmp_path)) as (url, session):
            code, answer = await get(session, url + path)
            assert code == status
            assert answer["detail"]

    run(check)


def test_a_run_that_is_damaged_spoils_no_list(tmp_path):
    async def check():
        folder = two(tmp_path)
        (folder / "first" / "profile_export_aiperf.json").write_text("{")
        (folder / "second" / "profile_export.jsonl").write_text("{\n")
        async with site(folder) as (url, session):
            _, found = await get(session, f"{url}/api/runs")
            runs = {entry["label"]: entry for entry in found["runs"]}
            assert "can't be read" in runs["first"]["problem"]
            status, answer = await get(session, f"{url}/runs/{runs['first']['id']}/api/run")
            assert (status, "can't be read" in answer["detail"]) == (500, True)
            assert (await get(session, f"{url}/runs/{runs['second']['id']}/api/metrics"))[0] == 200

    run(check)


def test_a_directory_without_results_ends_it_with_a_sentence(tmp_path):
    with pytest.raises(AiperfError, match="holds no results"):
        Serve().run(ServeOptions(), [str(tmp_path)])
    with pytest.raises(UsageError, match="needs a directory"):
        Serve().run(ServeOptions(), [])


@pytest.mark.parametrize(("summary", "status"), [
    ({"was_cancelled": True, "is_complete": False}, "cancelled"), ({"is_complete": False}, "incomplete"), ({}, "complete"),
])  # fmt: skip
def test_a_summary_has_a_status(summary, status):
    assert status_of(summary) == status


def test_a_tag_has_a_title():
    assert title_of("time_to_first_token") == "Time to First Token"


def test_the_command_prints_its_url_and_ends_with_ctrl_c(tmp_path):
    words = [sys.executable, "-m", "aiperf", "serve", str(REFERENCE)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert re.fullmatch(r"1 run on http://127\.0\.0\.1:\d+/\n", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
