"""Whether servers are on the machine whose GPUs are sampled."""

from __future__ import annotations

import socket

import pytest
from aiperf_gpus.here import elsewhere, warning

FAR = "http://192.0.2.77:8000"
"""An address for documents, which no machine has."""


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:8000", "unix:/run/server"])
def test_this_machine_is_not_elsewhere(url: str) -> None:
    assert elsewhere([url]) == [] and warning("pynvml", [url]) == ""


def test_this_machines_own_name_is_not_elsewhere() -> None:
    assert elsewhere([f"http://{socket.gethostname()}:8000"]) == []


def test_a_server_elsewhere_is_said_once() -> None:
    said = warning("amdsmi", [FAR, f"{FAR}/v1", "http://localhost:8000"])
    assert said.startswith("--gpu-telemetry amdsmi samples the GPUs of this machine, and the server is at 192.0.2.77: energy")
