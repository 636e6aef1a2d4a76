"""Exchanges recorded with real servers: our endpoints write the requests, and read text, usage and finish as counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from aiperf import Endpoint, Message, Turn
from aiperf.registry.registry import Registry
from aiperf_reducer_columns.reduce.answer import Answer, read_answer
from aiperf_reducer_columns.reduce.usage import read_usage

FOLDER = Path(__file__).parent / "recorded"
TINY = Turn(("hello",), model="tiny-llama", max_tokens=4)
STREAM = msgspec.structs.replace(TINY, stream=True)
TERSE = Turn(("Hi",), model="tiny-llama", max_tokens=4, history=(Message("system", ("Be terse.",)),))
HELLO = Turn(("hello big world",), model="echo", max_tokens=3)
GRAMMAR = {"grammar": 'root ::= "<think>\\n" "hm hm hm" "\\n</think>\\n\\n" "the cat sat"'}
THINK = Turn(("hello",), model="tiny-llama", max_tokens=60, extra=GRAMMAR)


class Row(NamedTuple):
    """number: of the exchange in the file.  turn: what our endpoint makes the recorded request of; None where the recorder
    sent another form.  prompt, completion: of the server's usage; None where it sends none.
    """

    file: str
    number: int
    kind: str
    turn: Turn | None
    text: str
    prompt: int | None
    completion: int | None
    finish: str | None
    reasoning: str = ""


def streamed(turn: Turn, **extra: Any) -> Turn:
    return msgspec.structs.replace(turn, stream=True, extra={**turn.extra, **extra})


def served(turn: Turn) -> Turn:
    return msgspec.structs.replace(turn, model="models/tiny-llama")


ROWS = [
    Row("vllm-chat", 0, "chat", TINY, " develoArgument fullnamediffe", 13, 4, "length"),
    Row("vllm-chat", 1, "chat", msgspec.structs.replace(STREAM, per_chunk_usage=True),
        " PARTICULARlfmin________________", 13, 4, "length"),
    Row("llamacpp-chat", 0, "chat", TINY, "WHI finallyMO86", 13, 4, "length"),
    Row("llamacpp-chat", 1, "chat", STREAM, "longcmdivelycalonetary", 13, 4, "length"),
    Row("llamacpp-chat", 3, "chat", msgspec.structs.replace(streamed(TINY, n=2), max_tokens=3),
        " high displayednewonetarysep good", None, None, "length"),
    Row("llamacpp-reasoning", 0, "chat", streamed(THINK), "the cat sat", 13, 33, "stop", "hm hm hm\n"),
    Row("llamacpp-reasoning", 1, "chat", THINK, "the cat sat", 13, 27, "stop", "hm hm hm\n"),
    Row("llamacpp-reasoning", 2, "responses", None, "the cat sat", 13, 34, "completed", "hm hm hm\n"),
    Row("tfserve-chat", 0, "chat", served(TINY), "stat displayed finally().__", 13, 4, "length"),
    Row("tfserve-chat", 1, "chat", served(STREAM), " dummyCTEDCTEDively", 13, 4, "length"),
    Row("litserve-chat", 0, "chat", HELLO, "hello big world", 0, 0, "stop"),
    Row("litserve-chat", 1, "chat", streamed(HELLO), "hello big world", 0, 0, "stop"),
    Row("llamacpp-completions", 0, "completions", TINY, "storeDescriptor1()))", 3, 4, "length"),
    Row("llamacpp-completions", 1, "completions", msgspec.structs.replace(TINY, texts=("hello", "big")),
        "medi=[args" + " " * 40 + "upsesrepundefined", 3, 4, "length"),
    Row("llamacpp-completions", 2, "completions", STREAM, " Pass\N{REPLACEMENT CHARACTER}NTIES runs", 3, 4, "length"),
    Row("vllm-completions", 0, "completions", STREAM, " sysrue da yielded", 3, 4, "length"),
    Row("tfserve-completions", 0, "completions", streamed(served(TINY)), "=[bytearray contract runs", 3, 4, "length"),
    Row("vllm-responses", 0, "responses", None, " structuresMACassembleATTERN", 13, 4, "max_output_tokens"),
    Row("vllm-responses", 1, "responses", streamed(TERSE),
        "WISE Col contained NotImplementedError", 22, 4, "max_output_tokens"),
    Row("llamacpp-responses", 0, "responses", None, " names().__ivelyIF", 13, 4, "completed"),
    Row("llamacpp-responses", 1, "responses", streamed(TERSE), "rozenendian pad certfile", 22, 4, "completed"),
    Row("tfserve-responses", 0, "responses", None, "usrCLU proto finally", 13, 4, "completed"),
    Row("vllm-messages", 0, "messages", TERSE, " variables thingcan resulting", 22, 4, "max_tokens"),
    Row("vllm-messages", 1, "messages", streamed(Turn(("Hi",), model="tiny-llama", max_tokens=4)), "Stringartriplelegal", 12, 4,
        "max_tokens"),
    Row("llamacpp-messages", 0, "messages", TERSE, " poppedascii manualicular", 22, 4, "max_tokens"),
    Row("llamacpp-messages", 1, "messages", streamed(Turn(("Hi",), model="tiny-llama", max_tokens=4)),
        "________________new defineCTED", 12, 4, "max_tokens"),
    Row("triton-generate", 0, "generate", HELLO, "hello big world", None, None, None),
    Row("triton-generate", 1, "generate", None, "hello big world", None, None, None),
    Row("triton-generate", 2, "generate", None, "hello big world", None, None, None),
    Row("triton-generate", 5, "generate", Turn(("hello",), max_tokens=3, extra={"temperature": 0.5}), "hello hello hello", None,
        None, None),
]  # fmt: skip


def exchange(row: Row) -> tuple[dict[str, Any], list[bytes], bool]:
    """The recorded request's body, and the answer's body as it was read; whether it is a stream of events."""
    text = (FOLDER / f"{row.file}.txt").read_text(encoding="utf-8").split("################ ")[row.number + 1]
    request, *reads = text.split("<<<<<<<< read at ")
    lines = [line for read in reads for line in read.splitlines()[1:] if not line.endswith("\\r\\n")]
    body = request.rstrip("\n").rpartition("\n")[2]
    head = {line.partition(":")[0].lower(): line for read in reads for line in read.splitlines() if line.endswith("\\r\\n")}
    events = "text/event-stream" in head["content-type"]
    if not events:
        documents = [line.removesuffix("\\r\\n") for read in reads for line in read.splitlines() if line.startswith("{")]
        return msgspec.json.decode(body), [document.encode() for document in documents], False
    # Events begin with their name or their data; between the chunks the recorder wrote further empty lines.
    blocks = [block for block in "\n".join(lines).split("\n\n") if block.strip()]
    return msgspec.json.decode(body), [block.strip("\n").encode() + b"\n\n" for block in blocks], True


def answer_of(endpoint: Endpoint[Any], pieces: list[bytes], *, streamed: bool) -> Answer:
    reads = [(at + 1, at + 1, 0, piece) for at, piece in enumerate(pieces)]
    return read_answer(reads, endpoint.reader, streamed=streamed, repeats=endpoint.repeats_envelope, framing=endpoint.framing)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.file}-{row.number}")
def test_a_recorded_exchange_is_written_and_read_as_it_was(row: Row, registry: Registry) -> None:
    endpoint = registry.load("endpoints", row.kind)(None)
    sent, pieces, streamed = exchange(row)
    answer = answer_of(endpoint, pieces, streamed=streamed)
    assert answer.error is None
    assert (answer.text, answer.reasoning, answer.finish) == (row.text, row.reasoning, row.finish)
    usage = read_usage(answer.usage or {})
    assert (usage.prompt, usage.completion) == (row.prompt, row.completion)
    if row.turn is None:
        return
    ours = msgspec.json.decode(endpoint.encode(row.turn).body)
    if row.kind == "chat":  # the recorder wrote the older name
        ours["max_tokens"] = ours.pop("max_completion_tokens")
    if "stream_options" not in sent:
        ours.pop("stream_options", None)
    assert ours.pop("stream", False) == sent.pop("stream", False)
    assert ours == sent


@pytest.mark.parametrize(("number", "said"), [
    (3, "generate expects model to produce exactly 1 response"),  # status 200
    (4, "Request for unknown model: 'nosuch' is not found"),
])  # fmt: skip
def test_an_error_of_triton_is_an_error_in_its_words(number: int, said: str, registry: Registry) -> None:
    row = Row("triton-generate", number, "generate", None, "", None, None, None)
    _, pieces, streamed = exchange(row)
    answer = answer_of(registry.load("endpoints", row.kind)(None), pieces, streamed=streamed)
    assert answer.error is not None
    assert answer.error.message.startswith(said)
    assert not answer.stamps
