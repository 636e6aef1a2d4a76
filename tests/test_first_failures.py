"""What a newcomer reads on a terminal in each of the ways in which a first run fails."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from aiperf_testing.server import Certificate, answer
from command_lines import Given, run
from msgspec import json
from screens import on_screen
from wrong_servers import WrongServer

WIDTHS = (80, 200)
"""Every way is met at one of them, in turn; the other one is left to make nightly."""
LAST = "aiperf: no request succeeded; "
_NOTHING = answer(b'{"detail": "Not Found"}', status=404)
_NOT_ALLOWED = answer(b'{"detail": "Method Not Allowed"}', status=405)
_CHAT = (("/v1/chat/completions", _NOT_ALLOWED),)


def _error(status: int, message: str) -> bytes:
    return answer(json.encode({"error": {"message": message, "type": "invalid_request_error"}}), status=status, reason="Wrong")


class First(NamedTuple):
    """A way to fail, and the sentence, in which ADDRESS stands for host and port of the server.

    reply, others, silent, listens: as of :class:`WrongServer`.  tls: the server speaks TLS.  words: options of the run, instead
    of ``-u http://ADDRESS`` where they begin with -u.
    """

    about: str
    sentence: str
    reply: bytes = b""
    words: tuple[str, ...] = ("--streaming",)
    others: tuple[tuple[str, bytes], ...] = ()
    tls: bool = False
    silent: bool = False
    listens: bool = True


_ELSEWHERE = "the server has nothing at"
WAYS = (
    First("dead server", "nothing listens at -u http://ADDRESS: is the server up, and is this its host and port?",
        listens=False),
    First("401", "the server wants a valid key (401): give it with --api-key, or as the header that it wants with -H"
        " 'Name: value'; it says: Incorrect API key provided", _error(401, "Incorrect API key provided")),
    First("404", f"{_ELSEWHERE} /v1/chat/completions (404): is -u http://ADDRESS its base address, and --endpoint-type what it"
        " speaks? --endpoint gives another path; it says: Not Found", _NOTHING),
    First("wrong model", "the server has no model m: name one of its own with -m: llama-8b and qwen-7b",
        _error(404, "The model `m` does not exist."),
        others=(("/v1/models", answer(b'{"object": "list", "data": [{"id": "llama-8b"}, {"id": "qwen-7b"}]}')),)),
    First("wrong path", f"{_ELSEWHERE} /api/v1/chat/completions (404), and answers at /v1/chat/completions: use -u"
        " http://ADDRESS", _NOTHING, ("-u", "http://ADDRESS/api"), _CHAT),
    First("429", "the server limits requests (429): ask for less with --concurrency or --request-rate; it says: Rate limit"
        " reached for requests", _error(429, "Rate limit reached for requests")),
    First("500", "the server fails (500): its own log says why; it says: CUDA error: out of memory",
        _error(500, "CUDA error: out of memory")),
    First("HTML", "the server at -u http://ADDRESS answers with text/html at /v1/chat/completions, where JSON or a stream was"
        " expected: give the address of its API with -u, or another path with --endpoint",
        answer(b"<html><body><h1>Welcome</h1></body></html>", content_type="text/html")),
    First("redirect", "the server redirects to http://ADDRESS/v2/chat/completions: use -u http://ADDRESS --endpoint"
        " /v2/chat/completions", answer(b"", status=307, headers=["Location: /v2/chat/completions"])),
    First("https at a server of http", "the server at -u https://ADDRESS speaks no TLS: begin the URL with http://", answer(),
        ("-u", "https://ADDRESS")),
    First("http at a server of https", "the server at -u http://ADDRESS speaks TLS: begin the URL with https://", answer(),
        ("-u", "http://ADDRESS"), tls=True),
    First("certificate", "the certificate of -u https://ADDRESS is signed by nobody known here: name its authority's file with"
        " --ca-file, or take any certificate with --insecure (127.0.0.1: TLS handshake failed: self-signed certificate)",
        answer(), ("-u", "https://ADDRESS"), tls=True),
    First("time-out", "no whole answer within 0.5 s: raise --request-timeout-seconds, or ask for less; where even one request"
        " takes that long, look at the server", words=("--request-timeout-seconds", "0.5"), silent=True),
    First("embeddings at chat", f"{_ELSEWHERE} /v1/embeddings (404), and answers at /v1/chat/completions: use --endpoint-type"
        " chat", _NOTHING, ("--endpoint-type", "embeddings"), _CHAT),
)  # fmt: skip


@contextmanager
def served(way: First, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The server's address, and the words of the run that meets it."""
    certificate = Certificate.made(folder) if way.tls else None
    others = dict(way.others)
    with WrongServer(way.reply, certificate=certificate, silent=way.silent, listens=way.listens, others=others) as server:
        words = [word.replace("ADDRESS", server.address) for word in way.words]
        words += [] if "-u" in words else ["-u", f"http://{server.address}"]
        start = ["profile", "-m", "m", "--tokenizer", "builtin", "--isl", "10", "--osl", "5", "--request-count", "2"]
        yield server.address, [*start, *words, "--artifact-dir", str(folder / "run")]


class Screen(NamedTuple):
    """What a run left on a terminal, by lines; address: of its server.  place: the run's directory."""

    code: int
    lines: list[str]
    columns: int
    address: str
    place: Path

    def paragraph(self, begin: str) -> tuple[str, list[str]]:
        """The last text that begins so, in one line, and its lines: what goes on has an indent."""
        at = max(number for number, line in enumerate(self.lines) if line.startswith(begin))
        end = next((n for n in range(at + 1, len(self.lines)) if not self.lines[n].startswith("  ")), len(self.lines))
        lines = self.lines[at:end]
        return " ".join(line.strip() for line in lines), lines


Screens = dict[tuple[str, int], Screen]
CASES = [(way, columns) for way in WAYS for columns in WIDTHS]
SHORT = [(way, WIDTHS[number % 2]) for number, way in enumerate(WAYS)]


def shown(cases: list[tuple[First, int]], folder: Path) -> Screens:
    """What is on the terminal behind each of the runs, and behind one with an unknown tokenizer at each width."""
    environment = {"TERM": "xterm-256color", "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "cache")}
    given: list[Given] = []
    about: list[tuple[str, str]] = []
    with ExitStack() as stack:
        for way, columns in cases:
            place = folder / f"{len(given)}"
            place.mkdir()
            address, words = stack.enter_context(served(way, place))
            given.append({"words": words, "environment": environment, "columns": columns})
            about.append((way.about, address))
        for columns in WIDTHS:
            words = ["profile", "-m", "team/model", "-u", "http://127.0.0.1:9", "--request-count", "2"]
            words += ["--artifact-dir", str(folder / f"{len(given)}")]
            given.append({"words": words, "environment": environment, "columns": columns})
            about.append(("unknown tokenizer", ""))
        did = run(given, folder, at_once=3, loads=True)
    return {
        (name, line["columns"]): Screen(
            each.code, on_screen(each.out, line["columns"]), line["columns"], address, Path(line["words"][-1])
        )
        for (name, address), line, each in zip(about, given, did, strict=True)
    }


@pytest.fixture(scope="module")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Screens:
    return shown(SHORT, tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def other_screens(tmp_path_factory: pytest.TempPathFactory) -> Screens:
    return shown([case for case in CASES if case not in SHORT], tmp_path_factory.mktemp("other"))


def check(screen: Screen, begin: str, sentence: str, indent: str = "  ") -> None:
    """The sentence is there whole, divided between words alone, and the exit code is 1."""
    assert screen.code == 1 and not [line for line in screen.lines if "Traceback" in line]
    told, lines = screen.paragraph(begin)
    assert told == begin + sentence
    for line, after in itertools.pairwise(lines):
        assert len(line) + 1 + len(after.split()[0]) > screen.columns, "it breaks where the next word has no room"
        assert after.startswith(indent)


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")


def check_last_words(screen: Screen, way: First) -> None:
    sentence = way.sentence.replace("ADDRESS", screen.address)
    check(screen, LAST, sentence)
    assert screen.lines[-1] == screen.paragraph(LAST)[1][-1], "nothing comes behind it"
    warnings = screen.lines[screen.lines.index("Warnings") + 1 :]
    report = " ".join(line.strip() for line in warnings[: warnings.index("")])
    assert report.count(sentence) == 1, "the report says the same"


@needs_openssl
@pytest.mark.parametrize(("way", "columns"), SHORT, ids=lambda each: each.about if isinstance(each, First) else str(each))
def test_the_last_words_are_the_cause_and_the_way_out(screens: Screens, way: First, columns: int) -> None:
    check_last_words(screens[way.about, columns], way)


@pytest.mark.long
@needs_openssl
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.about)
def test_the_last_words_are_the_same_at_the_other_width(other_screens: Screens, way: First) -> None:
    (screen,) = [screen for (about, _), screen in other_screens.items() if about == way.about]
    check_last_words(screen, way)


@needs_openssl
@pytest.mark.parametrize("columns", WIDTHS)
def test_an_unknown_tokenizer_is_named_before_anything_is_sent(screens: Screens, columns: int) -> None:
    screen = screens["unknown tokenizer", columns]
    assert screen.code == 1 and not [line for line in screen.lines if "Traceback" in line or "phase" in line.lower()]
    told, lines = screen.paragraph("error: ")
    assert told.startswith(
        "error: the tokenizer 'team/model' is unavailable: it is not in the cache, and HF_HUB_OFFLINE forbids the network"
    )
    assert told.endswith("use --tokenizer builtin, which needs no download, or --tokenizer PATH with a local directory")
    assert max(map(len, lines)) <= columns and lines[-1] == screen.lines[-1]


@needs_openssl
def test_a_later_report_has_what_was_found_and_asks_nobody(screens: Screens) -> None:
    """The server is gone by then."""
    place = next(screen for (about, _), screen in screens.items() if about == "embeddings at chat").place
    (did,) = run([{"words": ["report", str(place)], "environment": {}}], place)
    assert "and answers at /v1/chat/completions: use --endpoint-type chat" in " ".join(did.out.split())
