"""Bad days of sites: strangers at the channel, sites that are slow, full, poor or of another version, and hasty ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq
from aiperf_command_simulate.testing import Simulator
from annex_runs import Annex, ledger, listening_ports
from program import Done, wait_for

pytestmark = pytest.mark.long
LOAD = ("--tokenizer", "builtin", "--osl", 4, "--request-rate", 20, "--request-count", 40)
TWO = ("attic", "barn")


@pytest.fixture
def annex(tmp_path: Path, simulator: Simulator) -> Annex:
    return Annex(tmp_path, simulator)


def assert_refused(done: Done, annex: Annex, *said: str) -> None:
    """It ended before the load, with a sentence that has these words."""
    assert done.code == 1 and annex.simulator.summary()["requests"] == 0, done.err
    (sentence,) = [line for line in done.err.splitlines() if line.startswith("error: site ")]
    assert all(part in sentence for part in said), sentence


def assert_whole(done: Done, annex: Annex, requests: int) -> None:
    """Every arrival was sent once, and counts."""
    assert done.code == 0, done.err
    rows = ledger(done)
    assert [row["n"] for row in rows] == [*range(requests)] and {row["outcome"] for row in rows} == {"completed"}
    assert {row["x_request_id"] for row in rows} == {row["request_id"] for row in annex.simulator.truth()["requests"]}


def test_strangers_at_the_channel_change_nothing(annex: Annex) -> None:
    """One sends garbage, one has no key, and one that of another run, whose address it mistook."""
    started = annex.start(*LOAD, rooms=TWO)
    started.hears("Phase profiling (profiling) started")
    context = zmq.Context()
    ports = [*listening_ports(started.process.pid)]
    assert ports, "the run listens nowhere"
    for port in ports:
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n" + os.urandom(10_000))
        for keys in (None, zmq.curve_keypair()):
            peer = context.socket(zmq.DEALER)
            peer.setsockopt(zmq.LINGER, 0)
            if keys is not None:
                peer.curve_serverkey, (peer.curve_publickey, peer.curve_secretkey) = zmq.curve_keypair()[0], keys
            peer.connect(f"tcp://127.0.0.1:{port}")
            peer.send(os.urandom(1000))
    done = annex.end(started)
    context.destroy(0)
    assert_whole(done, annex, 40)


TWICE = """
import subprocess, sys
line = sys.stdin.buffer.readline()
sites = [subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE) for _ in range(2)]
for site in sites:
    site.stdin.write(line)
    site.stdin.flush()
sys.stdin.buffer.read()
"""
"""Starts the site twice; both end with their standard input."""
GARBAGE = """
import sys
import msgspec
from aiperf.sites.channel import SiteLine
from aiperf.sites.messages import SiteKeys
line = SiteLine(msgspec.json.decode(sys.stdin.buffer.readline(), type=SiteKeys))
line._socket.send(b"garbage")
sys.stdin.buffer.read()
"""


def test_a_site_that_is_started_twice_sends_each_arrival_once(annex: Annex) -> None:
    """The second program waits for the first one's end: the place is held."""
    annex.enter_by_python(TWICE)
    assert_whole(annex(*LOAD, rooms=TWO), annex, 40)


CONNECTS_TWICE = """
import sys
import msgspec
from aiperf.sites.channel import SiteLine
from aiperf.sites.messages import SiteKeys, SiteUp
keys = msgspec.json.decode(sys.stdin.buffer.readline(), type=SiteKeys)
for line in [SiteLine(keys), SiteLine(keys)]:
    line.send(SiteUp("0"))
sys.stdin.buffer.read()
"""


SAYS = """
import sys
import msgspec
from aiperf.processes import control
from aiperf.sites import messages
from aiperf.sites.channel import SiteLine
line = SiteLine(msgspec.json.decode(sys.stdin.buffer.readline(), type=messages.SiteKeys))
line.send({message})
sys.stdin.buffer.read()
"""
FOREIGN = SAYS.format(message='messages.FromChild(control.encode(control.Hello("worker", 99)))')


@pytest.mark.parametrize(("program", "said"), [
    (CONNECTS_TWICE, "two programs have connected with its key"), (GARBAGE, "it sent what is no message of a site"),
    (SAYS.format(message='messages.FromChild(b"garbage")'), "it sent what is no message of its processes"),
    (FOREIGN, "it sent what is no message of its processes"),
    (SAYS.format(message="messages.Claim(99, 0, 1, 1)"), "it claims numbers of a phase that the run does not have"),
])  # fmt: skip
def test_a_site_that_connects_twice_or_sends_garbage_is_named(annex: Annex, program: str, said: str) -> None:
    annex.enter_by_python(program)
    assert_refused(annex(*LOAD, rooms=TWO), annex, said)


def test_a_site_of_another_version_is_refused(annex: Annex) -> None:
    info = annex.folder / "others" / "aiperf_endpoint_chat-9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: aiperf-endpoint-chat\nVersion: 9\n")
    annex.enter_through(f'export PYTHONPATH="{info.parent}:$PYTHONPATH"; exec "$@"')
    done = annex(*LOAD, rooms=TWO)
    assert_refused(done, annex, ": it has aiperf-endpoint-chat 9, and the run has ", "install the same versions")


TRANSFORMERS = """
from pathlib import Path

class AutoTokenizer:
    vocab_size = 256
    chat_template = eos_token_id = None

    @classmethod
    def from_pretrained(cls, name, **options):
        if not Path(name).is_dir():
            raise OSError(f"{name} is not there")
        return cls()

    def encode(self, text, **options):
        return list(text.encode())

    def decode(self, ids, **options):
        return bytes(ids).decode("utf-8", "replace")
"""


def test_a_tokenizer_that_a_site_lacks_is_named_before_the_load(annex: Annex) -> None:
    """One of older files, which transformers reads, is not sent."""
    pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    (annex.folder.parent / "packages" / "transformers.py").write_text(TRANSFORMERS)
    (annex.folder / "own").mkdir()
    (annex.folder / "own" / "vocab.txt").write_text("the")
    annex.enter_through('export HF_HOME="$place/cache" HF_HUB_OFFLINE=1; exec "$@"')
    done = annex("--tokenizer", "own", *LOAD[2:], rooms=TWO)
    assert_refused(done, annex, "the tokenizer 'own' is unavailable")


def test_a_site_with_few_descriptors_refuses_many_connections(annex: Annex) -> None:
    annex.enter_through('ulimit -n 300; exec "$@"')
    load = ("--tokenizer", "builtin", "--osl", 4, "--concurrency", 600, "--request-count", 600)
    assert_refused(annex(*load, rooms=TWO), annex, "concurrency 300 needs 364 open files in the worker; the limit is 300")


def test_a_site_with_hardly_any_descriptors_is_refused(annex: Annex) -> None:
    annex.enter_through('ulimit -n 100; exec "$@"')
    said = "its command exited with 1 (the limit of open files is 100; 256 are needed (raise it: ulimit -n 4096))"
    assert_refused(annex(*LOAD, rooms=TWO), annex, said)


SHORT = "export TMPDIR=/mnt"
"""A directory whose path is not too long for a socket, as those of tests may be."""


def mounting(annex: Annex, mount: str, before: str = "") -> None:
    """Start each site behind a mount of its own, in ``$place``, and a script *before*; skipped where this user can't mount."""
    if shutil.which("unshare") is None or os.system("unshare -rm mount -t tmpfs none /mnt 2>/dev/null"):
        pytest.skip("this user can't mount a file system")
    annex.enter_through(f"""{before}exec unshare -rm sh -c '{mount} && cd "$TMPDIR" && exec "$@"' sh "$@" """)


def test_a_site_whose_disk_is_full_before_the_load_says_so(annex: Annex) -> None:
    mounting(annex, f"mount -t tmpfs -o size=8k none /mnt && {SHORT}")
    done = annex(*LOAD, rooms=TWO)
    assert_refused(done, annex, "No space left on device: ", "/aiperf-site-")  # whichever speaks first


def test_a_site_that_can_write_nowhere_says_so(annex: Annex) -> None:
    mounting(annex, 'mount -o remount,bind,ro / && mount -t tmpfs -o ro none /dev/shm && mount -t tmpfs -o ro none "$TMPDIR"')
    assert_refused(annex(*LOAD, rooms=TWO), annex, "its command exited with 1 (", "/runs/")


@pytest.mark.parametrize(("rooms", "level"), [("every room", "records"), ("one room", "records"), ("one room", "raw")])
def test_a_disk_that_fills_at_a_site_ends_the_load_and_loses_nothing(annex: Annex, rooms: str, level: str) -> None:
    others = "" if rooms == "every room" else '[ "${place##*/}" = barn ] || exec "$@"\n'
    mounting(annex, f"mount -t tmpfs -o size=3m none /mnt && {SHORT}", others)
    load = ("--tokenizer", "builtin", "--osl", 40, "--num-dataset-entries", 5, "--request-rate", 100, "--request-count", 9000)
    done = annex(*load, "--export-level", level, rooms=TWO)
    assert done.code == 1 and "/journal can't be written: No space left on device" in done.err
    results = done.json()
    assert results["is_complete"] is False and "No space left on device" in results["incomplete_reason"]
    assert any(f"site {room}: " in done.last_words for room in TWO), done.last_words
    rows = ledger(done)
    assert [row["n"] for row in rows] == [*range(9000)]
    completed = {row["x_request_id"] for row in rows if row["outcome"] == "completed"}
    assert completed == {row["request_id"] for row in annex.simulator.truth()["requests"] if row["outcome"] == "completed"}
    assert {row["outcome"] for row in rows if row.get("x_request_id") not in completed} == {"never_sent"}
    assert results["request_count"]["avg"] == len(completed) > 100
    if level == "raw":
        assert len(done.lines("profile_export_raw.jsonl")) == len(completed)
    assert [path for room in TWO for path in (annex.folder / room).iterdir()] == []
    again = annex.aiperf("report", "run", "--output", "again")
    assert Done(again.code, "", "", annex.folder / "again").json()["request_count"] == results["request_count"]


NOT_KEPT = """
import os
def no_room(fd):
    raise OSError(28, "No space left on device")
os.fdatasync = no_room
"""
"""A disk that has no room for a file that was written, as a file system in a network may say late."""


def test_a_disk_that_keeps_no_columns_leaves_reducing_to_the_run(annex: Annex) -> None:
    (annex.folder / "sitecustomize.py").write_text(NOT_KEPT)
    annex.enter_through(f'export PYTHONPATH="{annex.folder}:$PYTHONPATH"; exec "$@"')
    done = annex(*LOAD, rooms=TWO)
    assert_whole(done, annex, 40)
    assert any("No space left on device" in warning for warning in done.json()["warnings"]), done.json()["warnings"]
    assert done.json()["is_complete"] and done.json()["request_count"]["avg"] == 40
    assert not [*(done.artifacts / "journal").glob("shard-*")]


def test_a_site_that_stops_for_five_seconds_goes_on(annex: Annex) -> None:
    started = annex.start(*LOAD[:-1], 200)
    wait_for(lambda: annex.simulator.summary()["requests"] > 10)
    stopped = annex.processes_in("barn")
    assert len(stopped) >= 3  # the site, a worker, a reducer
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    sent = annex.simulator.summary()["requests"]
    wait_for(lambda: annex.simulator.summary()["requests"] >= sent + 66)  # five seconds of the two others
    for pid in stopped:
        os.kill(pid, signal.SIGCONT)
    assert_whole(annex.end(started), annex, 200)


def test_more_sites_than_arrivals_are_no_trouble(annex: Annex) -> None:
    done = annex("--tokenizer", "builtin", "--osl", 4, "--request-rate", 20, "--request-count", 2)
    assert_whole(done, annex, 2)
    assert len(done.json()["measurement"]["sites"]) == 3


def test_more_sites_than_workers_are_refused(annex: Annex) -> None:
    done = annex(*LOAD, "--workers", 2)
    assert done.code == 1 and annex.simulator.summary()["requests"] == 0
    assert "error: --workers 2 can't be divided among 3 sites\n  use --workers 3" in done.err


@pytest.mark.parametrize("script", ["exec sleep 1000", 'exec "$@"'], ids=["that never speak", "that come up"])
def test_an_interrupt_while_sites_start_ends_them(annex: Annex, script: str) -> None:
    annex.enter_through(f'echo here > "$place/started"; {script}')
    started = annex.start(*LOAD)
    wait_for(lambda: all((annex.folder / room / "started").exists() for room in ("attic", "barn", "cellar")))
    started.interrupt()
    done = started.end()
    assert done.code == 130 and "the load had not begun: there are no results" in done.err
    assert started.survivors() == [] and annex.simulator.summary()["requests"] == 0
    assert [path for room in TWO for path in (annex.folder / room).glob("aiperf-*")] == []


def test_two_runs_in_the_same_rooms_do_not_meet(annex: Annex) -> None:
    both = [annex.start(*LOAD, rooms=TWO, name=name) for name in ("one", "other")]
    done = [annex.end(run, name) for run, name in zip(both, ("one", "other"), strict=True)]
    seen = {row["request_id"] for row in annex.simulator.truth()["requests"]}
    ids = [{row["x_request_id"] for row in ledger(each)} for each in done]
    assert [each.code for each in done] == [0, 0] and [len(each) for each in ids] == [40, 40]
    assert ids[0] | ids[1] == seen and len(seen) == 80
    assert all(list((annex.folder / room).iterdir()) == [] for room in TWO)


def test_a_site_ends_with_its_run_that_was_killed(annex: Annex) -> None:
    started = annex.start(*LOAD[:-1], 4000, rooms=TWO)
    wait_for(lambda: annex.simulator.summary()["requests"] > 10)
    started.process.kill()
    started.process.communicate()
    gone: Callable[[], bool] = lambda: not any(annex.processes_in(room) for room in TWO)  # noqa: E731
    wait_for(gone)
    assert [path for room in TWO for path in (annex.folder / room).iterdir()] == []
