"""The server over real loopback sockets."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import pytest
from aiperf_command_simulate.testing import running

FAST = {"decode_ms": 1, "decode_batch_us": 0, "prefill_us_per_token": 1}


@pytest.fixture(scope="module")
def simulator():
    with running(**FAST, cache_blocks=64) as simulator:
        yield simulator


@pytest.fixture(autouse=True)
def _forget(simulator):
    simulator.reset()


def chat(words="hello there", **fields):
    return {"model": "m", "messages": [{"role": "user", "content": words}], **fields}


@contextmanager
def connected(simulator):
    url = urlsplit(simulator.url)
    with socket.create_connection((url.hostname, url.port), timeout=60) as sock:
        yield sock


def wire(body, path="/v1/chat/completions", **headers):
    """A request as bytes."""
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(data)}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def post(simulator, body, path="/v1/chat/completions", *, fault=None, method="POST", **headers):
    """Status, headers and body of one request on a connection of its own."""
    url = urlsplit(simulator.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    try:
        if fault:
            headers["X-Simulate"] = fault
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def read_to_end(sock):
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def events(body):
    """Data of each event, lines split by the standard."""
    text = body.decode().replace("\r\n", "\n").replace("\r", "\n")
    found = [block.removeprefix("data: ") for block in text.split("\n\n") if block]
    return [event if event == "[DONE]" or event.startswith("event:") else json.loads(event) for event in found]


def deltas(found, field="content"):
    each = [event["choices"][0]["delta"] for event in found if event != "[DONE]" and event["choices"]]
    return [delta[field] for delta in each if delta.get(field)]


def eventually(look, wanted):
    """Wait, at most 60 s, until *look* gives *wanted*; the server learns of a closed connection when it reads."""
    for _ in range(6_000):
        if (seen := look()) == wanted:
            break
        time.sleep(0.01)
    assert seen == wanted


def test_an_answer_has_exactly_the_tokens_asked_for(simulator):
    status, headers, body = post(simulator, chat(max_tokens=7))
    answer = json.loads(body)
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert answer["object"] == "chat.completion"
    assert len(answer["choices"][0]["message"]["content"].split()) == 7
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 7
    assert answer["usage"]["prompt_tokens"] == 5  # "user\nhello there\n" is 17 bytes


def test_max_completion_tokens_goes_before_max_tokens_and_the_default_is_64(simulator):
    assert json.loads(post(simulator, chat(max_tokens=7, max_completion_tokens=3))[2])["usage"]["completion_tokens"] == 3
    answer = json.loads(post(simulator, chat())[2])
    assert (answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]) == (64, "stop")
    assert json.loads(post(simulator, chat(min_tokens=70))[2])["usage"]["completion_tokens"] == 70


def test_a_stream_gives_role_pieces_finish_usage_and_done(simulator):
    body = chat(max_tokens=4, stream=True, stream_options={"include_usage": True})
    _, headers, raw = post(simulator, body, **{"X-Request-ID": "r-1"})
    found = events(raw)
    assert headers["Content-Type"].startswith("text/event-stream")
    assert headers["X-Request-ID"] == "r-1"
    assert found[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(deltas(found)) == 4
    assert [e["choices"][0]["finish_reason"] for e in found[1:5]] == [None, None, None, "length"]
    assert found[5]["choices"] == []
    assert found[5]["usage"]["completion_tokens"] == 4
    assert found[6:] == ["[DONE]"]
    assert len({e["id"] for e in found[:-1]}) == 1


def test_usage_comes_only_when_asked_for_and_with_every_piece_if_so(simulator):
    plain = events(post(simulator, chat(max_tokens=2, stream=True))[2])
    assert all("usage" not in event for event in plain[:-1])
    options = {"include_usage": True, "continuous_usage_stats": True}
    each = events(post(simulator, chat(max_tokens=3, stream=True, stream_options=options))[2])
    assert [event["usage"]["completion_tokens"] for event in each[1:5]] == [1, 2, 3, 3]


def test_reasoning_comes_first_and_counts(simulator):
    found = events(post(simulator, chat(max_tokens=5, stream=True), fault="reasoning=2")[2])
    assert (len(deltas(found, "reasoning_content")), len(deltas(found))) == (2, 3)
    answer = json.loads(post(simulator, chat(max_tokens=5), fault="reasoning=2")[2])
    message = answer["choices"][0]["message"]
    assert (len(message["reasoning_content"].split()), len(message["content"].split())) == (2, 3)
    assert answer["usage"]["completion_tokens_details"] == {"reasoning_tokens": 2}


def test_completions_answer_each_of_several_prompts(simulator):
    body = {"model": "m", "prompt": ["one", "two"], "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}}
    found = events(post(simulator, body, "/v1/completions")[2])
    texts = {0: "", 1: ""}
    for event in found[:-2]:
        assert event["object"] == "text_completion"
        texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
    assert [len(text.split()) for text in texts.values()] == [3, 3]
    assert found[-2]["usage"] == {"prompt_tokens": 2, "completion_tokens": 6, "total_tokens": 8,
                                  "prompt_tokens_details": {"cached_tokens": 0}}  # fmt: skip


def test_token_ids_count_one_each_and_several_choices_are_made(simulator):
    answer = json.loads(post(simulator, {"prompt": [1, 2, 3, 200_000], "max_tokens": 2, "n": 3}, "/v1/completions")[2])
    assert answer["usage"]["prompt_tokens"] == 4
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2]
    assert answer["usage"]["completion_tokens"] == 6


def test_the_next_turn_of_a_conversation_finds_its_history_cached(simulator):
    first = chat("a question that is long enough for some blocks " * 4, max_tokens=40)
    said = json.loads(post(simulator, first)[2])["choices"][0]["message"]["content"]
    messages = [*first["messages"], {"role": "assistant", "content": said}, {"role": "user", "content": "and then?"}]
    usage = json.loads(post(simulator, {"model": "m", "messages": messages, "max_tokens": 1})[2])["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    history = usage["prompt_tokens"] - 5
    assert cached % 16 == 0
    assert history - 20 <= cached <= history


def test_pictures_count_the_same_whatever_their_size(simulator):
    def tokens(url):
        parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}]
        body = {"model": "m", "messages": [{"role": "user", "content": parts}], "max_tokens": 1}
        return json.loads(post(simulator, body)[2])["usage"]["prompt_tokens"]

    assert tokens("data:image/png;base64,AA") == tokens("data:image/png;base64," + "A" * 5000) == 259


@pytest.mark.parametrize(
    ("body", "path", "status", "said"),
    [
        ({"messages": "x"}, "/v1/chat/completions", 400, "no chat request"),
        ({"messages": []}, "/v1/chat/completions", 400, "messages is empty"),
        (chat(max_tokens=0), "/v1/chat/completions", 400, "max_tokens is 0"),
        (chat(max_tokens=2, min_tokens=3), "/v1/chat/completions", 400, "min_tokens is 3"),
        (chat(n=500), "/v1/chat/completions", 400, "500 answers"),
        (chat(max_tokens=10**9), "/v1/chat/completions", 400, "context length is 131072"),
        ({"prompt": []}, "/v1/completions", 400, "empty list"),
        ({"prompt": [-1]}, "/v1/completions", 400, "no token id"),
        (chat(), "/v1/nothing", 404, "nothing at /v1/nothing"),
        (chat(), "/v1/models", 405, "takes GET"),
    ],
)
def test_a_bad_request_gets_a_sentence(simulator, body, path, status, said):
    got, _, answer = post(simulator, body, path)
    assert got == status
    assert said in json.loads(answer)["error"]["message"]


def test_pages_for_operators(simulator):
    assert post(simulator, None, "/health", method="GET")[0] == 200
    models = json.loads(post(simulator, None, "/v1/models", method="GET")[2])
    assert [row["id"] for row in models["data"]] == ["simulated"]
    before = post(simulator, None, "/metrics", method="GET")[2].decode()
    post(simulator, chat(max_tokens=3))
    _, headers, after = post(simulator, None, "/metrics", method="GET")
    assert headers["Content-Type"].startswith("text/plain")

    def value(text, name):
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    for name, more in (("vllm:generation_tokens_total", 3), ("vllm:request_success_total", 1), ("vllm:prompt_tokens_total", 5)):
        assert value(after.decode(), name) - value(before, name) == more
    status, headers, body = post(simulator, None, "/metrics", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 1000


# Faults.


@pytest.mark.parametrize(
    ("fault", "status", "retry", "outcome"),
    [("fail=500", 500, None, "failed"), ("status=429", 429, "1", "refused"), ("fail=503,retry_after=7", 503, "7", "failed")],
)
def test_a_request_can_ask_to_fail(simulator, fault, status, retry, outcome):
    got, headers, body = post(simulator, chat(), fault=fault)
    assert (got, headers["Retry-After"]) == (status, retry)
    assert json.loads(body)["error"]["code"] == status
    assert simulator.summary()["outcomes"] == {outcome: 1}


def test_a_failure_can_take_its_time(simulator):
    status, _, _ = post(simulator, chat(), fault="fail=500,slow_first=0.06")
    with connected(simulator) as sock:
        sock.sendall(wire(chat(), **{"X-Simulate": "fail=500,slow_first=60"}))
        eventually(lambda: simulator.summary()["requests"], 2)
    eventually(lambda: simulator.summary()["outcomes"], {"failed": 1, "client disconnected": 1})
    row = simulator.truth()["requests"][0]
    assert (status, row["status"]) == (500, 500)
    assert row["ended_mono_ns"] - row["received_mono_ns"] > 59_000_000, "timers of a loop are right to a millisecond"


@pytest.mark.parametrize("chunks", [0, 3, 5])
def test_a_cut_stream_ends_in_the_middle_of_its_body(simulator, chunks):
    with connected(simulator) as sock:
        sock.sendall(wire(chat(max_tokens=5, stream=True), **{"X-Simulate": f"cut={chunks}"}))
        data = read_to_end(sock)
    assert data.count(b'"content":" ') == chunks
    assert b"Transfer-Encoding: chunked" in data
    assert not data.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in data
    (row,) = simulator.truth()["requests"]
    assert (row["outcome"], row["chunks"], row["completion_tokens"]) == ("cut", chunks, chunks)
    assert row["fault"] == {"cut": chunks}


def test_a_plain_answer_is_cut_in_the_middle_too(simulator):
    with pytest.raises(http.client.IncompleteRead):
        post(simulator, chat(max_tokens=5), fault="cut=1")
    assert simulator.summary()["outcomes"] == {"cut": 1}


def test_a_connection_can_be_reset(simulator):
    with connected(simulator) as sock, pytest.raises(ConnectionResetError):
        sock.sendall(wire(chat(max_tokens=5, stream=True), **{"X-Simulate": "reset=2"}))
        read_to_end(sock)
    assert simulator.summary()["outcomes"] == {"reset": 1}


def test_a_stall_and_a_slow_first_token_show_in_the_truth(simulator):
    post(simulator, chat(max_tokens=4, stream=True), fault="stall=2:0.3")
    post(simulator, chat(max_tokens=2, stream=True), fault="slow_first=0.05")
    stalled, slow = simulator.truth()["requests"]
    # A chunk that is sent late makes the pause behind it shorter: a third of it may go so.
    assert stalled["last_mono_ns"] - stalled["first_mono_ns"] >= 200_000_000
    assert slow["first_mono_ns"] - slow["received_mono_ns"] >= 50_000_000
    assert simulator.summary()["chunk_gap_ms"]["max"] >= 200


def test_an_error_can_be_said_in_band(simulator):
    found = events(post(simulator, chat(max_tokens=5, stream=True), fault="error=2")[2])
    assert (len(deltas(found[:-2])), "error" in found[-2], found[-1]) == (2, True, "[DONE]")
    raw = post(simulator, chat(max_tokens=5, stream=True), fault="error_event=0,no_done")[2]
    assert raw.startswith(b"event: error\ndata: {")
    status, _, body = post(simulator, chat(max_tokens=5), fault="error=0")
    assert (status, "error" in json.loads(body)) == (200, True)
    assert simulator.summary()["outcomes"] == {"error said in-band": 3}


@pytest.mark.parametrize("lines", ["lf", "crlf", "cr", "mixed"])
def test_events_survive_any_line_ends(simulator, lines):
    raw = post(simulator, chat(max_tokens=9, stream=True), fault=f"lines={lines}")[2]
    assert len(deltas(events(raw))) == 9
    assert (b"\r" in raw) == (lines != "lf")
    assert (b"\n" in raw) == (lines != "cr")


def test_chunks_hold_as_many_tokens_as_told_and_extras_are_left_out(simulator):
    fault = "tokens_per_chunk=3,tokens=8,no_done,no_usage"
    found = events(post(simulator, chat(stream=True, stream_options={"include_usage": True}), fault=fault)[2])
    assert [len(text.split()) for text in deltas(found)] == [3, 3, 2]
    assert found[-1]["choices"][0]["finish_reason"] == "stop"
    (row,) = simulator.truth()["requests"]
    assert (row["chunks"], row["completion_tokens"]) == (3, 8)


def test_an_unknown_fault_is_refused_by_name(simulator):
    status, _, body = post(simulator, chat(), fault="explode=1")
    assert status == 400
    assert "'explode=1' is no fault" in json.loads(body)["error"]["message"]


def test_a_client_that_leaves_is_noticed(simulator):
    with connected(simulator) as sock:
        sock.sendall(wire(chat(stream=True), **{"X-Simulate": "slow_first=60"}))
        assert sock.recv(100).startswith(b"HTTP/1.1 200")
    with connected(simulator) as sock:
        sock.sendall(wire(chat(), **{"X-Simulate": "silent"}))
        eventually(lambda: simulator.summary()["requests"], 2)
    eventually(lambda: simulator.summary()["outcomes"], {"client disconnected": 2})
    assert simulator.summary()["engine"]["running"] == 0


# Framing.


def test_pipelined_requests_are_answered_in_order(simulator):
    with connected(simulator) as sock:
        first = wire(chat(max_tokens=3, stream=True), **{"X-Request-ID": "one"})
        second = wire(chat(max_tokens=2), **{"X-Request-ID": "two"})
        third = wire(chat(), **{"X-Request-ID": "three", "X-Simulate": "fail=500", "Connection": "close"})
        sock.sendall(first + second + third)
        data = read_to_end(sock)
    assert data.index(b"X-Request-ID: one") < data.index(b"[DONE]") < data.index(b"X-Request-ID: two")
    assert data.index(b"X-Request-ID: two") < data.index(b'"usage"') < data.index(b"X-Request-ID: three")
    rows = simulator.truth()["requests"]
    assert [row["request_id"] for row in rows] == ["one", "two", "three"]
    assert len({row["connection"] for row in rows}) == 1


def test_many_small_pipelined_requests_all_get_their_answer(simulator):
    with connected(simulator) as sock:
        request = b"GET /health HTTP/1.1\r\nHost: x\r\n"
        sock.sendall((request + b"\r\n") * 300 + request + b"Connection: close\r\n\r\n")
        assert read_to_end(sock).count(b"HTTP/1.1 200 OK") == 301


def test_a_request_may_come_byte_by_byte_and_in_chunks(simulator):
    body = json.dumps(chat(max_tokens=1)).encode()
    request = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        b"5\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (body[:5], len(body) - 5, body[5:])
    )
    with connected(simulator) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for n in range(len(request)):
            sock.sendall(request[n : n + 1])
        assert b'"completion_tokens":1' in read_to_end(sock)


def test_expect_gets_its_continue_but_never_within_another_answer(simulator):
    request = wire(chat(max_tokens=2), Expect="100-continue")
    at = request.index(b"\r\n\r\n") + 4
    with connected(simulator) as sock:
        sock.sendall(wire(chat(max_tokens=20, stream=True)) + request[:at])
        data = b""
        while b"100 Continue" not in data:
            data += sock.recv(65536)
        assert data.endswith(b"0\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        sock.sendall(request[at:])
        data = b""
        while b'"completion_tokens":2' not in data:
            data += sock.recv(65536)
        assert data.startswith(b"HTTP/1.1 200 OK")


def test_the_end_of_the_connection_can_end_the_body(simulator):
    for streaming in (True, False):
        with connected(simulator) as sock:
            sock.sendall(wire(chat(max_tokens=2, stream=streaming), **{"X-Simulate": "framing=eof"}))
            head, _, body = read_to_end(sock).partition(b"\r\n\r\n")
        assert b"Content-Length" not in head
        assert b"Transfer-Encoding" not in head
        assert b"Connection: close" in head
        assert body.endswith(b"data: [DONE]\n\n" if streaming else b"}")


def test_http_1_0_gets_no_chunks(simulator):
    request = wire(chat(max_tokens=2, stream=True)).replace(b"HTTP/1.1", b"HTTP/1.0")
    with connected(simulator) as sock:
        sock.sendall(request)
        data = read_to_end(sock)
    assert b"Transfer-Encoding" not in data
    assert data.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (wire(chat(), Connection="Upgrade", Upgrade="h2c"), b"501"),
        (b"GET /health HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nHost: x\r\n\r\n", b"501"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", b"431"),
    ],
)
def test_what_is_no_request_gets_a_status_and_the_door(simulator, data, status):
    with connected(simulator) as sock:
        sock.sendall(data)
        answers = [line for line in read_to_end(sock).split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    assert [line.split()[1] for line in answers] == [status]


# Truth.


def test_the_truth_tells_each_request_as_the_server_saw_it(simulator):
    before = time.monotonic_ns()
    with connected(simulator) as sock:
        for n in range(2):
            last = {"Connection": "close"} if n else {}
            sock.sendall(wire(chat(max_tokens=3, stream=True), **{"X-Request-ID": f"r{n}", "X-Correlation-ID": "s", **last}))
        read_to_end(sock)
    after = time.monotonic_ns()
    truth = simulator.truth()
    one, two = truth["requests"]
    assert (one["request_id"], two["request_id"], one["correlation_id"]) == ("r0", "r1", "s")
    assert one["connection"] == two["connection"]
    stamps = [one[f"{name}_mono_ns"] for name in ("received", "admitted", "first", "last", "ended")]
    assert [before, *stamps, after] == sorted([before, *stamps, after])
    assert one["last_wall_ns"] - one["first_wall_ns"] == pytest.approx(one["last_mono_ns"] - one["first_mono_ns"], abs=10**8)
    assert (one["outcome"], one["status"], one["chunks"], one["completion_tokens"]) == ("completed", 200, 3, 3)
    summary = truth["summary"]
    assert (summary["requests"], summary["completion_tokens"], summary["ttft_ms"]["count"]) == (2, 6, 2)
    assert simulator.truth(last=1)["requests"] == [two]
    assert post(simulator, None, "/truth?last=x", method="GET")[0] == 400


def test_batched_requests_share_the_engine_and_the_queue_bounds_them():
    with running(decode_ms=5, max_running=1, max_queue=1, models=["m", "other"], truth_log=2) as simulator:
        with ExitStack() as stack:
            socks = [stack.enter_context(connected(simulator)) for _ in range(3)]
            for sock in socks:
                sock.sendall(wire(chat(max_tokens=20), Connection="close"))
            statuses = [read_to_end(sock).split()[1] for sock in socks]
        assert sorted(statuses) == [b"200", b"200", b"429"]
        summary = simulator.summary()
        assert (summary["engine"]["running_max"], summary["rows_kept"], summary["rows_dropped"]) == (1, 2, 1)
        status, _, body = post(simulator, {**chat(), "model": "absent"})
        assert status == 404
        assert "served: m, other" in json.loads(body)["error"]["message"]
        code, said = simulator.stop()
    assert code == 0
    assert "4 requests" in said
    assert "times are of the last 2 requests" in said


def test_a_server_that_knows_nothing_still_tells_the_truth():
    with running(not_found=True) as simulator:
        assert post(simulator, chat())[0] == 404
        assert post(simulator, None, "/health", method="GET")[0] == 404
        assert simulator.summary()["statuses"] == {"404": 2}


def test_a_server_that_loads_its_model_answers_503():
    with running(ready_after_s=60) as simulator:
        status, headers, _ = post(simulator, chat())
        assert (status, headers["Retry-After"]) == (503, "1")
        assert post(simulator, None, "/v1/models", method="GET")[0] == 503
        assert simulator.summary()["statuses"] == {"503": 2}


def test_shares_of_faults_and_lengths_follow_the_seed():
    seen = []
    for _ in range(2):
        with running(**FAST, faults=["fail=502@0.3"], fail_rate=0.2, stop_tokens=5, seed=7) as simulator:
            for _ in range(30):
                post(simulator, chat(max_tokens=40))
            post(simulator, chat(max_tokens=40, ignore_eos=True), fault="tokens_per_chunk=1")
            seen.append([(row["status"], row["completion_tokens"]) for row in simulator.truth()["requests"]])
    assert seen[0] == seen[1]
    statuses = {status for status, _ in seen[0]}
    lengths = {tokens for status, tokens in seen[0][:-1] if status == 200}
    assert statuses == {200, 500, 502}
    assert len(lengths) > 3
    assert max(lengths) < 40
    assert seen[0][-1] in {(200, 40), (500, 0), (502, 0)}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_a_socket_of_this_machine_serves_the_same(tmp_path):
    path = tmp_path / "simulator.sock"
    with running(**FAST, unix=path) as simulator:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(str(path))
            body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
            sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 OK")
        assert simulator.summary()["requests"] == 1
        with pytest.raises(RuntimeError, match="another server listens there"), running(**FAST, unix=path):
            pass
    assert not path.exists()
    with socket.socket(socket.AF_UNIX) as left:  # by a server that was killed
        left.bind(str(path))
    with running(**FAST, unix=path):
        assert path.is_socket()


def test_tls_serves_the_same(tmp_path):
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-subj", "/CN=127.0.0.1", "-days", "2", "-keyout", str(key), "-out", str(cert)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    with running(**FAST, tls_cert=str(cert), tls_key=str(key)) as simulator:
        assert simulator.url.startswith("https://")
        url = urlsplit(simulator.url)
        context = ssl.create_default_context(cafile=str(cert))
        context.check_hostname = False
        connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=60, context=context)
        connection.request("POST", "/v1/chat/completions", json.dumps(chat(max_tokens=30, stream=True)))
        assert len(deltas(events(connection.getresponse().read()))) == 30
        connection.close()
        assert simulator.summary()["outcomes"] == {"completed": 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"port": "x"}, "port: "),
        ({"freeze_for_s": 1}, "--freeze-for needs --freeze-every"),
        ({"host": "no.such.host.invalid"}, "is no address of this machine"),
    ],
)
def test_a_server_that_cannot_start_says_why(options, said):
    with pytest.raises(RuntimeError, match=said), running(**options):
        pass


def test_a_taken_port_says_so(simulator):
    port = urlsplit(simulator.url).port
    with pytest.raises(RuntimeError, match=f"can't listen on 127.0.0.1 port {port}"), running(port=port):
        pass


def test_sigterm_ends_it_as_cleanly_as_ctrl_c():
    with running(**FAST) as simulator:
        post(simulator, chat(max_tokens=2))
        os.kill(simulator.pid, signal.SIGTERM)
        eventually(simulator.poll, 0)
        code, said = simulator.stop()
    assert code == 0
    assert said.startswith("simulator: 1 requests on 1 connections (1 completed)")


def test_a_request_cut_short_by_the_end_is_counted():
    with running(**FAST) as simulator, connected(simulator) as sock:
        sock.sendall(wire(chat(stream=True), **{"X-Simulate": "slow_first=60"}))
        sock.recv(100)
        code, said = simulator.stop()
        assert not read_to_end(sock).endswith(b"0\r\n\r\n")
    assert code == 0
    assert "1 cut short by the end" in said


def test_a_request_longer_than_the_context_is_refused_in_the_words_of_vllm():
    with running(**FAST, tokens=8, max_context=30) as small:
        prompt = "x" * 60  # 15 tokens, and 2 of the role
        status, _, body = post(small, chat(prompt, max_tokens=20))
        assert status == 400
        said = json.loads(body)["error"]
        assert said["message"] == (
            "This model's maximum context length is 30 tokens. However, you requested 20 output tokens and your prompt contains"
            " at least 17 input tokens, for a total of at least 37 tokens. Please reduce the length of the input prompt or the"
            " number of requested output tokens."
        )
        assert (said["type"], said["code"]) == ("BadRequestError", 400)
        assert post(small, chat(prompt, max_tokens=13))[0] == 200
        status, _, body = post(small, chat("x" * 200))
        assert status == 400
        assert b"your request has 52 input tokens" in body
        rows = [(row["outcome"], row["over_context"]) for row in small.truth()["requests"]]
        assert rows == [("refused", 7), ("completed", 0), ("refused", 23)]
        assert small.summary()["context_overflows"] == 2


def test_a_small_prefix_cache_drops_the_prompt_used_longest_ago():
    with running(**FAST, cache_blocks=4) as small:
        for letter in "aab":  # each prompt is three blocks, and its answer none
            post(small, chat(letter * 200, max_tokens=1))
        assert [row["cached_tokens"] for row in small.truth()["requests"]] == [0, 48, 0]
        *_, body = post(small, chat("a" * 200, max_tokens=1))
        assert json.loads(body)["usage"]["prompt_tokens_details"] == {"cached_tokens": 16}
        assert small.summary()["engine"]["cache_evicted"] > 0
