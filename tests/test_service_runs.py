"""``aiperf service`` as a program, with real runs: asked over HTTP, judged by the simulator, killed at any instant."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program, heed_endings, wait_for

TOKEN = "a-token-of-24-characters"
KEY = "sk-canary-0123456789"


def file(url: str, **phase: Any) -> bytes:
    """A run's file with a key in it."""
    load = {"name": "profiling", "type": "concurrency", "concurrency": 2, **(phase or {"requests": 6})}
    return json.dumps({"benchmark": {
        "models": ["m"], "endpoint": {"url": url, "apiKey": KEY, "streaming": True}, "tokenizer": {"name": "builtin"},
        "datasets": [{"name": "main", "type": "synthetic", "prompts": {"isl": 8, "osl": 4}}], "phases": [load],
    }}).encode()  # fmt: skip


class Answer(NamedTuple):
    status: int
    content: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.content)


class Service:
    """A service on its port."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        token = folder.parent / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        self._words = [sys.executable, "-m", "aiperf", "service", "--port", "0", "--directory", str(folder)]
        self._words += ["--token-file", str(token), *words]
        self.begin()

    def begin(self) -> None:
        self.process = subprocess.Popen(
            self._words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=Program(self.folder.parent).environment,
            text=True, preexec_fn=heed_endings,  # noqa: PLW1509  # no thread of ours is there
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("the service is on "), (line, self.process.stderr and self.process.stderr.read())
        self.url = line.split()[-1]

    def ask(self, method: str, path: str, data: bytes | None = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        request = Request(self.url + path, data, {"Authorization": f"Bearer {TOKEN}", **named}, method=method)
        try:
            with urlopen(request, timeout=120) as answer:
                return Answer(answer.status, answer.read())
        except HTTPError as error:
            return Answer(error.code, error.read())

    def run(self, id_: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/runs/{id_}").said
        return found

    def ended(self, id_: str) -> dict[str, Any]:
        wait_for(lambda: self.run(id_)["state"] not in ("queued", "preparing", "running"), 300)
        return self.run(id_)

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def end(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=300)
        return self.process.returncode


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path / "service")
    yield made
    with contextlib.suppress(ProcessLookupError):
        made.process.kill()
    made.process.communicate()


def test_a_posted_run_is_run_and_its_archive_is_valid(
    service: Service, simulator: Simulator, aiperf: Program, tmp_path: Path
) -> None:
    dry = service.ask("POST", "/runs?dry_run=1", file(simulator.url), Content_Type="application/json")
    assert dry.status == 200 and dry.said["plan"]["models"] == ["m"] and service.ask("GET", "/runs").said == {"runs": []}
    wrong = service.ask("POST", "/runs", file(simulator.url, requests="x", prefill=1), Content_Type="application/json")
    assert wrong.status == 422 and all(fault["path"].startswith("benchmark.phases") for fault in wrong.said["faults"])
    own = service.ask("POST", "/runs", file("http://u:p@127.0.0.1:1").replace(b'"synthetic"', b'"file", "path": "/etc/passwd"'))
    assert own.status == 422 and b"may name no files here" in own.content

    posted = service.ask("POST", "/runs", file(simulator.url), Content_Type="application/json", Idempotency_Key="one")
    assert posted.status == 201
    run = service.ended(posted.said["id"])
    assert (run["state"], run["exit_code"]) == ("done", 0), run
    assert simulator.summary()["requests"] == 6
    with tarfile.open(fileobj=BytesIO(service.ask("GET", f"/runs/{run['id']}/archive").content)) as archive:
        archive.extractall(tmp_path / "got", filter="data")
    assert aiperf("validate", tmp_path / "got" / run["id"]).code == 0
    found = json.loads((tmp_path / "got" / run["id"] / "profile_export_aiperf.json").read_text())
    assert found["request_count"]["avg"] == 6 and run["numbers"]["request_count_avg"] == 6
    assert service.ask("POST", "/runs", file(simulator.url), Idempotency_Key="one").status == 200
    everything = [path for path in service.folder.rglob("*") if path.is_file()]
    assert everything and not [path for path in everything if KEY.encode() in path.read_bytes()]
    assert service.end() == 0


@pytest.mark.long
def test_events_have_states_and_snapshots(service: Service, simulator: Simulator) -> None:
    id_ = service.ask("POST", "/runs", file(simulator.url, duration=6), Content_Type="application/json").said["id"]
    events = service.ask("GET", f"/runs/{id_}/events").content.decode()
    states = [json.loads(line[6:])["state"] for line in events.splitlines() if line.startswith('data: {"id": ')]
    assert (states[-2:] == ["running", "done"] and "event: snapshot" in events) or "event: metrics" in events, events[:2000]


@pytest.mark.long
def test_a_file_of_the_operator_ends_with_its_exit_code(simulator: Simulator, tmp_path: Path) -> None:
    for url, code in ((simulator.url, 0), ("http://127.0.0.1:9", 1)):
        (tmp_path / "run.json").write_bytes(file(url))
        words = ["service", "--port", "0", "--directory", str(tmp_path / f"d{code}"), str(tmp_path / "run.json")]
        done = subprocess.run(
            [sys.executable, "-m", "aiperf", *words],
            env=Program(tmp_path).environment,
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stderr


@pytest.mark.long
def test_a_run_is_stopped_with_its_results(service: Service, simulator: Simulator) -> None:
    id_ = service.ask("POST", "/runs", file(simulator.url, duration=600), Content_Type="application/json").said["id"]
    wait_for(lambda: service.run(id_)["state"] == "running")
    wait_for(lambda: simulator.summary()["requests"] > 10)
    assert service.ask("DELETE", f"/runs/{id_}").status == 202
    run = service.ended(id_)
    assert (run["state"], run["exit_code"]) == ("cancelled", 130) and run["numbers"]["request_count_avg"] > 5


@pytest.mark.long
def test_a_killed_service_loses_doubles_and_leaves_nothing(service: Service, simulator: Simulator) -> None:
    """Fifty times at a random instant: what was answered 201 is there once, and no program of a run is left."""
    draw, answered = random.Random(4), set[str]()
    for _ in range(50):
        until_s = time.monotonic() + draw.uniform(0.0, 4.0)
        while time.monotonic() < until_s:
            with contextlib.suppress(OSError):
                answer = service.ask("POST", "/runs", file(simulator.url, requests=40).replace(KEY.encode(), b""))
                if answer.status == 201:
                    answered.add(answer.said["id"])
                elif answer.status == 429:
                    time.sleep(0.05)
        under_way = [run["id"] for run in service.ask("GET", "/runs").said["runs"] if run["state"] in ("preparing", "running")]
        service.kill()
        service.begin()
        wait_for(lambda: not programs(service.folder) or len(programs(service.folder)) == 1)
        runs = service.ask("GET", "/runs").said["runs"]
        listed = [run["id"] for run in runs]
        assert len(listed) == len({*listed})
        ended = {run["id"] for run in runs if run["state"] in ("done", "failed", "cancelled", "interrupted")}
        assert {*listed} | ended >= answered - forgotten(runs, answered), "none is lost"
        for id_ in under_way:
            assert service.run(id_).get("state", "gone") not in ("preparing", "running", "queued")


def forgotten(runs: list[dict[str, Any]], answered: set[str]) -> set[str]:
    """Runs that may be gone, because twenty later ones have ended."""
    ended = sum(run["state"] in ("done", "failed", "cancelled", "interrupted") for run in runs)
    oldest = min((run["id"] for run in runs), default="")
    return {id_ for id_ in answered if ended >= 20 and id_[:15] <= oldest[:15]}


def programs(folder: Path) -> list[int]:
    """Programs of runs below the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes()
            if b"profile\0--config" in words and os.fsencode(folder) in words:
                found.append(int(entry.parent.name))
    return found


@pytest.mark.long
def test_a_thousand_posts_at_once_are_taken_or_told_when(service: Service, simulator: Simulator) -> None:
    from concurrent.futures import ThreadPoolExecutor

    content = file(simulator.url, duration=600)
    with ThreadPoolExecutor(100) as pool:
        statuses = [*pool.map(lambda _: service.ask("POST", "/runs", content).status, range(1000))]
    assert {*statuses} <= {201, 429, 503} and statuses.count(201) in (16, 17)
    assert len(service.ask("GET", "/runs").said["runs"]) == statuses.count(201)
    os.kill(service.process.pid, signal.SIGTERM)
    os.kill(service.process.pid, signal.SIGTERM)
    service.process.communicate(timeout=300)
    assert service.process.returncode == 0
