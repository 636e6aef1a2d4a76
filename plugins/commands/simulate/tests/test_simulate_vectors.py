"""Answers of vectors, scores and detections: what each path of the server takes and gives."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import struct
from typing import Any

import pytest
from aiperf_command_simulate.http1 import Connection
from aiperf_command_simulate.options import SimulateOptions
from aiperf_command_simulate.scenario import scenario
from aiperf_command_simulate.server import Server


async def _ask(requests: list[tuple[str, bytes, str]], **options: Any) -> list[tuple[int, Any]]:
    loop = asyncio.get_running_loop()
    server = Server(scenario(SimulateOptions(decode_ms=0, prefill_us_per_token=0, **options)), loop)
    listener = await loop.create_server(lambda: Connection(server), "127.0.0.1", 0)
    answers = []
    try:
        for path, body, fault in requests:
            reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname()[:2])
            writer.write(f"POST {path} HTTP/1.0\r\nContent-Length: {len(body)}\r\nX-Simulate: {fault}\r\n\r\n".encode() + body)
            top, _, rest = (await reader.read()).partition(b"\r\n\r\n")
            answers.append((int(top.split()[1]), json.loads(rest)))
            writer.close()
    finally:
        server.close()
        listener.close()
    return answers


def asked(path: str, body: bytes, fault: str = "", **options: Any) -> tuple[int, Any]:
    """Status and answer."""
    return asyncio.run(_ask([(path, body, fault)], **options))[0]


@pytest.mark.parametrize(("body", "fault", "lengths"), [
    (b'{"model":"m","input":["a b","c d"]}', "", [8, 8]),
    (b'{"model":"m","input":"a b"}', "", [8]),
    (b'{"model":"m","input":[1,2,3],"dimensions":3}', "", [3]),
    (b'{"model":"m","input":[[1,2],[3]]}', "", [8, 8]),
    (b'{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}', "", [8]),
    (b'{"model":"m","input":["a b","c d"]}', "items=1", [8]),
])  # fmt: skip
def test_every_input_has_a_unit_vector_of_its_own(body: bytes, fault: str, lengths: list[int]) -> None:
    status, answer = asked("/v1/embeddings", body, fault)
    vectors = [each["embedding"] for each in answer["data"]]
    assert (status, [len(vector) for vector in vectors]) == (200, lengths)
    assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1.0] * len(vectors), abs=1e-4)
    assert len({tuple(vector) for vector in vectors}) == len(vectors)
    assert [(each["object"], each["index"]) for each in answer["data"]] == [("embedding", i) for i in range(len(vectors))]


def test_vectors_in_base64_are_the_same_numbers() -> None:
    requests = [("/v1/embeddings", b'{"input":"a","encoding_format":"%b"}' % form, "") for form in (b"base64", b"float")]
    (_, packed), (_, plain) = asyncio.run(_ask(requests))
    numbers = struct.unpack("<8f", base64.b64decode(packed["data"][0]["embedding"]))
    assert len(numbers) == len(plain["data"][0]["embedding"])
    assert packed["usage"] == plain["usage"] == {"prompt_tokens": 1, "total_tokens": 1}


@pytest.mark.parametrize(("path", "body", "shape"), [
    ("/v1/ranking", b'{"model":"m","query":{"text":"q"},"passages":[{"text":"a"},{"text":"b"}]}', ("rankings", "logit")),
    ("/v1/ranking", b'{"query":"q","texts":["a","b"]}', ("", "score")),
    ("/rerank", b'{"query":"q","texts":["a","b"]}', ("", "score")),
    ("/v1/rerank", b'{"model":"m","query":"q","documents":["a","b"]}', ("results", "relevance_score")),
    ("/v2/rerank", b'{"model":"m","query":"q","documents":[{"text":"a"},"b"]}', ("results", "relevance_score")),
    ("/score", b'{"model":"m","text_1":"q","text_2":["a","b"]}', ("data", "score")),
])  # fmt: skip
def test_every_passage_has_a_score_in_the_form_of_its_request(path: str, body: bytes, shape: tuple[str, str]) -> None:
    name, field = shape
    status, answer = asked(path, body)
    scores = answer[name] if name else answer
    assert (status, sorted(each["index"] for each in scores)) == (200, [0, 1])
    values = [each[field] for each in scores]
    assert name == "data" or values == sorted(values, reverse=True), "the best comes first"


def test_as_many_results_as_asked_for() -> None:
    requests = [("/v2/rerank", b'{"query":"q","documents":["a","b","c"],"top_n":2}', fault) for fault in ("", "items=1")]
    assert [len(answer["results"]) for _, answer in asyncio.run(_ask(requests))] == [2, 1]


@pytest.mark.parametrize(("path", "body", "items"), [
    ("/classify", b'{"model":"m","input":["a","b"]}', 2),
    ("/pooling", b'{"model":"m","input":["a","b"]}', 2),
    ("/v1/infer", b'{"input":[{"type":"image_url","url":"data:image/png;base64,iVBO"}]}', 1),
])  # fmt: skip
def test_classes_pooled_values_and_detections(path: str, body: bytes, items: int) -> None:
    status, answer = asked(path, body)
    assert (status, [each["index"] for each in answer["data"]]) == (200, list(range(items)))
    for each in answer["data"]:
        (kind,) = {"probs", "data", "bounding_boxes"} & each.keys()
        assert {"probs": lambda probs: sum(probs) == pytest.approx(1), "data": lambda rows: [*map(len, rows)] == [8, 8, 8],
                "bounding_boxes": lambda boxes: boxes["table"]}[kind](each[kind])  # fmt: skip


@pytest.mark.parametrize(("path", "body", "why"), [
    ("/v1/embeddings", b'{"model":"m","input":[]}', '"input" must not be empty'),
    ("/v1/embeddings", b'{"model":"m"}', "the body is no embeddings request"),
    ("/v1/rerank", b'{"query":"cat"}', '"documents" must be a non-empty string array'),
    ("/v1/ranking", b'{"query":{"text":"q"},"passages":[]}', '"passages" must be a non-empty string array'),
    ("/v1/infer", b'{"input":[{"type":"image_url","url":"http://h/i.png"}]}', "PNG or JPEG images as data: URIs"),
])  # fmt: skip
def test_a_request_without_inputs_is_refused(path: str, body: bytes, why: str) -> None:
    status, answer = asked(path, body)
    assert status == 400 and why in answer["error"]["message"]


def test_a_request_without_a_model_is_answered_by_the_first_one() -> None:
    assert asked("/rerank", b'{"query":"q","texts":["a"]}', models=["m1", "m2"])[0] == 200
    assert asked("/v1/embeddings", b'{"model":"m3","input":"a"}', models=["m1", "m2"])[0] == 404
