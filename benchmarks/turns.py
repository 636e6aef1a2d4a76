"""What a turn costs a worker's loop beyond the bare send of its bytes, by the history behind it.

usage: turns.py [BASE] [--turns 41] [--isl 2500] [--rounds 9]

One conversation is sent turn by turn to truthd, in a worker without its process.  The cost of a turn is the time of
``Requests.send`` and of writing the rest of the request as the socket takes it, less the time inside ``socket.send``.  BASE,
another checkout with its environment, is measured by its own interpreter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

HERE = Path(__file__).resolve().parent


class Timed:
    """A socket whose sends are timed."""

    def __init__(self, sock: Any) -> None:
        self._sock, self.ns = sock, 0

    def send(self, data: Any) -> int:
        began = perf_counter_ns()
        try:
            return int(self._sock.send(data))
        finally:
            self.ns += perf_counter_ns() - began

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class Ends:
    """A driver that notes the end of each request."""

    complete = False

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def request_ended(self, session: Any) -> None:
        self.ended.set()

    def first_token(self, session: Any) -> None: ...


Cost = tuple[int, float, float]
"""Of a turn: bytes of the body; µs beyond the bare send, and of it."""


async def costs(journal: Path, url: str, turns: int, rounds: int) -> list[list[Cost]]:
    """The turns of a session, so many times."""
    from aiperf.registry.hooks import Hooks
    from aiperf.rundir.journal import load_run
    from aiperf.sdk.plan import Secrets
    from aiperf.worker.share import WorkerPlace, load_share
    from aiperf_transport_sockets.connection import Connection

    plan = load_run(journal)[0].replacing(urls=(url,))
    share = await load_share(plan, Secrets(), journal, WorkerPlace(0, 1), Hooks.load((), print), print)
    requests, driver = share.requests, Ends()
    requests.begin(plan.load.phases[0], driver)  # type: ignore[arg-type]
    pushing, push = 0, Connection._push

    def timed_push(connection: Connection, data: memoryview) -> None:
        nonlocal pushing
        began = perf_counter_ns()
        push(connection, data)
        pushing += perf_counter_ns() - began

    Connection._push = timed_push  # type: ignore[method-assign, assignment]

    async def turn(session: Any) -> Cost:
        nonlocal pushing
        (connection,) = requests.transport.open_connections  # type: ignore[attr-defined]
        plain = connection.sock
        connection.sock = sock = Timed(plain)
        began = perf_counter_ns()
        requests.send(session, session.turn, -1)
        spent, pushing = perf_counter_ns() - began, 0
        (exchange,) = vars(requests).get("in_flight", requests).open.values()  # older checkouts keep them in Requests itself
        size = len(exchange.body)
        await driver.ended.wait()
        driver.ended.clear()
        connection.sock = plain
        session.turn += 1
        return size, (spent + pushing - sock.ns) / 1e3, sock.ns / 1e3

    found = []
    for number in range(rounds):
        session = requests.session(plan.load.phases[0], number, 0)
        found.append([await turn(session) for _ in range(turns)])
    await requests.transport.close()
    share.logbook.close()
    return found


def measured(checkout: Path, given: argparse.Namespace) -> list[list[Cost]]:
    """The costs of each round, in the checkout's environment."""
    from truth import truthd

    with truthd(5, 0) as server, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        words = [
            checkout / ".venv" / "bin" / "aiperf", "profile", "--model", "truth", "--url", f"http://127.0.0.1:{server.port}",
            "--endpoint-type", "chat", "--streaming", "--tokenizer", "builtin", "--num-conversations", 1, "--concurrency", 1,
            "--session-turns-mean", given.turns, "--session-turns-stddev", 0, "--isl", given.isl, "--isl-stddev", 0,
            "--osl", 40, "--random-seed", 1, "--artifact-dir", folder, "--ui", "none", "--export-level", "raw",
        ]  # fmt: skip
        subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        more = [f"{folder}/journal", f"http://127.0.0.1:{server.port}", str(given.turns), str(given.rounds)]
        python = checkout / ".venv" / "bin" / "python"
        done = subprocess.run([python, __file__, "--inside", *more], check=True, stdout=subprocess.PIPE, text=True)
        rounds: list[list[Cost]] = json.loads(done.stdout.splitlines()[-1])
        return rounds


def main() -> None:
    if sys.argv[1:2] == ["--inside"]:
        import uvloop

        journal, url, turns, rounds = sys.argv[2:]
        print(json.dumps(uvloop.run(costs(Path(journal), url, int(turns), int(rounds)))))
        return
    from bench import machine

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", type=Path, nargs="?", help="another checkout with its environment")
    parser.add_argument("--turns", type=int, default=41)
    parser.add_argument("--isl", type=int, default=2500)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    sides = {"base": given.base.resolve()} if given.base else {}
    sides["this"] = HERE.parent
    found = {side: measured(checkout, given) for side, checkout in sides.items()}
    print(f"| tokens before the turn | kB sent | bare send, µs | {' | '.join(f'{side}, µs beyond it' for side in sides)} |")
    print(f"|---|---|---|{'---|' * len(sides)}")
    for turn in sorted({0, 1, given.turns // 4, given.turns // 2, given.turns - 1}):
        cells = []
        for side in sides:
            values = sorted(costs[turn][1] for costs in found[side])
            cells.append(f"{median(values):,.0f} ({values[0]:,.0f}–{values[-1]:,.0f})")
        bare = median(costs[turn][2] for costs in found["this"])
        print(f"| {turn * given.isl:,} | {found['this'][0][turn][0] / 1e3:,.0f} | {bare:,.0f} | {' | '.join(cells)} |")
    print(f"\n{machine()}. Median of {given.rounds} sessions (least–most).")


if __name__ == "__main__":
    main()
