"""Sites in another network: what a listener on the channel hears, and a wire that is cut.

Skipped with the reason where this user makes no network namespaces, or no server of ssh can be started.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from far_site import FarSite, far_site
from heard_packets import listening
from program import Done, Program, variables_of, wait_for
from requirements import ROOT
from rogues import install_from
from ssh_server import NoSshError
from two_networks import Namespace, NoNetworksError

pytestmark = pytest.mark.long
ANNEX = ROOT / "tests" / "strangers" / "annex"
_PORT = 8000
_ENOUGH_BYTES = 10_000
Truth = Callable[[], dict[str, Any]]


@contextlib.contextmanager
def simulator_in(namespace: Namespace) -> Iterator[Truth]:
    """A simulator at port 8000 of the namespace; gives its truth."""
    words = [sys.executable, "-m", "aiperf", "simulate", "--port", _PORT, "--decode-ms", 1]
    with subprocess.Popen(namespace.command(words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            process.stdout.readline()

            def truth() -> dict[str, Any]:
                with urlopen(f"http://127.0.0.1:{_PORT}/truth", timeout=60) as page:
                    found: dict[str, Any] = json.load(page)
                return found

            yield lambda: namespace.inside(truth)
        finally:
            process.send_signal(signal.SIGINT)


@contextlib.contextmanager
def networks(folder: Path, delay_s: float, loss: float) -> Iterator[FarSite]:
    try:
        with far_site(folder, delay_s, loss) as far:
            yield far
    except (NoNetworksError, NoSshError) as error:
        pytest.skip(f"no site in another network here: {error}")


def profile(*more: str | int | Path) -> list[str | int | Path]:
    return [
        "profile", "--model", "sim", "--url", f"http://127.0.0.1:{_PORT}", "--tokenizer", "builtin", "--osl", 4, "--streaming",
        "--random-seed", 7, "--ui", "none", "--artifact-dir", "run", *more,
    ]  # fmt: skip


def program_in(namespace: Namespace, folder: Path, site: Path | None = None) -> Program:
    aiperf = Program(folder, site=site)
    aiperf.program = namespace.command(aiperf.program)
    return aiperf


def test_a_site_that_was_cut_off_for_ten_seconds_loses_no_arrival(tmp_path: Path) -> None:
    """20 ms each way, and 1 % of the packets are lost.  The site sends on while nobody hears of it."""
    with networks(tmp_path, 0.02, 0.01) as far, simulator_in(far.there) as truth, far.engine() as engine:
        load = ("--isl", 30, "--request-rate", 20, "--request-count", 300)
        started = program_in(far.here, tmp_path).start(*profile(*load, *engine))
        wait_for(lambda: truth()["summary"]["requests"] > 20)
        far.wire.cut()
        carried, sent = far.wire.carried_bytes(1), truth()["summary"]["requests"]
        wait_for(lambda: truth()["summary"]["requests"] >= sent + 200)
        assert far.wire.carried_bytes(1) == carried, "the wire was not cut"
        far.wire.mend()
        done = started.end()
        seen = {row["request_id"] for row in truth()["requests"]}
    assert done.code == 0, done.err
    results = Done(done.code, done.out, done.err, tmp_path / "run")
    rows = results.lines("profile_export_arrivals.jsonl")
    assert sorted(row["n"] for row in rows) == [*range(300)]
    assert {row["outcome"] for row in rows} == {"completed"} and {row["x_request_id"] for row in rows} == seen
    assert results.json()["request_count"]["avg"] == 300 and results.json()["is_complete"]


@pytest.mark.parametrize("engine", ["annex", "ssh"])
def test_a_listener_on_the_channel_hears_neither_key_nor_prompt(tmp_path: Path, engine: str) -> None:
    """Nor does who lists processes, or reads the logs."""
    key, prompt = f"key-{secrets.token_hex(16)}", f"prompt-{secrets.token_hex(16)}"
    data = tmp_path / "data.jsonl"
    data.write_text(json.dumps({"text": prompt}) + "\n")
    load = ("--request-rate", 20, "--request-count", 60, "--api-key", key, "--input-file", data)
    words = profile(*load, "--custom-dataset-type", "single_turn")
    with contextlib.ExitStack() as stack:
        far = stack.enter_context(networks(tmp_path, 0.0, 0.0))
        if engine == "ssh":  # the run listens in its network, the server is heard in that of the site
            there, places, site = far.there, [(far.here, "lo"), (far.here, "wire"), (far.there, "lo")], None
            words += stack.enter_context(far.engine())
        else:
            there, places, site = far.here, [(far.here, "lo")], tmp_path / "packages"
            install_from(site, ANNEX)
            (tmp_path / "attic").mkdir()
            words += ["--engine", "annex", "--annex-rooms", "attic"]
        truth = stack.enter_context(simulator_in(there))
        heard = [stack.enter_context(listening(*place)) for place in places]
        started = program_in(far.here, tmp_path, site).start(*words)
        wait_for(lambda: truth()["summary"]["requests"] > 10)
        told = b"\n".join(said_of_processes(started.process.pid))
        assert b"aiperf.run.site_process" in told and key.encode() not in told and prompt.encode() not in told
        done = started.end()
        assert done.code == 0, done.err
        assert truth()["summary"]["requests"] == 60
    # What is looked for is found where it may stand: in the requests.
    requests, others = heard[-1].of(_PORT), b"".join(each.beside(_PORT) for each in heard)
    assert requests.count(key.encode()) >= 60 and requests.count(prompt.encode()) >= 60
    assert len(others) > _ENOUGH_BYTES, "the channel was not heard"
    assert key.encode() not in others and prompt.encode() not in others
    logs = [path.read_text() for path in (tmp_path / "run" / "logs").iterdir()] + [done.out, done.err]
    assert not any(key in log or prompt in log for log in logs)


def said_of_processes(run: int) -> Iterator[bytes]:
    """Command lines and environments of all processes but that of the run, which has the key in its command line."""
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == run:
            continue
        with contextlib.suppress(OSError):
            yield (entry / "cmdline").read_bytes()
            yield b"\n".join(variables_of(int(entry.name)))
