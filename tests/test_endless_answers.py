"""Answers without an end: the timeout or the cancellation ends them, nothing grows without bound, and the record says why."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_testing.server import chunk, chunked_head
from program import Program

PIECES = {
    "chat": ("text/event-stream", b'data: {"choices":[{"index":0,"delta":{"content":" a"}}]}\n\n'),
    "ollama": ("application/x-ndjson", b'{"message":{"role":"assistant","content":" a"},"done":false}\n'),
}
REQUESTS, BATCH, STEP_S = 2, 100, 0.002
MOST_MB = 200
MEASURED = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[2:])\n"
    "open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)); sys.exit(code)"
)
"""Runs a program and writes the kB of its largest process.  A child of a large process, as pytest's, is as large until it is
another program."""


class Endless:
    """A server that sends pieces of content, *BATCH* each *STEP_S*, until the client leaves.  sent: pieces of each answer."""

    def __init__(self, kind: str) -> None:
        self._type, self._piece = PIECES[kind]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.sent: list[int] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        try:
            while True:
                line, _ = self._listener.accept()
                threading.Thread(target=self._answer, args=(line,), daemon=True).start()
        except OSError:  # closed
            return

    def _answer(self, line: socket.socket) -> None:
        sent = 0
        with line:
            try:
                if not line.recv(1 << 16):
                    return  # a connection that was opened ahead, and not used
                line.sendall(chunked_head(self._type))
                while True:
                    line.sendall(chunk(self._piece * BATCH))
                    sent += BATCH
                    time.sleep(STEP_S)
            except OSError:
                self.sent.append(sent)

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(params=PIECES)
def endless(request: pytest.FixtureRequest) -> Iterator[tuple[str, Endless]]:
    server = Endless(request.param)
    yield request.param, server
    server.close()


@pytest.mark.parametrize(("words", "error", "outcome"), [
    (
        "--request-timeout-seconds 2",
        {
            "message": "no whole answer within 2 s", "type": "TimeoutError", "code": 504,
            "cause": "the answer was still coming",
        },
        "no whole answer within 2 s, and answers were still coming",
    ),
    ("--request-cancellation-rate 100 --request-cancellation-delay 2", {"type": "RequestCancellationError", "code": 499}, ""),
], ids=["timeout", "cancellation"])  # fmt: skip
def test_an_answer_without_an_end_is_an_error_of_its_own(
    words: str, error: dict[str, object], outcome: str, endless: tuple[str, Endless], tmp_path: Path
) -> None:
    kind, server = endless
    program, most = Program(tmp_path), tmp_path / "most"
    program.program = [program.python, "-c", MEASURED, str(most), *program.program]
    done = program(
        "profile", "--model", "m", "--url", server.url, "--endpoint-type", kind, "--streaming", "--tokenizer", "builtin",
        "--isl", 9, "--osl", 8, "--request-count", REQUESTS, "--concurrency", 2, "--ui", "none", *words.split(),
    )  # fmt: skip
    assert done.code == 1
    assert outcome in done.last_words
    lines = done.lines("profile_export.jsonl")
    assert len(lines) == REQUESTS
    for line in lines:
        assert {name: line["error"][name] for name in error} == error
    sent = [pieces for pieces in server.sent if pieces]
    assert len(sent) == REQUESTS, "the server saw the client leave"
    assert int(most.read_text()) <= MOST_MB << 10
