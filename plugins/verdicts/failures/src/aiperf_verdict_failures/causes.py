"""From an error to its cause and the next step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import urljoin, urlsplit

from aiperf import ErrorDetails
from aiperf.sdk.model import LATER, STILL_COMING, join_url, names
from aiperf.sdk.plan import Plan
from aiperf.sdk.transport import NO_TLS, REFUSED, UNIX

from aiperf_verdict_failures.bodies import said, told

_FORBIDDEN = 403
"""The HTTP status of a request that no key would help."""


class _Rule(NamedTuple):
    """A known cause.

    codes: statuses; () is any, no status included.  text: a pattern that what was said must have.  type: of the error; "" is
    any.  cause: of the error; "" is any.
    """

    kind: str
    codes: tuple[int, ...]
    text: str
    sentence: Callable[[ErrorDetails, Plan], str]
    type: str = ""
    cause: str = ""


def _urls(plan: Plan) -> str:
    return names([f"-u {url}" for url in plan.target.urls])


def _key(error: ErrorDetails, plan: Plan) -> str:
    if error.code == _FORBIDDEN:
        what = "forbids the requests (403): give a key that may send them with --api-key"
    else:
        what = "wants a valid key (401): give it with --api-key"
    return f"the server {what}, or as the header that it wants with -H 'Name: value'{said(error)}"


def _redirect(error: ErrorDetails, plan: Plan) -> str:
    place = error.message.removeprefix("redirected to ").partition(", which is not followed")[0]
    asked = join_url(plan.target.urls[0], plan.target.path or "")
    there, here = urlsplit(urljoin(asked, place)), urlsplit(asked)
    address = there.geturl()
    if there.hostname == here.hostname and (there.scheme == here.scheme or there.scheme == "https"):
        given = urlsplit(plan.target.urls[0]).path.rstrip("/") if there.path == here.path else ""
        path = "" if there.path == here.path else f" --endpoint {there.path}"
        return f"the server redirects to {address}: use -u {there.scheme}://{there.netloc}{given}{path}"
    return (
        f"the server redirects to {address}, which is another server: only if it is the one to measure, name it with -u and"
        f" --endpoint, and then without a key that is meant for {here.hostname}"
    )


def _model(error: ErrorDetails, plan: Plan) -> str:
    listed = "" if "served" in error.message.lower() else "; servers of the OpenAI API list theirs at /v1/models"
    return f"the server has no model {names(plan.target.models)}: name one of its own with -m{listed}{said(error)}"


def _place(plan: Plan) -> str:
    """The path of the requests, whole where it is the same at all servers."""
    path = plan.target.path or ""
    whole = {urlsplit(join_url(url, path)).path for url in plan.target.urls}
    return (whole.pop() if len(whole) == 1 else path) or "the path of the URL"


def _route(error: ErrorDetails, plan: Plan) -> str:
    if plan.plugins.endpoint.name == "kserve" and plan.target.streaming and plan.target.scheme.startswith("http"):
        return (
            f"the server at {_urls(plan)} has no infer_stream ({error.code}), which MLServer has: Triton streams over gRPC, at"
            f" -u grpc://HOST:8001, or with --endpoint-type generate{said(error)}"
        )
    return (
        f"the server has nothing at {_place(plan)} ({error.code}): is {_urls(plan)} its base address, and --endpoint-type what"
        f" it speaks? --endpoint gives another path{said(error)}"
    )


def _lost_job(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server at {_urls(plan)} doesn't find a job that it has begun, or its file ({error.code}): its own log says"
        f" why{said(error)}"
    )


def _no_method(error: ErrorDetails, plan: Plan) -> str:
    method = f" {plan.target.path}" if plan.target.path else ", or no such service,"
    return (
        f"the server at {_urls(plan)} has no method{method} (UNIMPLEMENTED): is this the port of that service, and"
        f" --endpoint-type what it speaks?{said(error)}"
    )


def _not_grpc(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} answers otherwise than gRPC asks: is this its gRPC port? ({error.message})"


def _other_task(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server's model doesn't do what the endpoint type {plan.plugins.endpoint.name} asks ({error.code}): name one that"
        f" fits it with --endpoint-type, or a model that fits with -m{said(error)}"
    )


def _large(error: ErrorDetails, plan: Plan) -> str:
    return f"requests are larger than the server takes (413): make them shorter, or raise its limit{said(error)}"


def _old_name(error: ErrorDetails, plan: Plan) -> str:
    return f"the server doesn't know max_completion_tokens: --use-legacy-max-tokens sends max_tokens instead{said(error)}"


def _context(error: ErrorDetails, plan: Plan) -> str:
    if any(phase.turns and phase.session_count and phase.turns > phase.session_count for phase in plan.load.phases):
        return (
            "a turn, all turns before it and the answer are longer than the model's context: make conversations shorter"
            f" (--session-turns-mean, or the file's), or --isl or --osl smaller{said(error)}"
        )
    if plan.data.source is not None:
        return (
            f"prompt and answer are longer than the model's context: make the prompts or the output lengths of the input file"
            f" smaller, or raise the context at the server{said(error)}"
        )
    return f"prompt and answer are longer than the model's context: make --isl or --osl smaller{said(error)}"


def _long_answer(error: ErrorDetails, plan: Plan) -> str:
    smaller = "make --osl smaller" if plan.data.source is None else "make the output lengths of the input file smaller"
    return f"the answers asked for are longer than the server allows: {smaller}{said(error)}"


def _new_name(error: ErrorDetails, plan: Plan) -> str:
    return f"the server takes max_completion_tokens instead of max_tokens: drop --use-legacy-max-tokens{said(error)}"


def _refused(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server refuses the requests ({error.code}): change what it names, with --extra-inputs or another"
        f" --endpoint-type{said(error)}"
    )


def _decoupled(error: ErrorDetails, plan: Plan) -> str:
    return f"the model answers in parts (decoupled), which only streams carry: add --streaming{said(error)}"


def _fails(error: ErrorDetails, plan: Plan) -> str:
    return f"the server fails ({error.code}): its own log says why{said(error)}"


def _gateway(error: ErrorDetails, plan: Plan) -> str:
    return f"a gateway gets no answer from the server behind it ({error.code}): is that one up?{said(error)}"


def _not_ready(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server isn't ready, or has too much to do ({error.code}): wait for it with --wait-for-model-timeout, or ask for"
        f" less{said(error)}"
    )


def _late(error: ErrorDetails, plan: Plan) -> str:
    if error.cause == STILL_COMING:
        return (
            f"{error.message}, and answers were still coming: ask for less (--osl), or raise --request-timeout-seconds; some"
            " servers send more than was asked for, without an end"
        )
    return (
        f"{error.message}: raise --request-timeout-seconds, or ask for less; where even one request takes that long, look at"
        " the server"
    )


def _closed(error: ErrorDetails, plan: Plan) -> str:
    if error.cause == LATER:
        return f"the server at {_urls(plan)} closes connections in a poll or a download: its own log says why"
    return (
        f"the server at {_urls(plan)} closes connections without a whole answer: its own log says why{_other_scheme(plan)}"
    )


def _other_scheme(plan: Plan) -> str:
    if any(map(_is_local, plan.target.urls)):
        return ""
    tls = all(url.startswith(("https:", "grpcs:")) for url in plan.target.urls)
    return f"; if it speaks {'no TLS' if tls else 'TLS'}, begin the URL with {_scheme(plan, tls=not tls)}"


def _scheme(plan: Plan, *, tls: bool) -> str:
    """How the URLs would begin, of HTTP or of gRPC as they are now."""
    return f"{'grpc' if plan.target.urls[0].startswith('grpc') else 'http'}{'s' if tls else ''}://"


def _ended(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} gives no whole answer: its own log says why ({error.message})"


def _not_http(error: ErrorDetails, plan: Plan) -> str:
    detail = error.message.removeprefix("not HTTP: ")
    return f"what listens at {_urls(plan)} speaks no HTTP: is this the server's port? ({detail})"


def _no_address(error: ErrorDetails, plan: Plan) -> str:
    return f"the host of {_urls(plan)} has no address: is its name right, and known on this machine? ({error.message})"


def _unreachable(error: ErrorDetails, plan: Plan) -> str:
    return f"{_urls(plan)} can't be reached from this machine: is the address right, and no firewall between? ({error.message})"


def _limited(error: ErrorDetails, plan: Plan) -> str:
    return f"the server limits requests (429): ask for less with --concurrency or --request-rate{said(error)}"


def _address(url: str) -> str:
    if _is_local(url):
        return url.rstrip("/")
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def _nobody(error: ErrorDetails, plan: Plan) -> str:
    server = error.message.partition(": ")[0]
    if server not in map(_address, plan.target.urls):
        return f"nothing listens at {server}, which is none of the URLs: is the proxy of AIPERF_HTTP_TRUST_ENV up?"
    place = "socket" if all(map(_is_local, plan.target.urls)) else "host and port"
    return f"nothing listens at {_urls(plan)}: is the server up, and is this its {place}?"


def _is_local(url: str) -> bool:
    """Whether it is a socket of this machine."""
    return url.startswith(f"{UNIX}://")


def _certificate(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the certificate of {_urls(plan)} is signed by nobody known here: name its authority's file with --ca-file, or take"
        f" any certificate with --insecure ({error.message})"
    )


def _host_name(error: ErrorDetails, plan: Plan) -> str:
    return f"the certificate of {_urls(plan)} is another host's: use the name that it has, or --insecure ({error.message})"


def _plain(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} speaks no TLS: begin the URL with {_scheme(plan, tls=False)}"


def _no_answer_to_tls(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server at {_urls(plan)} takes connections, and does not answer to TLS: if it speaks plain http, begin the URL"
        f" with {_scheme(plan, tls=False)} ({error.message})"
    )


def _old_tls(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server at {_urls(plan)} speaks no version of TLS that is in use today: switch TLS 1.2 or 1.3 on there"
        f" ({error.message})"
    )


def _encrypted(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} speaks TLS: begin the URL with {_scheme(plan, tls=True)}"


def _http2(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} speaks HTTP/2 alone: give --transport http2, or switch HTTP/1.1 on there"


def _no_http2(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"{_urls(plan)} speaks no HTTP/2: give the address of its HTTP/2 or gRPC port, or another --transport"
        f" ({error.message})"
    )


def _encoded(error: ErrorDetails, plan: Plan) -> str:
    return f"{error.message}: switch the encoding off at the server or proxy, or ask for gzip with -H 'Accept-Encoding: gzip'"


def _page(error: ErrorDetails, plan: Plan) -> str:
    kind = error.message.rpartition("; the answer is ")[2]
    path = plan.target.path or "/"
    return (
        f"the server at {_urls(plan)} answers with {kind} at {path}, where JSON or a stream was expected: give the address of"
        " its API with -u, or another path with --endpoint"
    )


def _empty(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server's answers have no content: is {plan.plugins.endpoint.name} what it speaks there (--endpoint-type)?"
        " --export-level raw keeps the answers"
    )


def _ended_empty(error: ErrorDetails, plan: Plan) -> str:
    said = error.message.partition(": the server ")[2].partition(";")[0]
    return (
        f"answers have no content, and the server {said}: so end answers that a filter stopped, and reasoning that is kept"
        " hidden and takes the whole length; --export-level raw keeps the answers"
    )


_MODEL = (
    r"(?i)\bmodels?\b.{0,80}(not (be )?found|does not exist|not exist|unknown|not available|no such)"
    r"|(unknown|invalid|no such) model|no model is called|model_not_found"
)
_TASK = (
    r"(?i)does(n't| not) support (the )?([\w ]{3,30} API\b|embeddings?\b|chat\b|completions?\b|text generation\b|generation\b"
    r"|pooling\b|scoring\b|scores?\b|rerank(ing)?\b|classification\b)"
)
_NO_HTTP2 = (
    r"not HTTP/2: the server (speaks (HTTP/1|no )|does not begin)|closes connections that begin with HTTP/2"
    r"|no HTTP/2 (answers|over)"
)
_CONTEXT = (
    r"(?i)context[ _](length|size)|context_length_exceeded|context window|maximum (input|sequence) length"
    r"|(longer|more) than the (model|maximum|context)"
    r"|exceeds? the (model'?s )?(maximum|available) (context|length)|inputs` tokens \+ `max_new_tokens`? must be|max_model_len"
    r"|(prompt|sum of|`inputs`).{0,80}(should not exceed|must have less than)"
)
_LENGTH = r"max_(completion_|new_|output_)?tokens"
_LONG_ANSWER = (
    rf"(?i){_LENGTH}\b.{{0,60}}(too (large|high|big|long)|greater than (the )?(max|limit)|exceeds"
    r"|must be (<=|less than|at most|between)|should be less than|should not exceed|valid range)"
    rf"|(too large|invalid|exceeds|maximum).{{0,30}}{_LENGTH}\b.{{0,60}}(\d|limit|maximum)"
    r"|supports at most [\d,]+ (completion|output) tokens"
)
"""The length is wrong, not its name."""
_NO_FIELD = (
    r"(unsupported|unrecognized|unknown|unexpected|not supported|not permitted|not allowed|not recognized|not exist"
    r"|extra_forbidden|not (a )?(valid|known)|no such|should not|additional properties)"
)
_WORD = r"(?!(?:expected|use|instead|mean)\b)\w+\W+"
"""A word between the two; behind some of them stands a name that the server does know."""
_OLD_NAME = (
    rf"(?i){_NO_FIELD}\W+(?:{_WORD}){{0,5}}max_completion_tokens\b"
    rf"|\bmax_completion_tokens\W+(?:{_WORD}){{0,6}}{_NO_FIELD}"
)

_NAMELESS = r"(?i)gaierror|name or service not known|name resolution|no address associated|nodename nor servname|DNS"

_RULES = (
    _Rule("redirected", (), r"^redirected to ", _redirect),
    _Rule("not_authorized", (401, 403), "", _key),
    _Rule("decoupled", (), r"(?i)decoupled|\bgenerate[ _]stream\b|exactly 1 response", _decoupled),
    _Rule("too_long", (400, 413, 422, 500), _CONTEXT, _context),
    _Rule("long_answer", (400, 413, 422), _LONG_ANSWER, _long_answer),
    _Rule("new_length_name", (400, 422), r"(?i)\buse\W+max_completion_tokens\b", _new_name),
    _Rule("old_length_name", (400, 422), _OLD_NAME, _old_name),
    _Rule("other_task", (400, 404, 405, 501), _TASK, _other_task),
    _Rule("unknown_model", (400, 404, 422), _MODEL, _model),
    _Rule("unknown_model", (), r"^Request for unknown model: ", _model),  # in a stream of Triton
    _Rule("lost_job", (404, 410), "", _lost_job, cause=LATER),
    _Rule("no_route", (404, 405), "", _route, type="^(?!NOT_FOUND)"),
    _Rule("no_method", (501,), "", _no_method, type="^UNIMPLEMENTED$"),
    _Rule("not_grpc", (), "", _not_grpc, type="^InvalidGrpcAnswer$"),
    _Rule("too_large", (413,), "", _large),
    _Rule("rate_limited", (429,), "", _limited),
    _Rule("unknown_authority", (), r"(?i)self[- ]signed certificate|unable to get (local )?issuer", _certificate),
    _Rule("wrong_host_name", (), r"(?i)hostname mismatch|not valid for|doesn't match", _host_name),
    _Rule("no_tls", (), r"(?i)wrong[ _]version[ _]number|record[ _]layer[ _]failure|tls.*http[ _]request", _plain),
    _Rule("no_answer_to_tls", (), NO_TLS, _no_answer_to_tls),
    _Rule("old_tls", (), r"(?i)protocol[ _]version|unsupported[ _]protocol", _old_tls),
    _Rule("speaks_tls", (), r"(?i)not HTTP(/2)?: the server speaks TLS|HTTP request (was sent )?to (an )?HTTPS", _encrypted),
    _Rule("speaks_http2", (), r"not HTTP: the server speaks HTTP/2", _http2),
    _Rule("speaks_no_http2", (), _NO_HTTP2, _no_http2),
    _Rule("encoded", (), r"^the answer is encoded as ", _encoded),
    _Rule("not_http", (), r"^not HTTP: ", _not_http),
    _Rule("timed_out", (), r"^no whole answer within ", _late),
    _Rule("timed_out", (504,), "", _late, type="^DEADLINE_EXCEEDED$"),
    _Rule("ended", (), r"^the server ended the (connection|stream): ", _ended),
    _Rule("closed", (), r"closed the connection before a whole answer|Connection reset by peer", _closed),
    _Rule("not_ready", (503,), "", _not_ready),
    _Rule("gateway", (502, 504), "", _gateway, type="Bad Gateway|Gateway Time-?out"),
    _Rule("fails", (500, 501), "", _fails),
    _Rule("refused", (400, 422), "", _refused),
    _Rule("no_content", (), r"^the answer has no content$", _empty),
    _Rule("ended_without_content", (), r"^the answer has no content: the server ", _ended_empty),
    _Rule("other_type", (), r"; the answer is [\w.+/-]+$", _page),
)

ROUTE, MODELS, TLS = "route", "models", "tls"
"""What a look at the server tells: where it answers and what to change, the models that it lists, and that it speaks TLS."""

Cause: TypeAlias = tuple[str, str]
"""A kind and a sentence."""


def cause_of(error: ErrorDetails, plan: Plan, looks: Mapping[str, str] | None = None) -> Cause:
    """What is known of the error's cause; ("", "") where nothing is.

    *looks*: what :func:`aiperf_verdict_failures.look.looked` has found.
    """
    words = told(error.message)
    for rule in _RULES:
        if rule.codes and error.code not in rule.codes:
            continue
        if rule.cause and error.cause != rule.cause:
            continue
        if re.search(rule.text, words) and re.search(rule.type, error.type or ""):
            return rule.kind, _with_looks(rule.kind, rule.sentence(error, plan), error, plan, looks or {})
    if error.cause != REFUSED:
        return "", ""
    if "refused" in f"{error.type} {error.message}".lower() or error.message.startswith(f"{UNIX}://"):
        return "nobody_listens", _nobody(error, plan)
    if re.search(_NAMELESS, f"{error.type} {error.message}"):
        return "no_address", _no_address(error, plan)
    return "unreachable", _unreachable(error, plan)


def _with_looks(kind: str, sentence: str, error: ErrorDetails, plan: Plan, looks: Mapping[str, str]) -> str:
    """The sentence with what the server has instead."""
    if kind == "no_route" and ROUTE in looks:
        return f"the server has nothing at {_place(plan)} ({error.code}), and answers at {looks[ROUTE]}"
    if kind == "no_route" and MODELS in looks:
        return f"{sentence.rstrip('.')}; at /v1/models it lists {looks[MODELS]}"
    if kind == "closed" and TLS in looks:
        return _encrypted(error, plan)
    if kind == "unknown_model" and MODELS in looks:
        return f"the server has no model {names(plan.target.models)}: name one of its own with -m: {looks[MODELS]}"
    return sentence
