"""Each endpoint type in a whole run against the simulator: the report and the server's own account agree.

A package adds its row; types are in alphabetical order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

REQUESTS = 4


class Row(NamedTuple):
    """words: of the command line, behind *data*.  paths: those that the server was asked for.

    tokens: of each answer, None for a type without output tokens.  present, absent: metrics of the report.
    data: words that shape the data.  file: its rows, of *kind*, in place of synthetic texts.  heading: of the table of metrics.
    steps: tokens that the server counts of each answer of a type without output tokens.
    inputs: tokens of each request, as counted here, None isn't looked at; where *texts* are joined, a token more or less each.
    """

    words: str
    paths: tuple[str, ...]
    tokens: int | None = None
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    data: str = "--tokenizer builtin --isl 20"
    file: str | None = None
    kind: str = "single_turn"
    heading: str = "LLM Metrics"
    inputs: int | None = None
    texts: int = 1
    steps: int = 0


PNG = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTPnuQAAAABJRU5ErkJggg=="
PICTURE = json.dumps({"image": PNG})
PAYLOAD = '{"payload":{"model":"m","messages":[{"content":"Hi"}],"max_tokens":6,"stream":true}}\n'
WORDS_AND_PICTURE = json.dumps({"text": "one two three", "image": PNG})
WORDS = json.dumps({"text": "one two three four five six seven eight nine ten eleven twelve"})
TOKENS = "--tokenizer builtin"
BATCH = f"{TOKENS} --isl 20 --batch-size-text 3"
RANKS = (
    f"{TOKENS} --rankings-passages-mean 3 --rankings-passages-prompt-token-mean 9 --rankings-query-prompt-token-mean 5"
)


def embeddings(words: str, **row: Any) -> Row:
    usual = {"data": BATCH, "heading": "Embeddings Metrics", "inputs": 60, "texts": 3}
    return Row(words, ("/v1/embeddings",), **{**usual, **row})


def rankings(*paths: str, words: str = "", heading: str = "Rankings Metrics") -> Row:
    return Row(words, paths, data=RANKS, inputs=32, texts=4, heading=heading)


TYPES = {
    "audio_speech": Row(
        "--extra-inputs response_format:mp3", ("/v1/audio/speech",), steps=17, inputs=12, heading="Audio Speech Metrics",
        data=TOKENS, file=WORDS,
        present=("time_to_first_audio", "generated_audio_duration", "real_time_factor"),
    ),
    "audio_speech with events": Row(
        "--extra-inputs stream_format:sse", ("/v1/audio/speech",), steps=17, heading="Audio Speech Metrics",
        data=TOKENS, file=WORDS,
        present=("time_to_first_audio", "generated_audio_duration", "usage_prompt_tokens"),
    ),
    "audio_transcription": Row(
        "", ("/v1/audio/transcriptions",), steps=5, data="--audio-length-mean 2", heading="Audio Transcription Metrics",
        present=("rtfx", "audio_duration"), absent=("input_sequence_length",),
    ),
    "audio_transcription with words": Row(
        f"--streaming {TOKENS} -H X-Simulate:stall=2:0.1",  # so that no read has all words of an answer
        ("/v1/audio/transcriptions",), 5, data="--audio-length-mean 2 --audio-format mp3",
        heading="Audio Transcription Metrics", present=("rtfx", "time_to_first_token", "inter_token_latency"),
    ),
    "audio_transcription of vLLM": Row(
        f"--streaming {TOKENS} --use-server-token-count", ("/v1/audio/transcriptions",), 5, data="--audio-length-mean 2",
        heading="Audio Transcription Metrics", present=("rtfx", "time_to_first_token", "usage_completion_tokens"),
    ),
    "chat": Row("--streaming --osl 6", ("/v1/chat/completions",), 6, present=("time_to_first_token",), inputs=20),
    "chat with n": Row(
        "--streaming --osl 6 --extra-inputs n:2", ("/v1/chat/completions",), 12, present=("time_to_first_token",),
        absent=("inter_token_latency", "output_token_throughput_per_user", "e2e_output_token_throughput"),
    ),
    "chat_embeddings": embeddings("", data=TOKENS, file=WORDS_AND_PICTURE, inputs=3, texts=1, present=("image_throughput",)),
    "classify": Row("", ("/classify",), data=BATCH, inputs=60, texts=3, heading="Classification Metrics"),
    "cohere_rankings": rankings("/v2/rerank", heading="Ranking Metrics", words="--extra-inputs top_n:2"),
    "completions": Row("--osl 6", ("/v1/completions",), 6, absent=("time_to_first_token",), inputs=20),
    "completions with prompts": Row(
        "--streaming --osl 6", ("/v1/completions",), 18, present=("time_to_first_token",), data=BATCH, inputs=60, texts=3,
        absent=("inter_token_latency", "output_token_throughput_per_user", "e2e_output_token_throughput"),
    ),
    "dynamic_grpc": Row(
        "--grpc-method aiperf.simulate.Echo/Down", ("/aiperf.simulate.Echo/Down",), data="",
        file='{"messages":[{"text":"a b"}]}', kind="grpc_messages", absent=("input_sequence_length",), heading="gRPC Metrics",
    ),
    "embeddings": embeddings("--extra-inputs encoding_format:base64"),
    "generate": Row("--streaming --osl 6", ("/v2/models/m/generate_stream",), 6, present=("time_to_first_token",)),
    "hf_tei_rankings": rankings("/rerank", heading="Ranking Metrics"),
    "huggingface_generate": Row(
        "--streaming --osl 6", ("/generate_stream",), 6, present=("time_to_first_token", "usage_prompt_tokens"),
    ),
    "image_edit": Row(
        "--streaming --extra-inputs partial_images:1", ("/v1/images/edits",), steps=2, data=TOKENS, file=WORDS_AND_PICTURE,
        inputs=3, present=("time_to_first_image", "num_images", "image_throughput"), heading="Image Edit Metrics",
    ),
    "image_generation": Row(
        "--streaming --extra-inputs partial_images:2", ("/v1/images/generations",), steps=3, inputs=20,
        present=("time_to_first_image", "num_images", "image_latency"), heading="Image Generation Metrics",
    ),
    "image_generation with n": Row(
        "--extra-inputs n:2", ("/v1/images/generations",), steps=8, present=("num_images",), absent=("time_to_first_image",),
        heading="Image Generation Metrics",
    ),
    "image_retrieval": Row(
        "", ("/v1/infer",), data="", file=PICTURE, present=("image_throughput", "image_latency"),
        absent=("input_sequence_length",), heading="Image Retrieval Metrics",
    ),
    "kserve": Row(
        "--streaming --osl 6", ("/inference.GRPCInferenceService/ModelStreamInfer",), 6, present=("time_to_first_token",),
        inputs=20,
    ),
    "kserve over http": Row(
        "--streaming --osl 6", ("/v2/models/m/infer_stream",), 6, present=("time_to_first_token",), inputs=20
    ),
    "messages": Row("--streaming --osl 6", ("/v1/messages",), 6, present=("time_to_first_token",)),
    "nim_embeddings": embeddings("--extra-inputs input_type:query", heading="NIM Embeddings Metrics"),
    "nim_rankings": rankings("/v1/ranking"),
    "nvclip": embeddings("", data=TOKENS, file=WORDS_AND_PICTURE, inputs=3, texts=1, present=("image_throughput",)),
    "ollama": Row(
        "--streaming --osl 6 --extra-inputs num_ctx:10", ("/api/chat",), 6,
        present=("time_to_first_token", "server_timing_load_duration", "truncated_prompt_count"),
    ),
    "pooling": Row("", ("/pooling",), data=BATCH, inputs=60, texts=3, heading="Pooling Metrics"),
    "rankings": rankings("/rerank", words="--endpoint /rerank"),
    "raw": Row(
        "--streaming --endpoint /v1/chat/completions", ("/v1/chat/completions",), 6, present=("time_to_first_token",),
        data=TOKENS, file=PAYLOAD * REQUESTS, kind="mooncake_trace", inputs=1,
    ),
    "responses": Row("--streaming --osl 6", ("/v1/responses",), 6, present=("time_to_first_token",)),
    "score": rankings("/score", heading="Score Metrics"),
    "sglang_generate": Row("--streaming --osl 6", ("/generate",), 6, present=("time_to_first_token", "usage_prompt_tokens")),
    "sglang_generate with n": Row(
        "--streaming --osl 6 --extra-inputs {\"sampling_params\":{\"n\":2}}", ("/generate",), 12,
        present=("time_to_first_token", "usage_completion_tokens"),
        absent=("inter_token_latency", "output_token_throughput_per_user", "osl_mismatch_count"),
    ),
    "solido_rag": Row(
        "--streaming", ("/rag/api/prompt",), 64, present=("time_to_first_token", "source_count"), heading="SOLIDO RAG Metrics"
    ),
    "template": Row(
        '--streaming --endpoint /v1/completions --extra-inputs payload_template:{"prompt":{{text|tojson}},"stream":true}'
        " --extra-inputs response_field:choices[0].text --extra-inputs max_tokens:6",
        ("/v1/completions",), 6, present=("time_to_first_token",), inputs=20,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_run_of_this_type_agrees_with_the_server(name: str, tmp_path: Path, simulator: Simulator) -> None:
    row = TYPES[name]
    data = row.data.split()
    if row.file is not None:
        (tmp_path / "rows.jsonl").write_text(row.file)
        data += ["--input-file", str(tmp_path / "rows.jsonl"), "--custom-dataset-type", row.kind]
    calls = name in ("dynamic_grpc", "kserve")
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", simulator.url.removeprefix("http://" if calls else ""),
        "--endpoint-type", name.split()[0],
        "--request-count", REQUESTS, "--concurrency", 2, "--random-seed", 7, "--ui", "none", *data, *row.words.split(),
    )  # fmt: skip
    assert done.code == 0, done.err
    assert row.heading in map(str.strip, done.out.splitlines())
    report: dict[str, Any] = done.json()
    truth = simulator.truth()["requests"]
    assert report["request_count"]["avg"] == len(truth) == REQUESTS
    assert {request["path"] for request in truth} == set(row.paths)
    assert {(request["status"], request["outcome"]) for request in truth} == {(200, "completed")}
    if row.inputs is not None:
        counted = report["input_sequence_length"]
        assert row.inputs - row.texts < counted["min"] <= counted["max"] < row.inputs + row.texts
    made = sum(request["completion_tokens"] for request in truth)
    if row.tokens is None:
        assert made == row.steps * REQUESTS
        row = row._replace(absent=(*row.absent, "output_sequence_length", "time_to_first_token", "inter_token_latency"))
    else:
        assert (made, report["total_osl"]["avg"]) == (row.tokens * REQUESTS, row.tokens * REQUESTS)
        if "usage_completion_tokens" in row.present:
            assert report["usage_completion_tokens"]["avg"] == row.tokens
    assert [metric for metric in row.present if metric not in report] == []
    assert [metric for metric in row.absent if metric in report] == []


@pytest.mark.parametrize(("name", "data", "fault", "error"), [
    ("nim_rankings", RANKS, "items=2", {"message": "scores: 2 in the answer, 3 asked for"}),
    ("embeddings", BATCH, "body=html",
     {"message": "embeddings: not JSON; the answer is text/html", "cause": "<html><body><h1>Bad Gateway</h1></body></html>\n"}),
])  # fmt: skip
def test_another_answer_than_asked_for_is_an_error(
    name: str, data: str, fault: str, error: dict[str, str], tmp_path: Path, simulator: Simulator
) -> None:
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", name, "-H", f"X-Simulate: {fault}",
        "--request-count", REQUESTS, "--ui", "none", *data.split(),
    )  # fmt: skip
    assert done.code == 1
    expected = {"error_details": {"type": "InvalidInferenceResultError", **error}, "count": REQUESTS}
    assert done.json()["error_summary"] == [expected]


def test_what_an_endpoint_of_vectors_cannot_do_is_said(tmp_path: Path, simulator: Simulator) -> None:
    """No streams and no output lengths; and the vectors of this run are of two lengths."""
    rows = [{"text": "one two", "extra": {"dimensions": length}} for length in (4, 8)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", "embeddings", *TOKENS.split(), "--streaming",
        "--input-file", tmp_path / "rows.jsonl", "--osl", 7, "--request-count", REQUESTS, "--ui", "none",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "the endpoint type 'embeddings' does not stream: --streaming is switched off" in done.err
    assert "the endpoint type 'embeddings' makes no tokens: output lengths are not sent" in done.err
    assert "vectors have from 4 to 8 dimensions" in done.out
    assert (done.json()["embedding_dimensions"]["min"], done.json()["embedding_dimensions"]["max"]) == (4, 8)
