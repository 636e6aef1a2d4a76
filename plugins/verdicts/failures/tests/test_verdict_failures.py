"""Errors to causes and next steps."""

from __future__ import annotations

import json

import pytest
from aiperf import ErrorDetails
from aiperf.sdk.model import LATER, STILL_COMING
from aiperf.sdk.summary import Arrivals, ErrorCount, UrlSummary
from aiperf.sdk.transport import REFUSED
from aiperf.sdk.verdict import ErrorSeen
from aiperf.testing import sample_evidence
from aiperf_verdict_failures import Failures
from aiperf_verdict_failures.causes import cause_of
from aiperf_verdict_failures.contract import FailuresContract
from msgspec.structs import replace


def test_a_server_without_infer_stream_is_told_where_triton_streams() -> None:
    plan = sample_evidence().plan
    endpoint = replace(plan.plugins.endpoint, name="kserve")
    plan = replace(
        plan, plugins=replace(plan.plugins, endpoint=endpoint), target=replace(plan.target, streaming=True, urls=("http://h:80",))
    )
    kind, sentence = cause_of(ErrorDetails('{"error":"Not Found"}', "Not Found", 404), plan)
    assert (kind, "-u grpc://HOST:8001, or with --endpoint-type generate" in sentence) == ("no_route", True)


class TestItKeepsTheContract(FailuresContract):
    pass


def seen(message: str, code: int | None = None, count: int = 5, cause: str | None = None, kind: str = "Error") -> ErrorSeen:
    return ErrorSeen(ErrorDetails(message, kind, code, cause), count, 1e6)


def api_error(message: str, code: str) -> str:
    """An error body of the OpenAI API; its type has the word invalid in it whatever is wrong."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code}})


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (seen("redirected to https://other/v1, which is not followed", 307), "redirected", "without a key that is meant for"),
        (seen("redirected to https://other/v1, which is not followed", 307), "redirected", "to https://other/v1, which"),
        (seen('{"error": {"message": "Incorrect API key"}}', 401), "not_authorized", "--api-key"),
        (seen('{"error": {"message": "Incorrect API key"}}', 401), "not_authorized", "it says: Incorrect API key"),
        (seen("", 403), "not_authorized", "-H 'Name: value'"),
        (seen('{"message": "The model `m` does not exist."}', 404), "unknown_model", "at /v1/models; it says: The model `m`"),
        (seen('{"error": "model \'m\' not found"}', 404), "unknown_model", "no model"),
        (seen('{"detail": "Not Found"}', 404), "no_route", "--endpoint gives another path; it says: Not Found"),
        (seen("", 405), "no_route", "(405)"),
        (seen("nothing here", 501, kind="UNIMPLEMENTED"), "no_method", "has no method"),
        (seen("the answer ends without grpc-status", 500, kind="InvalidGrpcAnswer"), "not_grpc", "is this its gRPC port?"),
        (seen("Request for unknown model: 'm' is not found"), "unknown_model", "no model"),
        (seen(api_error("The model does not support Embeddings API", "400"), 400), "other_task", "--endpoint-type"),
        (seen("The model does not support Chat Completions API", 404), "other_task", "it says: The model does not support"),
        (seen("This server does not support embeddings. Start it with `--embeddings`", 501), "other_task", "-m; it says: This"),
        (seen("too large", 413), "too_large", "larger than the server takes"),
        (seen("This model's maximum context length is 4096 tokens.", 400), "too_long", "--isl or --osl"),
        (seen("the request exceeds the available context size", 400), "too_long", "--isl or --osl"),
        (seen("3001 prompt tokens and 20 to be made are more than the context of 3000 tokens", 400), "too_long", "--isl or"),
        (seen("`inputs` tokens + `max_new_tokens` must be <= 4096", 422), "too_long", "--isl or --osl"),
        (seen("Unsupported parameter: max_completion_tokens", 400), "old_length_name", "--use-legacy-max-tokens"),
        (seen(api_error("'max_completion_tokens' is not supported with this model.", "unsupported"), 400), "old_length_name",
            "--use-legacy-max-tokens"),
        (seen(api_error("This is too much for the model.", "context_length_exceeded"), 400), "too_long", "--osl smaller"),
        (seen(api_error("We have no such thing.", "model_not_found"), 404), "unknown_model", "at /v1/models; it says: We have"),
        (seen(api_error("The model is busy with your invalid schema", ""), 422), "refused", "refuses the requests (422)"),
        (seen('{"error":"generate expects model to produce exactly 1 response, use generate stream for models that may generate'
            ' various number of responses"}', 400), "decoupled", "add --streaming; it says: generate expects"),
        (seen('{"error":"doesn\'t support models with decoupled transaction policy"}', 500), "decoupled", "add --streaming"),
        (seen("slow down", 429), "rate_limited", "--concurrency or --request-rate; it says: slow down"),
        (seen("h:80: Connection refused", cause=REFUSED), "nobody_listens", "nothing listens at -u http"),
        (seen("h:80: Connect call failed", cause=REFUSED, kind="ConnectionRefusedError"), "nobody_listens", "at -u http"),
        (seen("proxy:3128: Connection refused", cause=REFUSED), "nobody_listens", "proxy:3128, which is none of"),
        (seen("h: Name or service not known", cause=REFUSED, kind="gaierror"), "no_address", "is its name right"),
        (seen("h:80: No route to host", cause=REFUSED), "unreachable", "no firewall between? (h:80: No"),
        (seen("the server closed the connection before a whole answer was in"), "closed", "its own log"),
        (seen("Connection reset by peer"), "closed", "if it speaks TLS, begin the URL with https://"),
        (seen("no whole answer within 0.5 s", 504), "timed_out", "--request-timeout-seconds"),
        (seen("the server ended the connection: ENHANCE_YOUR_CALM: calm", kind="GoAway"), "ended", "(the server ended the con"),
        (seen("the server ended the stream: REFUSED_STREAM", kind="StreamReset"), "ended", "its own log says why"),
        (seen("Deadline Exceeded", 504, kind="DEADLINE_EXCEEDED"), "timed_out", "Deadline Exceeded: raise --request-timeout-s"),
        (seen("no whole answer within 0.5 s", 504, cause=STILL_COMING), "timed_out", "answers were still coming"),
        (seen("a riddle", 500), "fails", "fails (500): its own log says why; it says: a riddle"),
        (seen("<html>", 502, kind="Bad Gateway"), "gateway", "is that one up?"),
        (seen("loading", 503), "not_ready", "--wait-for-model-timeout"),
        (seen("not HTTP: Expected HTTP/", 502), "not_http", "speaks no HTTP: is this the server's port? (Expected HTTP/)"),
        (seen("The plain HTTP request was sent to HTTPS port", 400), "speaks_tls", "begin the URL with https://"),
        (seen("h: TLS handshake failed: self-signed certificate"), "unknown_authority", "--ca-file"),
        (seen("Hostname mismatch, certificate is not valid for 'h'"), "wrong_host_name", "another host's"),
        (seen("h: TLS handshake failed: WRONG_VERSION_NUMBER"), "no_tls", "begin the URL with http://"),
        (seen("h:1: TCP connects, but nothing answers TLS within 30 s"), "no_answer_to_tls", "begin the URL with http://"),
        (seen("h: TLS handshake failed: TLSV1_ALERT_PROTOCOL_VERSION"), "old_tls", "TLS 1.2 or 1.3"),
        (seen("Cannot connect [[SSL: UNSUPPORTED_PROTOCOL] unsupported protocol (_ssl.c:1006)]"), "old_tls", "TLS 1.2 or 1.3"),
        (seen("not HTTP: the server speaks TLS"), "speaks_tls", "begin the URL with https://"),
        (seen("not HTTP/2: the server speaks TLS"), "speaks_tls", "begin the URL with https://"),
        (seen("not HTTP: the server speaks HTTP/2"), "speaks_http2", "HTTP/1.1"),
        (seen("not HTTP/2: the server speaks HTTP/1.1, not HTTP/2"), "speaks_no_http2", "another --transport"),
        (seen("h:1: TCP connects, but no HTTP/2 answers within 30 s"), "speaks_no_http2", "gRPC port"),
        (seen("the answer is encoded as br, and no header Accept-Encoding asked for that"), "encoded", "Accept-Encoding: gzip"),
        (seen("the answer has no content"), "no_content", "--export-level raw"),
        (seen("chat: not JSON; the answer is text/html"), "other_type", "answers with text/html at"),
    ],
)
def test_an_error_names_its_cause_and_the_next_step(error: ErrorSeen, kind: str, words: str) -> None:
    (finding,) = Failures().judge(sample_evidence(errors=(error,)))
    assert finding.kind == kind
    assert words in finding.sentence
    assert finding.numbers == {"requests": 5, "failed": 5}


@pytest.mark.parametrize(
    ("url", "said", "scheme"),
    [
        ("grpc://h:1", "Connection reset by peer", "grpcs"), ("grpcs://h:1", "Connection reset by peer", "grpc"),
        ("grpc://h:1", "not HTTP/2: the server speaks TLS", "grpcs"), ("https://h:1", "Connection reset by peer", "http"),
        ("grpcs://h:1", "h: TLS handshake failed: WRONG_VERSION_NUMBER", "grpc"),
    ],
)  # fmt: skip
def test_a_url_of_grpc_stays_one(url: str, said: str, scheme: str) -> None:
    _, sentence = cause_of(ErrorDetails(said), sample_evidence().plan.replacing(urls=(url,)))
    assert f" {scheme}://" in sentence.rpartition("-u ")[2], sentence


def api(message: str, **fields: object) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", **fields}})


def fields(kind: str, message: str, field: str = "max_completion_tokens") -> str:
    """An error body of FastAPI, which checks fields with pydantic."""
    return json.dumps({"detail": [{"type": kind, "loc": ["body", field], "msg": message, "input": 9000}]})


_TGI = "Input validation error: "
_VLLM = "This model's maximum context length is 4096 tokens"


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        # OpenAI, and what speaks its API
        (400, api("max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided"
            " 100000.", param="max_completion_tokens", code="invalid_value"), "long_answer"),
        (400, api("max_completion_tokens is too large: 100000. This model supports at most 16,384 completion tokens"),
            "long_answer"),
        (400, api("Invalid 'max_completion_tokens': integer above maximum value. Expected a value <= 4096, but got 9000"
            " instead."), "long_answer"),
        (400, api("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), "long_answer"),
        (400, api("`max_completion_tokens` must be less than or equal to `8192`, the maximum value for `max_completion_tokens`"
            " is less than the `context_window` for this model"), "long_answer"),
        (400, api("Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead.",
            code="unsupported_parameter"), "old_length_name"),
        (400, api("Unrecognized request argument supplied: max_completion_tokens"), "old_length_name"),
        (400, api("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
            "new_length_name"),
        # vLLM
        (400, api(f"'max_tokens' or 'max_completion_tokens' is too large: 9000. {_VLLM} and your request has 15 input tokens"
            " (9000 > 4096 - 15).", code=400), "too_long"),
        (400, api(f"{_VLLM}. However, you requested 9015 tokens (15 in the messages, 9000 in the completion). Please reduce the"
            " length of the messages or completion."), "too_long"),
        (400, api("max_completion_tokens=9000 cannot be greater than max_model_len=4096."), "too_long"),
        (400, api("max_completion_tokens must be at least 1, got 0."), "refused"),
        (400, api("[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not"
            " permitted', 'input': 5}]"), "old_length_name"),
        # TGI
        (422, json.dumps({"error": f"{_TGI}`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 15 `inputs` tokens and"
            " 9000 `max_new_tokens`", "error_type": "validation"}), "too_long"),
        (422, json.dumps({"error": f"{_TGI}`max_new_tokens` must be <= 512. Given: 9000"}), "long_answer"),
        (422, json.dumps({"error": f"{_TGI}`inputs` must have less than 1024 tokens. Given: 1500"}), "too_long"),
        (422, "Failed to deserialize the JSON body into the target type: unknown field `max_completion_tokens`, expected one of"
            " `model`, `max_tokens`", "old_length_name"),
        (422, "Failed to deserialize the JSON body into the target type: unknown field `foo`, expected one of `model`,"
            " `max_completion_tokens`", "refused"),
        # SGLang
        (400, api("Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of"
            " 9015 tokens: 15 tokens from the input messages and 9000 tokens for the completion."), "too_long"),
        (400, api("The input (5000 tokens) is longer than the model's context length (4096 tokens)."), "too_long"),
        (400, api("max_completion_tokens is too large: 9000. This model supports at most 4096 completion tokens."),
            "long_answer"),
        # llama.cpp
        (400, api("the request exceeds the available context size. try increasing the context size or enable context shift"),
            "too_long"),
        (400, api("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            type="exceed_context_size_error", n_prompt_tokens=5000, n_ctx=4096), "too_long"),
        # TensorRT-LLM
        (400, api("The sum of prompt length (20.0), query length (0) and max_tokens (9000) should not exceed max_num_tokens"
            " (8192)"), "too_long"),
        # FastAPI
        (422, fields("less_than_equal", "Input should be less than or equal to 4096"), "long_answer"),
        (422, fields("extra_forbidden", "Extra inputs are not permitted"), "old_length_name"),
        (422, fields("extra_forbidden", "Extra inputs are not permitted", "stream_options"), "refused"),
        (422, fields("int_parsing", "Input should be a valid integer"), "refused"),
    ],
)  # fmt: skip
def test_a_length_that_is_too_large_is_told_from_a_name_that_is_unknown(code: int, body: str, kind: str) -> None:
    (finding,) = Failures().judge(sample_evidence(errors=(seen(body, code),)))
    assert finding.kind == kind
    assert ("--use-legacy-max-tokens" in finding.sentence) == (kind in ("old_length_name", "new_length_name"))


def test_errors_of_fields_are_told_as_sentences() -> None:
    error = seen(fields("int_parsing", "Input should be a valid integer"), 422)
    (finding,) = Failures().judge(sample_evidence(errors=(error,)))
    assert finding.sentence.endswith("; it says: max_completion_tokens: Input should be a valid integer")


@pytest.mark.parametrize(("message", "words"), [
    ("max_tokens is too large: 9000", "the output lengths of the input file smaller"),
    ("maximum context length is 4096 tokens", "make the prompts or the output lengths of the input file smaller"),
])  # fmt: skip
def test_lengths_of_a_file_are_not_changed_by_options(message: str, words: str) -> None:
    evidence = sample_evidence(errors=(seen(message, 400),))
    (finding,) = Failures().judge(replace(evidence, plan=evidence.plan.replacing(source="a.jsonl")))
    assert words in finding.sentence and "--osl" not in finding.sentence


def test_a_part_of_the_failures_is_counted_and_one_cause_is_told_once() -> None:
    errors = (seen("slow down", 429, 2), seen("wait", 429, 3), seen("a riddle", 418, 7))
    (finding,) = Failures().judge(sample_evidence(errors=errors))
    assert finding.sentence.startswith("5 of 12 failed requests: the server limits requests (429)")
    assert finding.numbers == {"requests": 5, "failed": 12}


@pytest.mark.parametrize(("cause", "kind", "words"), [
    (LATER, "lost_job", "doesn't find a job that it has begun, or its file (404)"), (None, "no_route", "its base address"),
])  # fmt: skip
def test_a_lost_job_is_no_wrong_address(cause: str | None, kind: str, words: str) -> None:
    (finding,) = Failures().judge(sample_evidence(errors=(seen("no such job", 404, 3, cause),)))
    assert finding.kind == kind and words in finding.sentence and finding.sentence.endswith("it says: no such job")


def test_a_poll_that_breaks_off_tells_nothing_of_tls() -> None:
    said = "the server closed the connection before a whole answer was in"
    (begun,) = Failures().judge(sample_evidence(errors=(seen(said, cause=LATER),)))
    assert "in a poll or a download" in begun.sentence and "TLS" not in begun.sentence


def test_what_a_server_says_is_shortened_and_pages_are_left_out() -> None:
    long, page = (next(iter(Failures().judge(sample_evidence(errors=(seen(text, 401),))))) for text in ("x" * 5000, "<html>"))
    assert long.sentence.endswith("x" * 200 + "…")
    assert "it says" not in page.sentence
    (nested,) = Failures().judge(sample_evidence(errors=(seen("[" * 100_000, 401),)))
    assert nested.sentence.endswith("[" * 200 + "…")


@pytest.mark.parametrize("error", [seen("a riddle", 502), seen("", 418), seen("timed out", 504)])
def test_an_unknown_cause_is_left_unexplained(error: ErrorSeen) -> None:
    assert not list(Failures().judge(sample_evidence(errors=(error,))))


@pytest.mark.parametrize(("turns", "words"), [(8, "conversations shorter (--session-turns-mean"), (2, "prompt and answer")])
def test_a_history_longer_than_the_context_is_told_from_a_long_prompt(turns: int, words: str) -> None:
    evidence = sample_evidence(errors=(seen("This model's maximum context length is 4096 tokens.", 400),))
    phase = replace(evidence.plan.load.phases[0], session_count=2, turns=turns)
    (finding,) = Failures().judge(replace(evidence, plan=evidence.plan.replacing(phases=(phase,))))
    assert words in finding.sentence and "it says: This model's maximum" in finding.sentence


@pytest.mark.parametrize(("urls", "place"), [
    (("http://a/base",), "/base/v1/chat/completions"), (("http://a/base", "http://b"), "/v1/chat/completions"),
])  # fmt: skip
def test_a_path_that_is_not_there_is_named_whole_where_all_servers_have_the_same(urls: tuple[str, ...], place: str) -> None:
    evidence = sample_evidence(errors=(seen("gone", 404),))
    plan = evidence.plan.replacing(urls=urls, path="/v1/chat/completions")
    (finding,) = Failures().judge(replace(evidence, plan=plan))
    assert f"has nothing at {place} (404)" in finding.sentence


@pytest.mark.parametrize(("valid", "start"), [(0, "the server fails"), (18, "5 of 5 failed requests: the server fails")])
def test_beside_good_requests_failures_are_counted(valid: int, start: str) -> None:
    evidence = sample_evidence(errors=(seen("a riddle", 500),))
    (finding,) = Failures().judge(replace(evidence, summary=replace(evidence.summary, valid=valid)))
    assert finding.sentence.startswith(start)


@pytest.mark.parametrize(("good", "errors", "cut", "told"), [(20, 20, 0, False), (20, 19, 2, True), (0, 40, 0, False)])
def test_statistics_of_a_minority_are_told(good: int, errors: int, cut: int, *, told: bool) -> None:
    outcomes = Arrivals(good + errors + cut, good + errors + cut, completed=good, errors=errors, cut=cut)
    found = list(Failures().judge(sample_evidence(arrivals=outcomes)))
    assert [(each.kind, each.sentence) for each in found] == [
        ("most_failed", "21 of 41 requests failed: every latency and length is of the other 20 alone")
    ] * told


@pytest.mark.parametrize(
    ("place", "address", "known"),
    [
        ("/v2/chat", "https://a:8443/v2/chat", True), ("https://a/v1", "https://a/v1", True),
        ("http://a/v1", "http://a/v1", False),
        ("//b/v1", "https://b/v1", False), ("https://a.b/v1", "https://a.b/v1", False),
        ("https://<redacted>@b/v1?<redacted>", "https://<redacted>@b/v1?<redacted>", False),
    ],
)  # fmt: skip
def test_a_redirect_never_sends_a_key_to_another_server(place: str, address: str, *, known: bool) -> None:
    evidence = sample_evidence(errors=(seen(f"redirected to {place}, which is not followed", 308),))
    (finding,) = Failures().judge(replace(evidence, plan=evidence.plan.replacing(urls=("https://a:8443/base",))))
    assert f"redirects to {address}" in finding.sentence
    assert ("without a key that is meant for a" in finding.sentence) is not known


def test_the_sentence_names_the_urls_that_failed_and_no_other() -> None:
    dead = [ErrorDetails(f"{host}:80: Connection refused", "ConnectionRefusedError", cause=REFUSED) for host in ("b", "d")]
    errors = {"http://b": (ErrorCount(dead[0], 2),), "http://d": (ErrorCount(dead[1], 3),)}
    given = ("http://a", "http://b", "http://c", "http://d")
    rows = tuple(UrlSummary(url, {}, errors=errors.get(url, ())) for url in given)
    evidence = sample_evidence(urls=rows, errors=(ErrorSeen(dead[0], 2, 1e6), ErrorSeen(dead[1], 3, 2e6)))
    (finding,) = Failures().judge(replace(evidence, plan=evidence.plan.replacing(urls=given)))
    assert "nothing listens at -u http://b and -u http://d: is" in finding.sentence
    (finding,) = Failures().judge(replace(evidence, plan=evidence.plan.replacing(urls=given), errors=evidence.errors[:1]))
    assert "nothing listens at -u http://b: is" in finding.sentence
