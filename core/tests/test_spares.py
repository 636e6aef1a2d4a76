"""Processes that are forked ahead: once they begin they are as new ones, and where they aren't needed they end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SIDE = """
import json, logging, os, signal, sys, threading

def main(words):
    print("said to standard output")
    logging.getLogger("aiperf.side").warning("a warning")
    logging.getLogger("aiperf.side").info("no news")
    told = {
        "words": words, "argv": sys.orig_argv[1:4], "pid": os.getpid(), "group": os.getpgrp(),
        "handled": callable(signal.getsignal(signal.SIGUSR1)), "secret": "SOME_TOKEN" in os.environ, "kept": os.environ["KEPT"],
        "open": sorted(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")),
        "environ": open("/proc/self/environ").read(), "first": [os.pread(int(word), 9, 0).decode() for word in words[1:]],
        "title": open("/proc/self/cmdline").read().replace(chr(0), " "), "asked": "", "early": "aiperf_early" in sys.modules,
    }
    while piece := os.read(0, 4096):
        told["asked"] += piece.decode()
    os.write(int(words[0]), json.dumps(told).encode() + b"\\n")
    if told["asked"].startswith('"fail'):
        raise ValueError("as asked")

if __name__ == "__main__":
    main(sys.argv[1:])
"""
PARENT = """
import json, os, signal, sys, threading
import logging
from pathlib import Path
logging.getLogger("aiperf").addHandler(logging.StreamHandler(sys.stdout))
logging.getLogger("aiperf").setLevel(logging.DEBUG)
logging.getLogger("aiperf").propagate = False
sys.modules["aiperf_early"] = sys
from aiperf.processes.local import LocalProcess, SideProcess, module_command
from aiperf.processes.spare import SPARES
signal.signal(signal.SIGUSR1, lambda *_: None)
kept = open("/dev/null")
os.environ["KEPT"] = "1"

def use(message):
    process = SideProcess("side", log=Path("log"))
    process.send(message)
    process.end(60)
    lines = process.receive()
    process.close()
    return json.loads(lines[0]), process.poll()

def share():
    read, write = os.pipe()
    memories = [os.memfd_create(text) for text in ("one", "two")]
    for memory, text in zip(memories, (b"first one", b"first two")):
        os.write(memory, text)
    process = LocalProcess(module_command("side", write, *memories), Path("log"), [write, *memories])
    os.close(write)
    process.let_go()
    told = json.loads(os.read(read, 1 << 16))
    return told, process.wait(60), memories

def children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()

found = {"pid": os.getpid()}
with SPARES.forked(2):
    found["forked"] = len(children())
    found["spare"] = use("hello")
    found["left"] = len(children())
with SPARES.forked(1):
    found["sharing"] = share()
found["none left"] = len(children())
with SPARES.forked(1):
    found["failed"] = use("fail")
threading.Thread(target=threading.Event().wait, daemon=True).start()
with SPARES.forked(1):
    found["beside a thread"] = len(children())
    found["new"] = use("hello")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("spares")
    (folder / "side.py").write_text(SIDE)
    done = subprocess.run(
        [sys.executable, "-c", PARENT, "a long command line " * 20], cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "SOME_TOKEN": "hunter2"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    *printed, last = done.stdout.splitlines()
    known: dict[str, Any] = json.loads(last)
    return {**known, "printed": printed, "log": (folder / "log").read_text()}


def test_a_forked_process_is_as_a_new_one(found: dict[str, Any]) -> None:
    (spare, code), (new, _) = found["spare"], found["new"]
    shared = {"argv": ["-P", "-m", "side"], "handled": False, "secret": False, "kept": "1", "asked": '"hello"\n'}
    for each in (spare, new):
        assert {name: each[name] for name in shared} == shared
    assert spare["group"] == spare["pid"] != found["pid"] and code == 0
    assert spare["open"] == [0, 1, 2, int(spare["words"][0])], "no file of its parent's"
    assert f"-P -m side {spare['words'][0]}" in spare["title"] and "a long command" not in spare["title"]


def test_secrets_of_its_parent_are_not_in_its_environment(found: dict[str, Any]) -> None:
    for each in (found["spare"][0], found["new"][0]):
        assert "hunter2" not in each["environ"]


def test_it_has_descriptors_under_their_numbers(found: dict[str, Any]) -> None:
    told, code, memories = found["sharing"]
    assert told["first"] == ["first one", "first two"] and code == 0
    assert told["open"] == sorted([0, 1, 2, *(int(word) for word in told["words"])])
    assert told["words"][1:] == [*map(str, memories)]


def test_it_has_what_its_parent_imported(found: dict[str, Any]) -> None:
    assert (found["spare"][0]["early"], found["new"][0]["early"]) == (True, False)


def test_what_it_prints_and_logs_is_in_the_log(found: dict[str, Any]) -> None:
    assert found["printed"] == []
    assert found["log"].count("said to standard output") == found["log"].count("a warning\n") == 4
    assert "no news" not in found["log"]


def test_its_failure_is_its_exit_code(found: dict[str, Any]) -> None:
    assert found["failed"][1] == 1
    assert "ValueError: as asked" in found["log"]


def test_processes_that_are_not_needed_end(found: dict[str, Any]) -> None:
    assert (found["forked"], found["left"], found["none left"]) == (2, 1, 0)


def test_nothing_is_forked_beside_a_thread(found: dict[str, Any]) -> None:
    assert found["beside a thread"] == 0 and found["new"][1] == 0
