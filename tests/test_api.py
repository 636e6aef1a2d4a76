"""The HTTP API of whole runs, from outside: as a script uses it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program, Running, wait_for

TOKEN = "a-token-of-twenty-characters"
QUERY = 'aiperf_time_to_first_token_ms{quantile="0.99"}'
LOAD = ("--model", "sim", "--tokenizer", "builtin", "--ui", "none", "--concurrency", 4, "--isl", 8, "--osl", 4, "--streaming")


def get(url: str, *, method: str = "GET", token: str = "") -> tuple[int, Any]:
    """Status and JSON of an answer; status 0 where nobody answers."""
    request = urllib.request.Request(url, method=method, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        body = error.read()
        return error.code, json.loads(body) if body.startswith(b"{") else body
    except OSError:
        return 0, None


def url_of(run: Running) -> tuple[str, str]:
    """The URL of the run's API, and the token in its fragment."""
    assert run.process.stderr is not None
    while not (found := re.search(r"served on (http://\S+)/(?:#(\S+))?\n", run._said)):
        piece = os.read(run.process.stderr.fileno(), 1 << 16)
        assert piece, run._said
        run._said += piece.decode(errors="replace")
    return found[1], found[2] or ""


def test_a_stop_over_the_api_leaves_partial_results(aiperf: Program, simulator: Simulator) -> None:
    run = aiperf.start("profile", *LOAD, "--url", simulator.url, "--benchmark-duration", 120, "--api-port", 0)
    url, token = url_of(run)
    wait_for(lambda: simulator.summary()["requests"] >= 8)
    status, _ = get(f"{url}/api/progress")
    assert status == 200
    assert get(f"{url}/api/stop", method="POST")[0] == 401
    assert get(f"{url}/api/stop", method="POST", token=token)[0] == 202
    wait_for(lambda: get(f"{url}/api/results")[1]["status"] != "running")
    _, results = get(f"{url}/api/results")
    _, history = get(f"{url}/api/history")
    _, listing = get(f"{url}/api/results/list")
    _, metrics = get(f"{url}/api/metrics")
    assert get(f"{url}/api/shutdown", method="POST", token=token)[0] == 200
    done = run.end()
    assert done.code == 130
    found = done.json()
    assert (found["was_cancelled"], found["is_complete"]) == (True, False)
    assert "asked over the API" in found["incomplete_reason"]
    count = found["request_count"]["avg"]
    assert results["status"] == "cancelled"
    assert results["results"]["results"]["successful_request_count"] == count
    assert results["finish"]["reason"] == found["incomplete_reason"]
    ours, reported = metrics["metrics"]["time_to_first_token"], found["time_to_first_token"]
    assert all(ours[name] == pytest.approx(reported[name], rel=1e-12) for name in ("avg", "min", "max", "count"))
    assert ours["p99"] == pytest.approx(reported["p99"], rel=2e-3)
    assert results["finish"]["verdict"]["verdict"] == found["measurement"]["verdict"]
    assert history["series"]["done.profiling"]["values"][-1] == count
    assert "profile_export_aiperf.json" in {file["name"] for file in listing["files"]}
    log = (done.artifacts / "logs" / "aiperf.log").read_text()
    assert token not in log + found["run_info"]["cli_command"]
    assert token in done.err


def test_a_port_in_use_ends_a_run_that_named_it_and_warns_one_that_did_not(aiperf: Program, simulator: Simulator) -> None:
    words = ("profile", *LOAD, "--url", simulator.url, "--request-count", 8)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = aiperf(*words, "--api-port", port)
        assert (refused.code, simulator.summary()["requests"]) == (1, 0)
        assert f"--api-port: 127.0.0.1:{port} is in use by another program" in refused.err
        aiperf.environment["AIPERF_API_SERVER_PORT"] = str(port)
        warned = aiperf(*words)
    assert warned.code == 0
    assert re.search(rf"WARNING .*the run is not served: 127\.0\.0\.1:{port} is in use", warned.err)
    assert warned.json()["request_count"]["avg"] == 8


@pytest.mark.parametrize(("words", "sentence"), [
    (("--api-host", "127.0.0.1"), "--api-host needs --api-port or AIPERF_API_SERVER_PORT"),
    (("--api-port", "70000"), "--api-port: 70000 is not allowed; must be at most 65535"),
    (("--api-port", "0", "--api-host", "no such host"), "no address of this machine is called 'no such host'"),
])  # fmt: skip
def test_bad_options_of_the_api_are_refused(aiperf: Program, words: tuple[str, ...], sentence: str) -> None:
    done = aiperf("profile", *LOAD, "--url", "127.0.0.1:1", *words)
    assert done.code in (1, 2)
    assert sentence in done.err


def test_a_run_without_a_port_imports_no_server(aiperf: Program, simulator: Simulator) -> None:
    aiperf.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    done = aiperf("profile", *LOAD, "--url", simulator.url, "--request-count", 4)
    assert done.code == 0
    assert "aiperf.run.run" in done.err
    assert "aiohttp" not in done.err


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus is installed: apt-get install prometheus")
def test_prometheus_scrapes_a_run(aiperf: Program, simulator: Simulator, tmp_path: Path) -> None:
    run = aiperf.start("profile", *LOAD, "--url", simulator.url, "--benchmark-duration", 120, "--api-port", 0,
                       "--request-rate", 20)  # fmt: skip
    url, token = url_of(run)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    jobs = [{"job_name": "aiperf", "scrape_interval": "1s", "static_configs": [{"targets": [url.removeprefix("http://")]}]}]
    config.write_text(json.dumps({"scrape_configs": jobs}))  # JSON is YAML
    words = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    with (tmp_path / "prometheus.txt").open("wb") as output:
        scraper = subprocess.Popen(["prometheus", *words], stdout=output, stderr=output)
    try:
        asked = f"http://127.0.0.1:{port}/api/v1/query?query={quote(QUERY)}"
        wait_for(lambda: get(asked)[0] == 200 and bool(get(asked)[1]["data"]["result"]))
        (found,) = get(asked)[1]["data"]["result"]
        assert float(found["value"][1]) > 0
        assert "benchmark_id" not in found["metric"]
    finally:
        scraper.terminate()
        scraper.wait()
    assert get(f"{url}/api/cancel", method="POST", token=token)[0] == 202
    run.end()
