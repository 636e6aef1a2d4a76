"""KServe's protocol against Triton and MLServer: the servers' own counts are the report's (`make test-real`)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from program import Done, Program
from servers import MLSERVER, Server, UnavailableError, running
from test_real_servers import tried_on

REQUESTS, LENGTH = 6, 5
TITLES = {"triton": "Triton 2.51", "mlserver": f"MLServer {MLSERVER}"}
TEXT = f"--tokenizer builtin --isl 12 --osl {LENGTH}"


@pytest.fixture(scope="module")
def started() -> Iterator[Callable[[str], Server]]:
    """Starts a server once, and gives the one that runs; both end with the module."""
    with contextlib.ExitStack() as stack:
        servers: dict[str, Server | UnavailableError] = {}

        def start(name: str) -> Server:
            for _ in range(2):  # pytriton loses a race with its models now and then, on a busy machine
                if isinstance(servers.get(name), Server):
                    break
                try:
                    servers[name] = stack.enter_context(running(name, ""))
                except UnavailableError as reason:
                    servers[name] = reason
            server = servers[name]
            if isinstance(server, UnavailableError):
                pytest.skip(f"{name}: {server}")
            return server

        yield start


@pytest.fixture
def server(name: str, started: Callable[[str], Server]) -> Server:
    return started(name)


def port_of(server: Server) -> int:
    return int(server.url.rpartition(":")[2])


def counted(name: str, server: Server) -> float:
    """Inferences that ended well, as the server counts them."""
    page = Server(f"http://127.0.0.1:{port_of(server) + 2}", Path()).counters()
    return page.get("nv_inference_request_success" if name == "triton" else "model_infer_request_success_total", 0.0)


def run(tmp_path: Path, server: Server, wire: str, words: str) -> Done:
    port = port_of(server)
    url = f"http://127.0.0.1:{port}" if wire == "http" else f"127.0.0.1:{port + 1}"
    return Program(tmp_path)(
        "profile", "--url", url, "--endpoint-type", "kserve", *TEXT.split(), "--request-count", REQUESTS, "--concurrency", 2,
        "--random-seed", 3, "--export-outputs-json", "--ui", "none", *words.split(),
    )  # fmt: skip


CASES = [
    ("triton", "http", "-m echo_once"), ("triton", "grpc", "-m echo_once"), ("triton", "grpc", "-m echo_once --backend vllm"),
    ("triton", "grpc", "-m echo --streaming"), ("triton", "grpc", "-m echo --streaming --backend vllm"),
    ("mlserver", "http", "-m echo"), ("mlserver", "http", "-m echo --streaming"), ("mlserver", "grpc", "-m echo"),
    ("mlserver", "grpc", "-m echo --streaming"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "wire", "words"), CASES)
def test_the_report_has_the_servers_own_counts(server: Server, name: str, wire: str, words: str, tmp_path: Path) -> None:
    before = counted(name, server)
    done = run(tmp_path, server, wire, words)
    assert done.code == 0, done.err
    report = done.json()
    assert (report["request_count"]["avg"], "error_request_count" in report) == (REQUESTS, False), report.get("error_summary")
    assert counted(name, server) - before == REQUESTS
    outputs = json.loads((done.artifacts / "outputs.json").read_bytes())["data"]
    assert [len(row["response_text"].split()) for row in outputs] == [LENGTH] * REQUESTS
    assert ("time_to_first_token" in report) == ("--streaming" in words)
    if "--streaming" in words:
        first = report["time_to_first_token"]
        assert 50 < first["min"] <= first["max"] < report["request_latency"]["max"]
    assert TITLES[name] in " ".join(tried_on("kserve")), f"docs.servers of kserve lacks {TITLES[name]}"


@pytest.mark.parametrize("wire", ["http", "grpc"])
@pytest.mark.parametrize("name", TITLES)
def test_an_unknown_model_is_a_sentence(server: Server, name: str, wire: str, tmp_path: Path) -> None:
    done = run(tmp_path, server, wire, "-m nosuch")
    assert done.code == 1
    assert "has no model 'nosuch': name one of its own with -m" in done.err


@pytest.mark.parametrize("wire", ["http", "grpc"])
@pytest.mark.parametrize("name", ["triton"])
def test_a_decoupled_model_without_streaming_is_told(server: Server, name: str, wire: str, tmp_path: Path) -> None:
    done = run(tmp_path, server, wire, "-m echo")
    assert done.code == 1
    assert "the model answers in parts (decoupled), which only streams carry: add --streaming" in done.err
    assert [row["error_details"]["code"] for row in done.json()["error_summary"]] == [501]


@pytest.mark.parametrize("name", TITLES)
def test_inputs_that_the_model_lacks_are_left_out_once(server: Server, name: str, tmp_path: Path) -> None:
    model = "echo_once" if name == "triton" else "echo"
    done = run(tmp_path, server, "grpc", f"-m {model} --output-tokens-mean-deterministic")
    assert done.code == 0, done.err
    assert done.err.count("min_length") == 1


@pytest.mark.parametrize("name", TITLES)
def test_a_cancelled_call_ends_and_others_go_on(server: Server, name: str, tmp_path: Path) -> None:
    before, sent = counted(name, server), sent_messages(server)
    long = "-m echo --streaming --osl 60 --request-cancellation-rate 100 --request-cancellation-delay 0.2"
    done = Program(tmp_path)(
        "profile", "--url", f"127.0.0.1:{port_of(server) + 1}", "--endpoint-type", "kserve", "--tokenizer", "builtin", "--isl",
        12, "--request-count", REQUESTS, "--concurrency", 3, "--ui", "none", *long.split(),
    )  # fmt: skip
    assert [(row["error_details"]["code"], row["count"]) for row in done.json()["error_summary"]] == [(499, REQUESTS)]
    after = run(tmp_path, server, "grpc", "-m echo --streaming")
    assert after.code == 0, after.err
    if name == "triton":  # its Python models finish what nobody waits for, and it counts that as a success
        assert REQUESTS <= counted(name, server) - before <= 2 * REQUESTS
    else:
        assert 0 < sent_messages(server) - sent < REQUESTS * (60 + LENGTH)


@pytest.mark.parametrize("name", ["vllm_grpc"])
def test_vllm_describes_its_own_service(server: Server, name: str, tmp_path: Path) -> None:
    sampling = {"maxTokens": LENGTH, "temperature": 0.0, "ignoreEos": True}
    asked = {"text": "hello world", "samplingParams": sampling, "stream": True}
    rows = [{"messages": [{"requestId": f"r{number}", **asked}]} for number in range(REQUESTS)]
    (tmp_path / "calls.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = Program(tmp_path)(
        "profile", "-m", "m", "--url", f"127.0.0.1:{port_of(server)}", "--endpoint-type", "dynamic_grpc", "--grpc-method",
        "vllm.grpc.engine.VllmEngine/Generate", "--input-file", tmp_path / "calls.jsonl", "--request-count", REQUESTS, "--ui",
        "none", "--export-outputs-json",
    )  # fmt: skip
    assert done.code == 0, done.err
    outputs = json.loads((done.artifacts / "outputs.json").read_bytes())["data"]
    for row in outputs:  # a message a token, and the end
        *chunks, end = map(json.loads, row["response_text"].splitlines())
        assert [chunk["chunk"]["completionTokens"] for chunk in chunks] == [1] * LENGTH
        assert end["complete"]["finishReason"] == "length"
    assert "vLLM 0.32" in " ".join(tried_on("dynamic_grpc"))


def sent_messages(server: Server) -> float:
    """Messages of streams that MLServer has sent."""
    page = Server(f"http://127.0.0.1:{port_of(server) + 2}", Path()).counters()
    return page.get("grpc_server_msg_sent_total", 0.0)


@pytest.mark.parametrize("name", TITLES)
def test_any_method_is_called_by_descriptors_where_reflection_is_off(server: Server, name: str, tmp_path: Path) -> None:
    from aiperf_rpc.methods import set_of
    from aiperf_rpc.protos import kserve
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    (tmp_path / "kserve.binpb").write_bytes(set_of([FileDescriptorProto.FromString(kserve.DESCRIPTOR.serialized_pb)]))
    (tmp_path / "calls.jsonl").write_text('{"messages":[{"name":"echo"}]}\n')
    words: list[str | float | Path] = [
        "profile", "-m", "m", "--url", f"127.0.0.1:{port_of(server) + 1}", "--endpoint-type", "dynamic_grpc", "--grpc-method",
        "inference.GRPCInferenceService/ModelReady", "--input-file", tmp_path / "calls.jsonl", "--request-count", 10, "--ui",
        "none", "--export-outputs-json",
    ]  # fmt: skip
    done = Program(tmp_path)(*words)
    assert done.code == 1
    assert "its reflection is off, in v1 and in v1alpha" in done.err and "--grpc-descriptors FILE" in done.err
    done = Program(tmp_path)(*words, "--grpc-descriptors", tmp_path / "kserve.binpb")
    assert done.code == 0, done.err
    outputs = json.loads((done.artifacts / "outputs.json").read_bytes())["data"]
    assert {row["response_text"] for row in outputs} == {'{"ready": true}\n'}
