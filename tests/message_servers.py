"""Wrong servers, and what a run that meets one must say: the second table of docs/troubleshooting.md."""

from __future__ import annotations

import gzip
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from aiperf_testing.server import Certificate, answer, chunk, chunked_head
from command_lines import Did, Given, run
from msgspec import json
from wrong_servers import WrongServer

_EVENTS = b'data: {"choices": [{"delta": {"content": "one"}}]}\n\ndata: [DONE]\n\n'
_HTML = b"<html><body><h1>Welcome</h1></body></html>"
_HTTP2 = bytes.fromhex("0000060400000000000003000000640000080700000000000000000000000001")
_TOO_LONG = "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens."
_TOO_LARGE = (
    "max_completion_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided"
    " 100000."
)
_OLD = "Unsupported parameter: 'max_completion_tokens' is not supported with this model. Use 'max_tokens' instead."


def _error(status: int, message: str) -> bytes:
    return answer(json.encode({"error": {"message": message, "type": "invalid_request_error"}}), status=status, reason="Wrong")


_NOT_ALLOWED = answer(b'{"detail": "Method Not Allowed"}', status=405)


def _encoded(name: str, body: bytes) -> bytes:
    return answer(body, headers=[f"Content-Encoding: {name}"], content_type="text/event-stream")


class Wrong(NamedTuple):
    """A wrong server.

    about: for the page.  said: parts of the sentence on its fault.  reply: bytes that answer a request.
    tls: "own" for a certificate that nobody vouches for, "other" for one of another host.  words: options of the run; where
    they begin with -u, the server's URL is not given; ``CA`` and ``ADDRESS`` stand for its certificate, its host and port.
    others: replies of other paths.
    """

    about: str
    said: tuple[str, ...]
    reply: bytes = b""
    words: tuple[str, ...] = ()
    tls: str = ""
    silent: bool = False
    listens: bool = True
    others: tuple[tuple[str, bytes], ...] = ()
    streams: bool = True


SERVERS = (
    Wrong("Nothing listens there.", ("nothing listens at -u",), listens=False),
    Wrong("Its host has no address.", ("-u", "nobody.invalid"), words=("-u", "http://nobody.invalid:8000"), listens=False),
    Wrong("It redirects.", ("http://elsewhere:9000/v1/chat/completions", "-u", "--endpoint"),
        answer(b"", status=307, headers=["Location: http://elsewhere:9000/v1/chat/completions"])),
    Wrong("It answers with gzip, unasked.", ("gzip", "-H 'Accept-Encoding: gzip'"), _encoded("gzip", gzip.compress(_EVENTS))),
    Wrong("It answers with deflate, unasked.", ("deflate", "-H 'Accept-Encoding: gzip'"),
        _encoded("deflate", zlib.compress(_EVENTS))),
    Wrong("It answers with br, unasked.", ("encoded as br",), _encoded("br", b"\x8b\x02\x80")),
    Wrong("It answers with zstd, unasked.", ("encoded as zstd",), _encoded("zstd", b"(\xb5/\xfd")),
    Wrong("It answers with a page.", ("text/html", "/v1/chat/completions"), answer(_HTML, content_type="text/html")),
    Wrong("Its stream has another content type.", ("application/octet-stream",),
        chunked_head("application/octet-stream") + chunk(b"\x00\x01\x02\x03") + chunk()),
    Wrong("Its certificate is self-signed.", ("--ca-file", "--insecure"), answer(), tls="own"),
    Wrong("Its certificate is another host's.", ("another host's", "--insecure"), answer(), words=("--ca-file", "CA"),
        tls="other"),
    Wrong("It speaks no TLS, and the URL begins with https.", ("http://",), answer(), words=("-u", "https://ADDRESS")),
    Wrong("It speaks TLS, and the URL begins with http.", ("begin the URL with https://",), bytes.fromhex("15030100020246")),
    Wrong("It speaks HTTP/2 alone.", ("HTTP/2", "HTTP/1.1"), _HTTP2),
    Wrong("It speaks HTTP/1.1 alone, and the run HTTP/2.", ("HTTP/2", "--transport"), answer(),
        words=("--transport", "http2")),
    Wrong("Nobody listens on its socket.", ("unix:///nowhere/server.sock", "its socket?"),
        words=("-u", "unix:///nowhere/server.sock"), listens=False),
    Wrong("It is no HTTP server.", ("speaks no HTTP",), b"SSH-2.0-OpenSSH_9.6\r\n"),
    Wrong("It wants a key (401).", ("401", "--api-key", "Incorrect API key"), _error(401, "Incorrect API key provided")),
    Wrong("It forbids (403).", ("403", "--api-key", "-H"), _error(403, "your team has no access")),
    Wrong("It has no such path (404).", ("404", "/v1/chat/completions", "--endpoint"),
        answer(b'{"detail": "Not Found"}', status=404)),
    Wrong("It has chat, and no embeddings (404).", ("answers at /v1/chat/completions: use --endpoint-type chat",),
        answer(b'{"detail": "Not Found"}', status=404), words=("--endpoint-type", "embeddings"), streams=False,
        others=(("/v1/chat/completions", _NOT_ALLOWED),)),
    Wrong("It has embeddings alone (404).", ("answers at /v1/embeddings: use --endpoint-type embeddings",),
        answer(b'{"detail": "Not Found"}', status=404), others=(("/v1/embeddings", _NOT_ALLOWED),)),
    Wrong("It has completions alone (404).", ("answers at /v1/completions: use --endpoint-type completions",),
        answer(b'{"detail": "Not Found"}', status=404), others=(("/v1/completions", _NOT_ALLOWED),)),
    Wrong("Its API is not below the path of the URL (404).", ("answers at /v1/chat/completions: use -u http://",),
        answer(b'{"detail": "Not Found"}', status=404), words=("-u", "http://ADDRESS/api"),
        others=(("/v1/chat/completions", _NOT_ALLOWED),)),
    Wrong("Its model does no chat (400).", ("--endpoint-type", "does not support Chat"),
        _error(400, "The model does not support Chat Completions API")),
    Wrong("It has no such model (404).", ("-m", "served: llama-8b, qwen-7b"),
        _error(404, "no model is called 'm'; served: llama-8b, qwen-7b")),
    Wrong("It takes no such method (405).", ("405", "--endpoint"), answer(b'{"detail": "Method Not Allowed"}', status=405)),
    Wrong("Requests are too large for it (413).", ("413",), answer(b"", status=413)),
    Wrong("It refuses `max_completion_tokens`.", ("--use-legacy-max-tokens",), _error(400, _OLD)),
    Wrong("Prompt and answer are too long for its model.", ("--isl or --osl", "4096"), _error(400, _TOO_LONG)),
    Wrong("The answers asked for are longer than it allows.", ("--osl smaller", "16384"), _error(400, _TOO_LARGE)),
    Wrong("It refuses a field of the request (422).", ("422", "foo"), answer(b'{"detail": "unknown field: foo"}', status=422)),
    Wrong("It limits requests (429).", ("429", "--concurrency", "--request-rate"), _error(429, "slow down")),
    Wrong("It fails (500).", ("500", "its own log"), _error(500, "CUDA error: out of memory")),
    Wrong("It isn't ready (503).", ("503", "--wait-for-model-timeout"), answer(b"loading", status=503)),
    Wrong("Its answers are empty.", ("no content", "--endpoint-type"), answer(b"")),
    Wrong("Its event streams have no event.", ("no content",), answer(b"", content_type="text/event-stream")),
    Wrong("A filter stops every answer before its first word.", ("ended with 'content_filter'", "--export-level raw"), answer(
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}\n\n', content_type="text/event-stream")),
    Wrong("It fails, and says so in an event stream.", ("500", "CUDA error"), answer(
        b'data: {"error":{"message":"CUDA error: out of memory"}}\n\ndata: [DONE]\n\n', status=500,
        content_type="text/event-stream")),
    Wrong("Its answers have another form.", ("--endpoint-type",), answer(b'{"hello": "world"}')),
    Wrong("It closes without an answer.", ("closes",)),
    Wrong("It never answers.", ("--request-timeout-seconds",), words=("--request-timeout-seconds", "0.5"), silent=True),
    Wrong("Its answers take longer than the run.", ("no whole answer when the load ended", "--benchmark-grace-period"),
        words=("--benchmark-duration", "0.3", "--benchmark-grace-period", "0"), silent=True),
    Wrong("Its streams carry an error.", ("out of memory",), answer(b'data: {"error": {"message": "out of memory"}}\n\n',
        content_type="text/event-stream")),
)  # fmt: skip


@contextmanager
def _served(wrong: Wrong, folder: Path) -> Iterator[Given]:
    """The server, and the line of the run that meets it."""
    folder.mkdir()
    certificate = None if not wrong.tls else _certificate(folder, "localhost" if wrong.tls == "own" else "example.com")
    served = WrongServer(
        wrong.reply, certificate=certificate, silent=wrong.silent, listens=wrong.listens, others=dict(wrong.others)
    )
    with served as server:
        values = {"ADDRESS": server.address, "CA": "" if certificate is None else str(certificate.cert)}
        words = list(wrong.words)
        for name, value in values.items():
            words = [word.replace(name, value) for word in words]
        words += [] if "-u" in words else ["-u", server.url]
        start = ["profile", "-m", "m", "--tokenizer", "builtin", "--isl", "3", "--request-count", "2"]
        start += ["--streaming"] * wrong.streams
        end = ["--ui", "none", "--export-level", "summary", "--artifact-dir", str(folder / "run")]
        yield {"words": [*start, *words, *end], "environment": {}}


def _certificate(folder: Path, host: str) -> Certificate:
    cert, key = folder / "cert.pem", folder / "key.pem"
    about = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}", "-days", "2"]
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(["openssl", "req", "-x509", *made, *about], check=True, capture_output=True)
    return Certificate(cert, key)


def told(folder: Path) -> list[Did]:
    """What a run against each of the servers does."""
    with ExitStack() as stack:
        given = [stack.enter_context(_served(wrong, folder / str(n))) for n, wrong in enumerate(SERVERS)]
        return run(given, folder, at_once=2, loads=True)
