"""From an error to its cause and the next step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import msgspec
from aiperf import ErrorDetails
from aiperf.sdk.model import names
from aiperf.sdk.plan import Plan
from aiperf.sdk.transport import REFUSED

_MOST_CHARACTERS = 200
"""Of a server's own words in a sentence."""


class _Rule(NamedTuple):
    """A known cause.  codes: statuses; () is any, no status included.  text: a pattern that the message must have."""

    kind: str
    codes: tuple[int, ...]
    text: str
    sentence: Callable[[ErrorDetails, Plan], str]


def _said(error: ErrorDetails) -> str:
    """The server's own words, behind a colon; "" where it says nothing."""
    text = " ".join(_message(error.message).split())
    short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
    return f"; it says: {short}" if short else ""


def _message(body: str) -> str:
    """The sentence in an error body of the usual forms; the body itself where it has none."""
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return "" if body.lstrip().startswith("<") else body
    for name in ("error", "detail", "message"):
        value = value.get(name, value) if isinstance(value, dict) else value
    return value if isinstance(value, str) else body


def _urls(plan: Plan) -> str:
    return names([f"-u {url}" for url in plan.target.urls])


def _key(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server refuses who asks ({error.code}): give its key with --api-key, or the header that it wants with -H"
        f" 'Name: value'{_said(error)}"
    )


def _redirect(error: ErrorDetails, plan: Plan) -> str:
    place = error.message.removeprefix("redirected to ").partition(", which is not followed")[0]
    return f"the server redirects to {place}: give that address with -u, and its path with --endpoint"


def _model(error: ErrorDetails, plan: Plan) -> str:
    return f"the server has no model {names(plan.target.models)}: name one of its own with -m{_said(error)}"


def _route(error: ErrorDetails, plan: Plan) -> str:
    path = plan.target.path or "the path of the URL"
    return (
        f"the server has nothing at {path} ({error.code}): is {_urls(plan)} its base address, and --endpoint-type what it"
        f" speaks? --endpoint gives another path{_said(error)}"
    )


def _large(error: ErrorDetails, plan: Plan) -> str:
    return f"requests are larger than the server takes (413): make them shorter, or raise its limit{_said(error)}"


def _old_name(error: ErrorDetails, plan: Plan) -> str:
    return f"the server doesn't know max_completion_tokens: --use-legacy-max-tokens sends max_tokens instead{_said(error)}"


def _context(error: ErrorDetails, plan: Plan) -> str:
    return f"prompt and answer are longer than the model's context: make --isl or --osl smaller{_said(error)}"


def _limited(error: ErrorDetails, plan: Plan) -> str:
    return f"the server limits requests (429): ask for less with --concurrency or --request-rate{_said(error)}"


def _nobody(error: ErrorDetails, plan: Plan) -> str:
    return f"nothing listens at {_urls(plan)}: is the server up, and is this its host and port?"


def _certificate(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the certificate of {_urls(plan)} is signed by nobody known here: name its authority's file with --ca-file, or take"
        f" any certificate with --insecure ({error.message})"
    )


def _host_name(error: ErrorDetails, plan: Plan) -> str:
    return f"the certificate of {_urls(plan)} is another host's: use the name that it has, or --insecure ({error.message})"


def _plain(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} speaks no TLS: does the URL begin with http:// instead?"


def _encrypted(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} speaks TLS: the URL begins with https:// instead"


def _http2(error: ErrorDetails, plan: Plan) -> str:
    return f"the server at {_urls(plan)} speaks HTTP/2 alone: switch HTTP/1.1 on there, or use a transport that speaks it"


def _encoded(error: ErrorDetails, plan: Plan) -> str:
    return f"{error.message}: switch the encoding off at the server or proxy, or ask for gzip with -H 'Accept-Encoding: gzip'"


def _page(error: ErrorDetails, plan: Plan) -> str:
    kind = error.message.rpartition("; the answer is ")[2]
    path = plan.target.path or "/"
    return f"the server answers with {kind} at {path}: is {_urls(plan)} the address of an API, and this its path?"


def _empty(error: ErrorDetails, plan: Plan) -> str:
    return (
        f"the server's answers have no content: is {plan.plugins.endpoint.name} what it speaks there (--endpoint-type)?"
        " --export-level raw keeps the answers"
    )


_MODEL = (
    r"(?i)\bmodel\b.*(not (be )?found|does not exist|not exist|unknown|invalid|not available|no such)"
    r"|(unknown|no such) model"
)
_CONTEXT = (
    r"(?i)context[ _](length|size)|context window|maximum (input|sequence) length|longer than the (model|maximum)"
    r"|exceeds? the (model'?s )?(maximum|available) (context|length)|max_new_tokens`? must be"
)

_RULES = (
    _Rule("redirected", (), r"^redirected to ", _redirect),
    _Rule("not_authorized", (401, 403), "", _key),
    _Rule("unknown_model", (400, 404, 422), _MODEL, _model),
    _Rule("too_long", (400, 413, 422, 500), _CONTEXT, _context),
    _Rule("old_length_name", (400, 422), r"max_completion_tokens", _old_name),
    _Rule("no_route", (404, 405), "", _route),
    _Rule("too_large", (413,), "", _large),
    _Rule("rate_limited", (429,), "", _limited),
    _Rule("unknown_authority", (), r"(?i)self[- ]signed certificate|unable to get (local )?issuer", _certificate),
    _Rule("wrong_host_name", (), r"(?i)hostname mismatch|not valid for|doesn't match", _host_name),
    _Rule("no_tls", (), r"(?i)wrong[ _]version[ _]number|record[ _]layer[ _]failure|tls.*http[ _]request", _plain),
    _Rule("speaks_tls", (), r"(?i)not HTTP: the server speaks TLS|plain HTTP request was sent to HTTPS", _encrypted),
    _Rule("speaks_http2", (), r"not HTTP: the server speaks HTTP/2", _http2),
    _Rule("encoded", (), r"^the answer is encoded as ", _encoded),
    _Rule("no_content", (), r"^the answer has no content$", _empty),
    _Rule("other_type", (), r"; the answer is [\w.+/-]+$", _page),
)

Cause: TypeAlias = tuple[str, str]
"""A kind and a sentence."""


def cause_of(error: ErrorDetails, plan: Plan) -> Cause:
    """What is known of the error's cause; ("", "") where nothing is."""
    for rule in _RULES:
        if (not rule.codes or error.code in rule.codes) and re.search(rule.text, error.message):
            return rule.kind, rule.sentence(error, plan)
    if error.cause == REFUSED and "refused" in error.message.lower():
        return "nobody_listens", _nobody(error, plan)
    return "", ""
