"""Hostile clients of one ``aiperf service``: curl and raw sockets get a sentence each, and a run under way goes on."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiperf_command_service.checking import check
from aiperf_command_service.messages import Ask
from aiperf_command_simulate.testing import Simulator
from program import wait_for
from test_service_runs import TOKEN, Service, file

PROBLEM = "application/problem+json"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)
)
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"benchmark": {"modles": ["m"]}}, "modles"),
    "file of the machine": ({"input": "/etc/passwd"}, "is not below"), "parent": ({"input": "../secret"}, "is not below"),
    "link": ({"input": "out/secret"}, "is not below"), "variable": ({"key": "${AWS_SECRET}"}, "AWS_SECRET"),
    "no plugin": ({"type": "nonesuch"}, "nonesuch"),
}  # fmt: skip
"""By name, what a run's file has, and what its fault says."""


def hostile(about: dict[str, Any]) -> bytes:
    """A run's file, otherwise valid."""
    found = json.loads(file("http://127.0.0.1:9"))
    own = found["benchmark"]
    if "input" in about:
        own["datasets"] = [{"name": "main", "type": "file", "path": about["input"], "format": "single_turn"}]
    own["endpoint"] |= {"apiKey": about["key"]} if "key" in about else {}
    own["endpoint"] |= {"type": about["type"]} if "type" in about else {}
    own |= about.get("benchmark", {})
    return json.dumps(found).encode()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (tmp_path / "secret").write_text('{"text": "x"}\n')
    (folder / "out").symlink_to(tmp_path)
    return folder


@pytest.mark.parametrize("name", FAULTS)
def test_a_hostile_file_has_a_fault(data: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    about, said = FAULTS[name]
    path = tmp_path / "run.yaml"
    path.write_bytes(hostile(about))
    monkeypatch.delenv("AWS_SECRET", raising=False)  # as in the process that checks
    found = check(path, Ask(str(tmp_path / "results"), str(data)))
    assert [fault for fault in found.faults if said in f"{fault.path} {fault.sentence}"], found


@pytest.fixture
def service(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("AWS_SECRET", "never-shown")
    made = Service(tmp_path / "service", "--data", str(data), "--queue", "2")
    yield made
    with contextlib.suppress(ProcessLookupError):
        made.process.kill()
    made.process.communicate()


def curl(service: Service, path: str, *words: str, token: str = TOKEN) -> tuple[int, str, str]:
    """Status, type and body of what curl gets."""
    given = ["-H", f"Authorization: Bearer {token}"] if token else []
    command = ["curl", "-s", "--max-time", "120", "-w", "\n%{http_code} %{content_type}", *given, *words, service.url + path]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    body, _, last = out.rpartition("\n")
    status, _, kind = last.partition(" ")
    return int(status), kind.partition(";")[0], body


def raw(service: Service, content: bytes, *, shut: bool = False) -> tuple[int, bytes]:
    """Status and bytes that a new connection gets; 0 for none.  *shut*: it sends no more, and says so."""
    at = urlsplit(service.url)
    with socket.create_connection((at.hostname, at.port), timeout=120) as own:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            own.sendall(content)
            if shut:
                own.shutdown(socket.SHUT_WR)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := own.recv(1 << 16):
                got += piece
    found = re.match(rb"HTTP/1.\d (\d+)", got)
    return int(found[1]) if found else 0, got


def head(method: str, path: str, *more: str, host: str = "127.0.0.1") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {TOKEN}", *more, "", ""]
    return "\r\n".join(lines).encode()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_hostile_clients_get_sentences_and_harm_no_run(service: Service, simulator: Simulator, tmp_path: Path) -> None:
    run = service.ask("POST", "/runs", file(simulator.url, duration=600), Content_Type="application/json").said["id"]
    wait_for(lambda: service.run(run)["state"] == "running")

    def told(status: int, answer: tuple[int, str, str], words: str = "") -> None:
        code, kind, body = answer
        assert (code, kind) == (status, PROBLEM) and words in json.loads(body)["detail"], answer

    posted = tmp_path / "posted"
    for content, status, words in [
        (b"x" * (2 << 20), 413, "1 MiB"), (b"\x00\xff\xfe garbage {{{", 422, ""), (b"[" * 100_000, 422, ""),
        (BOMB.encode(), 422, ""), *((hostile(about), 422, "") for about, _ in FAULTS.values()),
    ]:  # fmt: skip
        posted.write_bytes(content)
        answer = curl(service, "/runs", "--data-binary", f"@{posted}")
        told(status, answer, words)
        assert "never-shown" not in answer[2] and "Traceback" not in answer[2]
    told(401, curl(service, "/runs", token=""), "token")
    told(401, curl(service, "/runs", token="x" * 24), "token")
    told(403, curl(service, "/runs", "-H", "Host: evil.example"), "evil.example")
    told(404, curl(service, "/runs/..%2f..%2fetc%2fpasswd"))
    told(404, curl(service, f"/runs/{run}/files/..%2f..%2fstate.json"))
    told(400, curl(service, "/runs", "-X", "POST"), "no body")

    assert raw(service, b"\x00\x01\x02\r\n\r\n")[0] == 400
    assert raw(service, head("GET", "/runs", "X: " + "a" * 20_000))[0] == 400
    assert raw(service, head("POST", "/runs", "Content-Length: 100") + b"benchmark:", shut=True)[0] in (0, 400)
    assert raw(service, head("POST", "/runs", "Transfer-Encoding: chunked") + b"zz\r\nx\r\n")[0] == 400
    slow = raw(service, head("GET", "/runs")[:-2] + b"X-Slow: 1")  # and no end of the headers
    assert slow[0] == 408 and PROBLEM.encode() in slow[1]

    streams = []
    at = urlsplit(service.url)
    for _ in range(100):
        streams.append(socket.create_connection((at.hostname, at.port), timeout=120))
        streams[-1].sendall(head("GET", f"/runs/{run}/events"))
        assert streams[-1].recv(12) == b"HTTP/1.1 200"
    told(503, curl(service, f"/runs/{run}/events"), "100 streams")
    for each in streams:
        each.close()  # they hang up, and read nothing before
    wait_for(lambda: curl(service, f"/runs/{run}/api/events", "-m", "1")[0] == 200)

    for _ in range(2):
        assert service.ask("POST", "/runs", file(simulator.url), Content_Type="application/json").status == 201
    posted.write_bytes(file(simulator.url))
    told(429, curl(service, "/runs", "--data-binary", f"@{posted}"), "2 runs wait")
    assert service.run(run)["state"] == "running" and simulator.summary()["requests"] > 0
    assert service.ask("DELETE", f"/runs/{run}").status == 202
    assert service.ended(run)["state"] == "cancelled"
    assert all(service.ended(each["id"])["state"] == "done" for each in service.ask("GET", "/runs").said["runs"][:2])
    assert service.end() == 0


@pytest.mark.long
def test_runs_that_end_badly_harm_no_other(service: Service, simulator: Simulator) -> None:
    """One is ended while it starts, twice; one is killed under way; the next one is whole."""
    content = file(simulator.url, duration=600)
    first, second = (service.ask("POST", "/runs", content, Content_Type="application/json").said["id"] for _ in range(2))
    assert {service.ask("DELETE", f"/runs/{first}").status for _ in range(2)} <= {202, 200}
    if service.ask("GET", f"/runs/{first}").status == 200:
        assert service.ended(first)["state"] == "cancelled"
    wait_for(lambda: service.run(second)["state"] == "running" and simulator.summary()["requests"] > 20)
    state = json.loads((service.folder / "runs" / second / "state.json").read_bytes())
    os.kill(state["pid"], signal.SIGKILL)
    killed = service.ended(second)
    assert (killed["state"], killed["exit_code"]) == ("failed", 137) and "SIGKILL" in killed["reason"]
    assert killed["numbers"]["request_count_avg"] > 0, "what was observed is reported"
    third = service.ask("POST", "/runs", file(simulator.url), Content_Type="application/json").said["id"]
    assert service.ended(third)["state"] == "done"
