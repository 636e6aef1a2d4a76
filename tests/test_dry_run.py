"""``--dry-run`` prints what a run would send, and sends nothing: judged by the requests that a server gets."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from program import Done, Program

DEAD = "http://127.0.0.1:9"
LOAD = ("--model", "m", "--tokenizer", "builtin", "--random-seed", 7)
LENGTHS = ("--isl", 20, "--isl-stddev", 8, "--osl", 4)
KEY = "a-key-nobody-sees"
IDS = {"X-Request-ID", "X-Correlation-ID", "X-Session-Affinity"}
CONVERSATIONS = (
    {"session_id": "a", "turns": [{"text": "hi"}, {"text": "and more of it"}]},
    {"session_id": "b", "turns": [{"text": "schöne Grüße, \u65e5\u672c"}, {"text": "?"}]},
)
TRACE = (
    {"timestamp": 900, "input_length": 1500, "output_length": 4, "hash_ids": [1, 2, 3]},
    {"timestamp": 300, "input_length": 30, "output_length": 4, "hash_ids": [1]},
)
ANSWER = b'{"choices":[{"message":{"content":"yes"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}'

Request = tuple[str, str, list[tuple[str, str]], bytes]


class Recorder:
    """Answers everything, and keeps method, target, headers and body of each POST in the order of their ends."""

    def __init__(self) -> None:
        posts = self.posts = list[Request]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posts.append((self.command, self.path, list(self.headers.items()), body))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(ANSWER)))
                self.end_headers()
                self.wfile.write(ANSWER)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.server.shutdown()
    made.server.server_close()


def shown(page: str, heading: str) -> Request:
    """The request below *heading*, whose body is on one line."""
    lines = page.partition(f"\n{heading}")[2].splitlines()[1:]
    method, url = lines[0].split()
    body_at = next(index for index, line in enumerate(lines) if line.startswith("  Body: "))
    headers = [(name, value) for name, _, value in (line.strip().partition(": ") for line in lines[1:body_at])]
    return method, "/" + url.split("/", 3)[3], headers, lines[body_at + 1].encode()


def files_of(page: str) -> set[str]:
    return {line.strip() for line in page.partition("\nFiles, in ")[2].splitlines()[1:]}


def written(done: Done) -> set[str]:
    """What stands in the directory of a run, the parts of a directory left out."""
    every = {str(path.relative_to(done.artifacts)) for path in done.artifacts.rglob("*") if path.is_file()}
    return {"journal/" if name.startswith("journal/") else name for name in every} - {".aiperf_results_ready.json"}


def test_it_shows_what_the_server_gets_and_the_files_that_are_written(aiperf: Program, recorder: Recorder) -> None:
    words = (
        "profile", "--url", recorder.url, *LOAD, *LENGTHS, "--request-count", 6, "--warmup-request-count", 2, "--streaming",
        "--api-key", KEY, "--header", "X-Mine: 100 % a, b", "--extra-inputs", '{"password":"hunter2hunter2","top_k":3}',
        "--slice-duration", 1, "--profile-export-prefix", "mine",
    )  # fmt: skip
    dry = aiperf(*words, "--dry-run")
    assert dry.code == 0 and not recorder.posts, dry.err
    assert not list(aiperf.folder.iterdir()), "a dry run leaves nothing behind"
    assert KEY not in dry.out + dry.err and "hunter2" not in dry.out + dry.err
    as_json = aiperf(*words, "--dry-run", "--json")
    assert as_json.code == 0 and as_json.out.isascii() and not recorder.posts, as_json.err
    assert KEY not in as_json.out + as_json.err and "hunter2" not in as_json.out + as_json.err
    page = json.loads(as_json.out)
    run = aiperf(*words)
    assert run.code == 0, run.err
    for heading, name, got in (
        ("First request, of the phase warmup", "first_request", recorder.posts[0]),
        ("Longest request, among those of all 8 entries", "longest_request", max(recorder.posts, key=lambda row: len(row[3]))),
    ):
        request = page[name]
        told = request["method"], "/" + request["url"].split("/", 3)[3], list(map(tuple, request["headers"])), request["body"]
        assert request["body_bytes"] == len(got[3])
        for method, path, headers, body in (shown(dry.out, heading), (*told[:3], told[3].encode())):
            assert (method, path) == got[:2]
            expected = [(name, "<redacted>" if name in ("Authorization", "X-Mine") else value) for name, value in got[2]]
            assert [name for name, _ in headers] == [name for name, _ in expected]
            assert [pair for pair in headers if pair[0] not in IDS] == [pair for pair in expected if pair[0] not in IDS]
            assert body == got[3].replace(b"hunter2hunter2", b"<redacted>")
    assert files_of(dry.out) == set(page["files"]) == written(run)
    assert [(phase["phase"], phase["requests"]) for phase in page["load"]] == [("warmup", 2), ("profiling", 6)]
    assert page["entries"] == {"all": 8, "made": 8} and page["random_seed"] == 7
    assert page["plan"]["phases"] == json.loads((run.artifacts / "mine.json").read_text())["input_config"]["phases"]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--input-file", "conversations.jsonl"), ("multi_turn", "Requests    10\n", "depends on the server")),
        (
            ("--input-file", "trace.jsonl", "--fixed-schedule"),
            ("fixed_schedule", "2 are due", "0.6 s until the last request is due", "bytes are left out here", "1,500 input"),
        ),
        (
            ("--user-centric-rate", 50, "--num-users", 3, "--session-turns-mean", 2, "--benchmark-duration", 0.2, *LENGTHS),
            ("user_centric", "3 users", "0.2 s, then until the requests in flight have ended"),
        ),
        (
            (
                "--endpoint-type", "template",
                "--extra-inputs", 'payload_template:{"ask": {{ text|tojson }}, "of": "{{ model }}"}',
                "--extra-inputs", "response_field:x", "--endpoint", "/ask?api-version=3", "--isl", 10, "--request-count", 2,
                "--transport", "aiohttp",
            ),
            ("template, over the transport aiohttp", '{"ask"'),
        ),
    ],
    ids=["sessions", "trace", "users", "plugins"],
)  # fmt: skip
def test_every_load_and_data_set_shows_its_first_request(
    aiperf: Program, recorder: Recorder, words: tuple[str | float, ...], facts: tuple[str, ...]
) -> None:
    for name, rows in (("conversations", CONVERSATIONS), ("trace", TRACE)):
        lines = [json.dumps(row, ensure_ascii=False) for row in rows]
        (aiperf.folder / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    dry = aiperf("profile", "--url", recorder.url, *LOAD, *words, "--dry-run")
    assert dry.code == 0 and not recorder.posts, dry.err
    assert aiperf("profile", "--url", recorder.url, *LOAD, *words).code in (0, 1)  # the template's answers have no field x
    method, path, headers, body = shown(dry.out, "First request, of the phase profiling")
    got = recorder.posts[0]
    assert (method, path.partition("?")[0], body) == (got[0], got[1].partition("?")[0], got[3])
    assert [pair for pair in headers if pair[0] not in IDS] == [pair for pair in got[2] if pair[0] not in IDS]
    for fact in facts:
        assert fact in dry.out, dry.out


def test_no_connection_is_opened_whatever_the_run_would_ask_before(aiperf: Program) -> None:
    temporary = aiperf.folder / "temporary"
    temporary.mkdir()
    aiperf.environment["TMPDIR"] = str(temporary)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        words = ("--wait-for-model-timeout", 30, "--isl", 5, "--request-count", 3, "--dry-run", "--quiet")
        dry = aiperf("profile", "--url", url, *LOAD, *words)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert dry.code == 0 and dry.err == "" and "is left out" in dry.out
    dead = aiperf("profile", "--url", DEAD, *LOAD, *words, "--json")
    assert dead.code == 0 and dead.err == "" and json.loads(dead.out)["load"][0]["requests"] == 3
    assert not list(temporary.iterdir())


def test_bad_input_has_the_sentences_of_a_run(aiperf: Program) -> None:
    (aiperf.folder / "bad.jsonl").write_text('{"text": "hi"}\n{"text": 3}\n')
    alone = aiperf("profile", "--url", DEAD, *LOAD, "--json")
    assert (alone.code, alone.out) == (1, "") and "--json needs --dry-run: " in alone.err
    for words in (("--num-users", 3), ("--input-file", "bad.jsonl", "--custom-dataset-type", "single_turn")):
        runs = [aiperf("profile", "--url", DEAD, *LOAD, *words, *more) for more in ((), ("--dry-run",))]
        said = [re.sub(r"^[\d:.]+ ", "", run.err, flags=re.MULTILINE) for run in runs]
        assert runs[0].code == runs[1].code != 0 and said[0] == said[1], runs
        assert runs[1].out == ""


def test_a_directory_that_cannot_be_written_is_a_warning(aiperf: Program) -> None:
    (aiperf.folder / "taken").write_text("a file")
    words = ("--isl", 5, "--artifact-dir", aiperf.folder / "taken", "--dry-run")
    dry = aiperf("profile", "--url", DEAD, *LOAD, *words)
    assert dry.code == 0 and "First request" in dry.out
    assert "WARNING the run itself would be refused: --artifact-dir: " in dry.err and "is a file" in dry.err


def test_python_has_no_dry_run() -> None:
    import aiperf

    with pytest.raises(aiperf.AiperfError, match=r"dry.run is for the command line"):
        aiperf.profile(model="m", dry_run=True)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_it_fits_a_terminal(aiperf: Program, columns: int, tmp_path: Path) -> None:
    """Without colours, in ASCII alone; a request is left as it is."""
    (tmp_path / "rows.jsonl").write_text(json.dumps({"text": "Grüße \x1b[31m\u202e"}), encoding="utf-8")
    environment = {**aiperf.environment, "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C", "PYTHONUTF8": "0"}
    environment |= {"PYTHONCOERCECLOCALE": "0", "COLUMNS": str(columns)}
    words = map(str, ("profile", "--url", DEAD, *LOAD, "--input-file", "rows.jsonl", "--dry-run"))
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*aiperf.program, *words], cwd=aiperf.folder, env=environment, stdin=subprocess.DEVNULL, stdout=theirs,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 1 << 16):
                said += piece
        except OSError:  # the program has closed its end
            pass
        assert process.wait() == 0, process.stderr and process.stderr.read()
    os.close(ours)
    page = said.decode("ascii").replace("\r\n", "\n")
    assert "\x1b" not in page
    plan = page.partition("\nFirst request")[0] + page.partition("\nFiles")[0].partition("\nLongest request")[2]
    assert max(len(line) for line in plan.splitlines() if "/" not in line) <= columns
    assert re.search(r"\n +Model\s+m\n", page)


def test_a_closed_pipe_ends_it_silently(aiperf: Program) -> None:
    words = " ".join(map(str, (*LOAD, "--isl", 5, "--dry-run", "--quiet")))
    line = f"{' '.join(aiperf.program)} profile --url {DEAD} {words} | head -1"
    done = subprocess.run(
        line, shell=True, cwd=aiperf.folder, env=aiperf.environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout.startswith("Dry run: nothing is sent") and done.stderr == ""
