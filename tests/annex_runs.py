"""Runs at sites in other directories of this machine, by the package of tests/strangers/annex, or by another program there."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf_command_simulate.testing import Simulator
from program import Done, Program, Running, variables_of
from requirements import ROOT
from rogues import install_from

ANNEX = ROOT / "tests" / "strangers" / "annex"
ROOMS = ("attic", "barn", "cellar")
_WORDS = 3
"""Words of the command of a site before its interpreter: ``-C DIRECTORY TMPDIR=DIRECTORY``."""


class Annex:
    """Runs of a simulator, with rooms for its sites."""

    def __init__(self, folder: Path, simulator: Simulator) -> None:
        install_from(folder / "packages", ANNEX)
        self.folder = folder / "runs"
        self.folder.mkdir()
        for room in ROOMS:
            (self.folder / room).mkdir()
        self.aiperf, self.simulator = Program(self.folder, site=folder / "packages"), simulator

    def enter_through(self, script: str) -> None:
        """Let a script of the shell start each site.  ``$place`` is its room, ``"$@"`` its interpreter with its words."""
        door = self.folder / "bin" / "env"
        door.parent.mkdir()
        door.write_text(f'#!/bin/sh\nplace=$2\nshift {_WORDS}\ncd "$place"\nexport TMPDIR="$place"\n{script}\n')
        door.chmod(0o755)
        self.aiperf.environment["PATH"] = f"{door.parent}:{self.aiperf.environment['PATH']}"
        self.aiperf.program = [sys.executable, "-m", "aiperf"]

    def enter_by_python(self, program: str) -> None:
        """Let a program in Python be each site."""
        path = self.folder / "site.py"
        path.write_text(program)
        self.enter_through(f'exec {shlex.join([sys.executable, "-P", str(path)])} "$@"')

    def words(self, *more: str | int | Path, rooms: tuple[str, ...] = ROOMS, name: str = "run") -> list[str | int | Path]:
        return [
            "profile", "--model", "sim", "--url", self.simulator.url, "--isl", 30,
            "--streaming", "--random-seed", 7, "--ui", "none", "--artifact-dir", name, *more,
            "--engine", "annex", "--annex-rooms", ",".join(rooms),
        ]  # fmt: skip

    def __call__(self, *more: str | int | Path, rooms: tuple[str, ...] = ROOMS, name: str = "run") -> Done:
        done = self.aiperf(*self.words(*more, rooms=rooms, name=name))
        return Done(done.code, done.out, done.err, self.folder / name)

    def start(self, *more: str | int | Path, rooms: tuple[str, ...] = ROOMS, name: str = "run") -> Running:
        return self.aiperf.start(*self.words(*more, rooms=rooms, name=name))

    def end(self, run: Running, name: str = "run") -> Done:
        done = run.end()
        return Done(done.code, done.out, done.err, self.folder / name)

    def processes_in(self, room: str) -> list[int]:
        """Those of a site."""
        place = f"TMPDIR={(self.folder / room).absolute()}".encode()
        return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if place in variables_of(int(entry.name))]


def ledger(done: Done) -> list[dict[str, Any]]:
    return sorted(done.lines("profile_export_arrivals.jsonl"), key=lambda row: row["n"])


def listening_ports(pid: int) -> Iterator[int]:
    """Ports of the IPv4 loopback where a process listens."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            sockets.add(str(entry.readlink()))
        except OSError:
            continue
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:
            yield int(words[1].partition(":")[2], 16)
