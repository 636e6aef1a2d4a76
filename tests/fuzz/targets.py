"""What bytes from outside reach, as functions of bytes: nothing but the error that was promised is raised."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import random
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httptools
from aiperf.cli import main
from aiperf.cli.commandline import CommandLine
from aiperf.cli.settings import profile_settings
from aiperf.errors import AiperfError, BadDataset, BadResponse
from aiperf.registry.registry import Registry
from aiperf.sdk.dataset import DatasetContext
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.framing import JsonArray, LengthPrefixed, Lines, ServerSentEvents, Whole
from aiperf_configuration_yaml import Yaml
from aiperf_http2 import (
    DataReceived,
    GoingAway,
    HeaderSet,
    HeadersReceived,
    Http2Connection,
    StreamReset,
    literal,
)
from aiperf_http2.frames import (
    CONTINUATION,
    DATA,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    RST_STREAM,
    frame,
    settings_frame,
    window_update,
)
from aiperf_http2.grpc import MessageError, MessageReader
from aiperf_reducer_columns.reduce.answer import read_answer
from aiperf_reducer_columns.reduce.usage import merged_usage, read_usage
from aiperf_transport_sockets.answer import Answer

ROOT = Path(__file__).resolve().parent.parent.parent
SEEDS = ROOT / "tests" / "recorded"
FRAMINGS = (ServerSentEvents, Lines, LengthPrefixed, JsonArray, Whole)
SUFFIXES = (".jsonl", ".csv", ".json", ".jsonl.gz", ".parquet", "")
_EVERYTHING = Capabilities(
    streaming=True, produces_tokens=True, tokenizes_input=True, media_in=("image", "audio", "video"), system_message=True,
    multi_turn=True, verbatim=True, named=("query", "passages"),
)  # fmt: skip
_MOST_CONVERSATIONS = 200
HELLO = settings_frame({})
_ASKED = HeaderSet([(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")])


@functools.cache
def registry() -> Registry:
    return Registry.discover()


@functools.cache
def endpoints() -> tuple[Endpoint[Any], ...]:
    """Every endpoint that needs no options, by name."""
    made = []
    for name in sorted(registry().names("endpoints")):
        with contextlib.suppress(AiperfError, TypeError, AttributeError):  # one of a template wants its options
            made.append(registry().load("endpoints", name)(None))
    return tuple(made)


@functools.cache
def formats() -> tuple[tuple[Any, Any], ...]:
    """Class and default options of each data set that reads a file."""
    found = []
    for plugin in sorted(registry().all("datasets"), key=lambda plugin: plugin.name):
        if plugin.capabilities.get("reads"):
            model = registry().load_options_model(plugin)
            found.append((registry().load("datasets", plugin.name), None if model is None else model()))
    return tuple(found)


@functools.cache
def tokenizer() -> Any:
    return registry().load("tokenizers", "builtin")(None).open("builtin")


@functools.cache
def options() -> Any:
    """The command ``profile`` with every option."""
    return main.profile_command(registry(), whole=True)


@functools.cache
def folder() -> Path:
    """A folder for the files of this process, in memory where the system has that."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="aiperf-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def framing(data: bytes) -> None:
    """SSE and its kin, and HTTP's chunks: cut in two, the same events and the same body come out."""
    if len(data) < 2:
        return
    kind, at, body = data[0], data[1], data[2:]
    cut = at * len(body) // 255
    if kind % (len(FRAMINGS) + 1) == len(FRAMINGS):
        whole, parts = _http([body]), _http([body[:cut], body[cut:]])
        assert whole is None or parts is None or whole == parts, (whole, parts)
        return
    framing = FRAMINGS[kind % (len(FRAMINGS) + 1)]
    assert _events(framing, [body]) == _events(framing, [body[:cut], body[cut:]])


def _events(framing: Any, pieces: list[bytes]) -> list[Any]:
    """The events; the last is None where the stream can't be read further."""
    found: list[Any] = []
    divided = framing()
    try:
        for piece in pieces:
            found += divided.feed(piece)
        found += divided.close()
    except BadResponse:
        found = [None]  # how many come before depends on the cut
    return found


def _http(pieces: list[bytes]) -> tuple[int, bytes] | None:
    """Status and body of the first answer; None where the bytes are no HTTP."""
    answer = Answer()
    answer.expect("POST")
    own = b""
    try:
        for piece in pieces:
            answer.feed(piece)
            if answer.complete:
                return answer.status, own + b"".join(answer.pieces[: answer.own_pieces])
            own += b"".join(answer.pieces)
            answer.pieces.clear()
    except (httptools.HttpParserError, httptools.HttpParserUpgrade):
        return None
    finally:
        answer.release()
    return answer.status, own


def frames(data: bytes) -> None:
    """A connection of HTTP/2, either side, and messages of gRPC: cut in two, the same comes out."""
    if len(data) < 2:
        return
    side, at, body = data[0] % 3, data[1], data[2:]
    cut = at * len(body) // 255
    if side == 2:
        assert _messages([body]) == _messages([body[:cut], body[cut:]])
        return
    whole, parts = _told(side == 0, [body]), _told(side == 0, [body[:cut], body[cut:]])
    assert whole == parts, (whole, parts)


def _told(client: bool, pieces: list[bytes]) -> list[Any]:
    """The events of a connection, bodies joined; what breaks it is the last."""
    connection = Http2Connection(client=client)
    if client:
        for _ in range(3):
            connection.open(_ASKED, end=False)
        pieces = [HELLO, *pieces]
    else:
        pieces = [PREFACE + HELLO, *pieces]
    found: list[Any] = []
    for piece in pieces:
        for event in connection.receive(piece):
            match event:
                case DataReceived(stream, data, end):
                    found.append((stream.number, data, end))
                case HeadersReceived(stream, fields, end, trailers):
                    found.append((stream.number, list(fields), end, trailers))
                case GoingAway(unread, code, message):
                    found.append(([stream.number for stream in unread], code, message))
                case StreamReset(stream, code, message):
                    found.append((stream.number, code, message))
                case _:
                    found.append(event)
        connection.take()
    return found


def _messages(pieces: list[bytes]) -> list[bytes] | None:
    """The messages; None where they can't be read."""
    reader, found = MessageReader(1000), list[bytes]()
    try:
        for piece in pieces:
            found += reader.feed(piece)
    except MessageError:
        return None
    return found


def decode(data: bytes) -> None:
    """An answer's body, by every endpoint: as one event, and as a stream in two reads."""
    if len(data) < 2:
        return
    at, body = data[1], data[2:]
    endpoint = endpoints()[data[0] % len(endpoints())]
    with contextlib.suppress(BadResponse):
        delta = endpoint.decode(body) if type(endpoint).decode is not Endpoint.decode else None
        if delta is not None and delta.usage:
            read_usage(merged_usage([delta.usage]) or {})
    cut = at * len(body) // 255
    for streamed in (False, True):
        reads = [(1, 1, 0, body[:cut]), (2, 2, 0, body[cut:])]
        answer = read_answer(
            reads, endpoint.reader, streamed=streamed, repeats=endpoint.repeats_envelope, framing=endpoint.framing
        )
        read_usage(answer.usage or {})
        assert len(answer.stamps) == len(answer.kinds)


def rows(data: bytes) -> None:
    """A file, by every reader of rows."""
    if len(data) < 2:
        return
    cls, chosen = formats()[data[0] % len(formats())]
    path = folder() / f"rows{SUFFIXES[data[1] % len(SUFFIXES)]}"
    path.write_bytes(data[2:])
    context = DatasetContext(4, 0, True, tokenizer(), _EVERYTHING, path)
    with contextlib.suppress(BadDataset, AiperfError):
        for number, _ in enumerate(cls(chosen, context)):
            if number > _MOST_CONVERSATIONS:
                break


def yaml(data: bytes) -> None:
    """A configuration file, with every option of a run."""
    path = folder() / "run.yaml"
    path.write_bytes(data)
    with contextlib.suppress(AiperfError):
        Yaml(path).values(options().options)


def words(data: bytes) -> None:
    """The words of a command line, divided by NUL: they become a run's settings, or errors."""
    line = CommandLine([os.fsdecode(word) for word in data.split(b"\0")])
    with contextlib.suppress(AiperfError):
        command = options()
        scan = line.resolve(command.options, command="profile", dashes=command.dashes, extra=command.foreign)
        profile_settings(registry(), scan)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "framing": framing, "decode": decode, "rows": rows, "yaml": yaml, "options": words,
    "frames": frames,
}  # fmt: skip
MOST_BYTES = {"framing": 4096, "decode": 4096, "rows": 8192, "yaml": 4096, "options": 2048, "frames": 4096}


def prepare(target: str) -> None:
    """Import what the target needs."""
    needed = {"decode": (endpoints,), "rows": (formats, tokenizer), "yaml": (options,), "options": (options,)}
    for load in needed.get(target, ()):
        load()


ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 1.5, -0.0, 1e308, 10**19, -(2**63), 10**400, "", "x", "0", "\u0000", "\ud800", "é\u2028",
    [], {}, [None], [[]], [{}], {"": None}, {"type": "text"}, "data:image/png;base64,AA", [[[[[[]]]]]], "1" * 400, float("nan"),
)  # fmt: skip
"""Values that a reader of JSON may not expect."""


def mutated(data: bytes, draw: random.Random) -> bytes | None:
    """*data* with one value of the JSON behind its first two bytes replaced, left out or doubled; None without JSON."""
    head, lines = data[:2], data[2:].split(b"\n")
    at = draw.randrange(len(lines))
    begin = max(lines[at].find(b"{"), 0)
    try:
        document = json.loads(lines[at][begin:])
    except (ValueError, RecursionError):
        return None
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, each in list(inside):
            places.append((value, key))
            walk(each)

    walk(document)
    if not places:
        return None
    value, key = draw.choice(places)
    deed = draw.random()
    if deed < 0.7:
        value[key] = draw.choice(ODD)
    elif deed < 0.8:
        del value[key]
    elif isinstance(value, dict):
        other, name = draw.choice(places)
        value[str(draw.choice([name, "index", "type", "text"]))] = other[name]
    else:
        value.append(value[key])
    try:
        lines[at] = lines[at][:begin] + json.dumps(document).encode()
    except (ValueError, RecursionError):  # it holds itself
        return None
    return head + b"\n".join(lines)


def answers() -> list[bytes]:
    """The bodies of answers that real servers gave."""
    found = []
    for path in sorted(SEEDS.glob("*.txt")):
        for read in path.read_text(encoding="utf-8").split("<<<<<<<< read at ")[1:]:
            lines = [line for line in read.partition("################")[0].splitlines()[1:] if not line.endswith("\\r\\n")]
            found.append("\n".join(lines).encode()[:4000])
    return [body for body in dict.fromkeys(found) if body]


def seeds(target: str) -> Iterator[bytes]:
    """Inputs that are worth changing: recorded answers, files and command lines of the documentation."""
    if target == "framing":
        yield from (bytes((number % 6, 128)) + body for number, body in enumerate(answers()))
        yield b"\x05\x80HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        yield b'\x03\x80[{"a":1},\r\n{"b":[2,"]"]}]'
        yield b"\x02\x80\0\0\0\0\x05hello"
    elif target == "frames":
        blocks = literal(":status", "200") + literal("content-type", "application/grpc"), literal("grpc-status", "0")
        answer = b"".join(
            (
                frame(HEADERS, 4, 1, blocks[0]), frame(DATA, 8, 1, b"\x02\0\0\0\0\x01a\0\0"), frame(HEADERS, 5, 1, blocks[1]),
                frame(PING, 0, 0, bytes(8)), frame(HEADERS, 0, 3, blocks[0][:9]), frame(CONTINUATION, 4, 3, blocks[0][9:]),
                window_update(3, 7), frame(RST_STREAM, 0, 3, bytes(4)), frame(GOAWAY, 0, 0, bytes(8) + b"bye"),
            )
        )  # fmt: skip
        yield b"\0\x80" + answer
        asked = literal(":method", "POST") + literal(":path", "/")
        yield b"\x01\x40" + frame(HEADERS, 4, 1, asked) + frame(DATA, 1, 1, b"body") + settings_frame({4: 9, 5: 20_000})
        yield b"\x02\x30\0\0\0\0\x05hello\0\0\0\0\0"
    elif target == "decode":
        bodies = answers()
        yield from (bytes((number, 128)) + body for number, body in enumerate(bodies * (1 + len(endpoints()) // len(bodies))))
    elif target == "rows":
        row = (
            b'{"timestamp":1,"input_length":9,"output_length":2,"hash_ids":[1,2],"text":"hi","messages":'
            b'[{"role":"user","content":[{"type":"text","text":"a"}]}],"turns":[{"text":"b","delay":3}],"session_id":"s"}\n'
        )
        for number in range(len(formats())):
            yield bytes((number, 0)) + 2 * row
            yield bytes((number, 1)) + b"timestamp,text,output_length\n1,hi,2\n2,ho,3\n"
    elif target == "yaml":
        for path in sorted((ROOT / "docs").glob("*.md")):
            yield from (block.partition("```")[0].encode() for block in path.read_text().split("```yaml\n")[1:])
    else:
        for path in sorted((ROOT / "docs").glob("*.md")):
            for line in path.read_text().splitlines():
                if line.startswith("aiperf profile "):
                    with contextlib.suppress(ValueError):
                        yield "\0".join(shlex.split(line.rstrip("\\"))[2:]).encode()


def corpus(target: str) -> list[Path]:
    """What fuzzing has found, or reached, and is tried in every test."""
    return sorted((Path(__file__).parent / "corpus" / target).glob("*"))
