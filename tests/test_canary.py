"""Secrets that a run is given, and a server that repeats all of them: they stand in no file, on no screen and in no process."""

from __future__ import annotations

import itertools
import json
import shlex
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import command_lines
import pytest
from command_lines import Given
from program import Done, Program, Running, bytes_of

CANARIES = {
    "variable": "canary-variable-1", "header": "canary-header-2", "cookie": "canary-cookie-3", "url": "canary-url-4",
    "endpoint": "canary-endpoint-5", "extra": "canary/extra+6", "basic": "canary-basic-7",
}  # fmt: skip
ANSWER = f"the header is {CANARIES['header']}"
WHOLE = {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": ANSWER}}]}
REQUESTS = 12


class Echo(BaseHTTPRequestHandler):
    """Repeats what it was sent: in its heads always, and in the bodies of its errors."""

    protocol_version = "HTTP/1.1"
    numbers = itertools.count()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        echo = f"{self.path} {' '.join(f'{name}={value}' for name, value in self.headers.items())}"
        kind, text, status = "application/json", json.dumps(WHOLE), 200
        match next(self.numbers) % 6:
            case 0:
                status, text = 401, json.dumps({"error": {"message": f"wrong key: {echo}", "sent": sent}})
            case 1:
                status, kind, text = 500, "text/plain", f"{echo} {sent}"
            case 2:
                kind, text = "text/html", f"{CANARIES['variable']} {echo} {sent}"
            case 3:
                text = json.dumps({"error": {"message": f"{echo} {sent}", "code": CANARIES["header"], "type": echo}})
            case 4:
                status = 302
        body = text.encode()
        self.send_response(status, f"Told {CANARIES['variable']}")
        self.send_header("Location", f"/login/{CANARIES['cookie']}?next={CANARIES['url']}")
        self.send_header("X-Echo", echo)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def echoing() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def processes(run: Running) -> dict[str, str]:
    """Command line and environment of every process of the run, by file."""
    shown = {}
    for pid in run.processes():
        with suppress(OSError):  # it has just ended
            for name in ("cmdline", "environ"):
                shown[f"{pid}/{name}"] = Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    return shown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, dict[str, str]]:
    """The run, and its processes while its load was under way."""
    aiperf = Program(tmp_path_factory.mktemp("canary"))
    aiperf.environment["AIPERF_API_KEY"] = CANARIES["variable"]
    with echoing() as url:
        going = aiperf.start(
            "profile", "-m", "m", "-u", f"{url}?sig={CANARIES['url']}", "--endpoint",
            f"/v1/chat/completions?code={CANARIES['endpoint']}", "-H", f"X-Team: {CANARIES['header']}",
            "-H", f"Cookie: session={CANARIES['cookie']}; a=b", "-H", f"Proxy-Authorization: Basic {CANARIES['basic']}",
            "--extra-inputs", f"api_key:{CANARIES['extra']}", "--tokenizer", "builtin", "--isl", 5, "--osl", 5,
            "--request-rate", 8, "--request-count", REQUESTS, "--warmup-request-count", 1, "--ui", "none", "-vv",
            "--export-level", "raw", "--export-http-trace", "--private", "--random-seed", 1,
        )  # fmt: skip
        shown: dict[str, str] = {}
        while going.process.poll() is None and not (len(shown) > 4 and any(going.artifacts.glob("journal/shard-*.seg"))):
            with suppress(subprocess.TimeoutExpired):
                going.process.wait(0.05)
            shown = max(shown, processes(going), key=len)
        done = going.end()
    assert [line["metadata"]["x_request_id"] for line in done.lines("profile_export.jsonl")]
    return done, shown


def carriers(texts: dict[str, str]) -> list[tuple[str, str]]:
    """Where a canary stands, and which; in JSON and in a URL it is written in other ways."""
    forms = [(name, form) for name, value in CANARIES.items() for form in (value, quote(value, safe=""))]
    return [(where, name) for where, text in texts.items() for name, form in forms if form in text]


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): bytes_of(path).decode(errors="replace") for path in files}


def but_answers(raw: str) -> str:
    """The raw file without answers, which are never changed."""
    return "".join(json.dumps({**json.loads(line), "responses": []}) for line in raw.splitlines())


def readable(folder: Path) -> list[str]:
    """The files that others may read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [path.name for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077]


REFUSED = (
    "--api-key -{} --bogus", "--api-key --{} --bogus", "--api-key sk {}", "--api-key={}\x01", "--api-kye {}", "--api-kye={}",
    "-H Authorization: Bearer {}", "-H --{}", "-H 'X Y: {}'", "-HAuthorization:{} --bogus", "--header=Cookie={}",
    "--extra-inputs 'api_key={}'", "--extra-inputs '{{\"api_key\": \"{}\",}}'", "--extra-inputs 'api_key:{}' bad",
    "-u 'http://h?api_key={} x'", "-u http://me:{}@h", "-u 'me:{}@h'", "--endpoint 'x?token={}'", "--endpoint '/x y?token={}'",
    "--endpoint-type template --payload-template '{{\"token\": \"{}\"}}'", "--extra-inputs token={}",
    "--extra-inputs token:{} bad", "--api-key {} --api-key-file nothing", "--config secret.yaml", "--api-key-file secret.key",
)  # fmt: skip
"""Wrong lines with a secret in them."""


def test_no_error_of_a_command_line_has_a_secret(tmp_path: Path) -> None:
    secret = "canary-refused-8"
    (tmp_path / "secret.yaml").write_text(f"benchmark:\n  endpoint: {{api_key: [{secret}], headers: [{secret}], tpye: chat}}\n")
    (tmp_path / "secret.key").write_text(f"{secret}\x00\n")
    lines = [["profile", "-m", "m", "--tokenizer", "builtin", *shlex.split(line.format(secret))] for line in REFUSED]
    given = [Given(words=words, environment={}) for words in lines]
    given.append(Given(words=lines[0][:5], environment={"AIPERF_API_KEY": f"{secret}\x01"}))
    for each, did in zip(given, command_lines.run(given, tmp_path, at_once=2, loads=True), strict=True):
        assert did.code in (1, 2) and did.err.splitlines()[-1], each
        assert "error: " in did.err, each
        assert secret not in did.out + did.err, each


def test_every_kind_of_failure_was_met(run: tuple[Done, dict[str, str]]) -> None:
    errors = [line["error"] for line in run[0].lines("profile_export.jsonl") if line.get("error")]
    assert {error.get("code") for error in errors} >= {401, 500, 302}
    assert "<redacted>" in json.dumps(errors)


def test_no_file_has_a_secret(run: tuple[Done, dict[str, str]]) -> None:
    texts = contents(run[0].artifacts)
    texts["profile_export_raw.jsonl"] = but_answers(texts["profile_export_raw.jsonl"])
    # Segments have the bodies of answers as they came, and the stored data set those of requests as they are sent.
    kept = [name for name in texts if name.startswith("journal/shard-")] + ["journal/dataset.bodies"]
    assert [each for each in carriers(texts) if each[0] not in kept] == []


def test_an_answer_is_as_it_came(run: tuple[Done, dict[str, str]]) -> None:
    good = [line for line in run[0].lines("profile_export_raw.jsonl") if not line.get("error")]
    assert good
    assert all(json.loads(line["responses"][0]["text"]) == WHOLE for line in good)


def test_a_private_run_is_readable_by_its_owner_alone(run: tuple[Done, dict[str, str]]) -> None:
    assert readable(run[0].artifacts) == []


def test_a_report_without_the_secrets_has_none(run: tuple[Done, dict[str, str]], tmp_path: Path) -> None:
    done = Program(tmp_path)("report", run[0].artifacts, "--output", tmp_path / "again")
    texts = {**contents(tmp_path / "again"), "stdout": done.out, "stderr": done.err}
    assert "<redacted>" in texts["profile_export.jsonl"]
    assert set(readable(tmp_path / "again")) <= {".aiperf_results_ready.json"}
    texts["profile_export_raw.jsonl"] = but_answers(texts.get("profile_export_raw.jsonl", ""))
    assert carriers(texts) == []


def test_no_output_has_a_secret(run: tuple[Done, dict[str, str]]) -> None:
    assert carriers({"stdout": run[0].out, "stderr": run[0].err}) == []


def test_no_process_shows_a_secret(run: tuple[Done, dict[str, str]]) -> None:
    assert len(run[1]) > 4  # the run, a worker, a reducer
    assert carriers(run[1]) == []
