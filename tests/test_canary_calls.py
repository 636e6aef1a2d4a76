"""Secrets of calls of gRPC, and a server that repeats them in every place: they stand in no file and on no screen."""

from __future__ import annotations

import asyncio
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from aiperf_http2 import DataReceived, HeaderSet, HeadersReceived, Http2Connection, Http2Stream
from aiperf_http2.grpc import binary, encoded_message, framed
from aiperf_rpc.protos.kserve import ModelStreamInferResponse
from program import Done, Program, bytes_of

CANARIES = {"key": "canary-key-1", "metadata": "canary-metadata-2", "binary": "canary-binary-3", "extra": "canary-extra-4"}
ANSWER = f"the metadata is {CANARIES['metadata']}"
REQUESTS = 12
HEAD = HeaderSet([(":status", "200"), ("content-type", "application/grpc")])
PAGE = HeaderSet([(":status", "502"), ("content-type", "text/html")])


class Echo:
    """The server's side of a connection.  It repeats what it was sent, in another place for each call."""

    calls = 0

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.http = Http2Connection(client=False)
        self.heads: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}

    async def serve(self) -> None:
        data = b"\n"
        while data:
            self.writer.write(self.http.take())
            data = await self.reader.read(1 << 16)
            for event in self.http.receive(data):
                if isinstance(event, HeadersReceived):
                    self.heads[event.stream.number] = dict(event.fields)
                elif isinstance(event, DataReceived):
                    self.bodies[event.stream.number] = self.bodies.get(event.stream.number, b"") + event.data
                if isinstance(event, HeadersReceived | DataReceived) and event.end and not self.answer(event.stream):
                    self.writer.write(self.http.take())
                    self.writer.close()
                    return

    def answer(self, stream: Http2Stream) -> bool:
        """Answer a call; False where the connection is to end."""
        head, body = self.heads.pop(stream.number), self.bodies.pop(stream.number, b"").decode("latin-1")
        said = f"{head} {binary(head['x-trace-bin']).decode()} {body}"
        if not head[":path"].endswith("/ModelStreamInfer"):
            status = [("grpc-status", "12"), ("grpc-message", encoded_message(said))]
            self.http.head(stream, HeaderSet([*HEAD.fields, *status]), end=True)
            return True
        Echo.calls += 1
        trailers = [("grpc-status", "0"), ("x-echo", head["authorization"]), ("x-echo-bin", head["x-trace-bin"])]
        messages: list[bytes] = []
        match Echo.calls % 6:
            case 0:
                messages = [answered().SerializeToString()]
            case 1:
                trailers[0] = ("grpc-status", "16")
                trailers.append(("grpc-message", encoded_message(said)))
            case 2:
                messages = [ModelStreamInferResponse(error_message=said).SerializeToString()]
            case 3:
                messages = [b"\x0a\xff" + said.encode()]  # it can't be read
            case 4:
                self.http.head(stream, PAGE)
                self.http.send(stream, f"<p>{said}</p>".encode(), end=True)
                return True
            case 5:
                self.http.say_goodbye(11, said[:4000])
                return False
        self.http.head(stream, HeaderSet([*HEAD.fields, ("x-echo", head["x-team"])]))
        for message in messages:
            self.http.send(stream, framed(message))
        self.http.finish(stream, HeaderSet(trailers))
        return True


def answered() -> ModelStreamInferResponse:
    response = ModelStreamInferResponse()
    response.infer_response.outputs.add(name="text_output", datatype="BYTES", shape=[1])
    response.infer_response.raw_output_contents.append(len(ANSWER).to_bytes(4, "little") + ANSWER.encode())
    return response


@contextmanager
def echoing() -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def listen() -> asyncio.Server:
        return await asyncio.start_server(lambda *streams: Echo(*streams).serve(), "127.0.0.1", 0)

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(60)
    try:
        yield f"grpc://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Done:
    aiperf = Program(tmp_path_factory.mktemp("calls"))
    aiperf.environment["AIPERF_API_KEY"] = CANARIES["key"]
    trace = b64encode(CANARIES["binary"].encode()).decode().rstrip("=")
    with echoing() as url:
        return aiperf(
            "profile", "-m", "m", "-u", url, "--endpoint-type", "kserve", "--streaming", "--tokenizer", "builtin", "--isl", 5,
            "-H", f"X-Team: {CANARIES['metadata']}", "-H", f"X-Trace-bin: {trace}", "--extra-inputs",
            f"api_key:{CANARIES['extra']}", "--osl", 5, "--request-count", REQUESTS, "--concurrency", 1, "--ui", "none", "-vv",
            "--export-level", "raw", "--random-seed", 1,
        )  # fmt: skip


def forms(secret: str) -> set[str]:
    """The secret as it is, in a URL, and in base64 wherever it begins; the first and the last characters are of others, too."""
    within = {b64encode(bytes(before) + secret.encode()).decode()[4:-4] for before in range(3)}
    return {secret, quote(secret, safe=""), secret.encode().hex(), *within}


def carriers(texts: dict[str, str]) -> list[tuple[str, str]]:
    """Where a secret stands, and which."""
    known = [(name, form) for name, value in CANARIES.items() for form in forms(value)]
    return [(where, name) for where, text in texts.items() for name, form in known if form in text]


def test_every_kind_of_failure_was_met(run: Done) -> None:
    errors = [line["error"] for line in run.lines("profile_export.jsonl") if line.get("error")]
    assert {error["type"] for error in errors if "<redacted>" in json.dumps(error)} == {
        "UNAUTHENTICATED", "InvalidInferenceResultError", "Bad Gateway", "GoAway",
    }  # fmt: skip
    assert len(errors) < REQUESTS


def test_no_file_has_a_secret_of_a_call(run: Done) -> None:
    files = [path for path in run.artifacts.rglob("*") if path.is_file()]
    texts = {str(path.relative_to(run.artifacts)): bytes_of(path).decode(errors="replace") for path in files}
    raw = [json.loads(line) for line in texts["profile_export_raw.jsonl"].splitlines()]
    assert {json.dumps(line["payload"]) for line in raw} == {'{"body": "<redacted>"}'}
    texts["profile_export_raw.jsonl"] = json.dumps([{**line, "responses": []} for line in raw])  # they are as they came
    kept = [name for name in texts if name.startswith("journal/shard-")] + ["journal/dataset.bodies"]
    assert [each for each in carriers(texts) if each[0] not in kept] == []
    assert {path.stat().st_mode & 0o077 for path in files if str(path.relative_to(run.artifacts)) in kept} == {0}


def test_an_answer_of_a_call_is_as_it_came(run: Done) -> None:
    texts = [each.get("text", "") for line in run.lines("profile_export_raw.jsonl") for each in line["responses"]]
    assert any(ANSWER in text for text in texts)


def test_no_output_has_a_secret_of_a_call(run: Done) -> None:
    assert carriers({"stdout": run.out, "stderr": run.err}) == []


def test_a_run_with_hidden_bodies_is_valid(run: Done, tmp_path: Path) -> None:
    done = Program(tmp_path)("validate", run.artifacts)
    assert (done.code, "nothing is wrong" in done.out) == (0, True), done.out
