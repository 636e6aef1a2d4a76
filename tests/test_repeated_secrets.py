"""A server that repeats the key, in whatever form: no file has it but those of answers as they came, which are private."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from program import Program, bytes_of

KEY = "sk/Live+0123 abcdef-9876"
FORMS = {
    "as it is": KEY,
    "other case": KEY.upper(),
    "base64": b64encode(KEY.encode()).decode(),
    "base64 behind a byte": b64encode(b"k" + KEY.encode() + b"k").decode(),
    "base64 behind two bytes": b64encode(b":k" + KEY.encode() + b"k").decode(),
    "base64 of URLs": b64encode(b"Bearer " + KEY.encode()).decode().replace("+", "-").replace("/", "_"),
    "hex": KEY.encode().hex(),
    "other hex": KEY.encode().hex().upper(),
    "URL": quote(KEY, safe=""),
    "URL in small letters": quote(KEY, safe="").lower(),
    "form": quote_plus(KEY),
}
WITHIN = {name: form[5:-5] for name, form in FORMS.items()}
"""What is left of each form where only its first or last characters are of the bytes around it."""


class Parrot(BaseHTTPRequestHandler):
    """Refuses every second request; says every form of the key in the answer, its head and its reason."""

    count = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        Parrot.count += 1
        said = " | ".join(FORMS.values())
        good = Parrot.count % 2
        told = {"choices": [{"message": {"role": "assistant", "content": said}}]} if good else {"error": {"message": said}}
        body = json.dumps(told).encode()
        self.send_response(200 if good else 401, f"no {KEY.lower()}")
        for number, form in enumerate(FORMS.values()):
            self.send_header(f"X-Told-{number}", form)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def parrot() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.mark.parametrize("level", ["records", "raw"])
def test_no_file_has_a_form_of_the_key_but_answers_as_they_came(aiperf: Program, parrot: str, level: str) -> None:
    done = aiperf(
        "profile", "--model", "m", "--url", parrot, "--tokenizer", "builtin", "--isl", 8, "--request-count", 6, "-vv",
        "--api-key", KEY, "--export-level", level, "--failed-request-threshold", 1, "--ui", "none",
    )  # fmt: skip
    assert done.json()["request_count"]["avg"] == 3, done.err
    found = {
        (path.relative_to(done.artifacts), name)
        for path in done.artifacts.rglob("*") if path.is_file()
        for name, form in WITHIN.items() if form.encode() in bytes_of(path)
    }  # fmt: skip
    kept = {"journal"} if level == "records" else {"journal", "profile_export_raw.jsonl"}  # answers as they came
    assert {path.parts[0] for path, _ in found} <= kept, sorted(found)
    assert {oct((done.artifacts / path).stat().st_mode & 0o777) for path, _ in found} <= {"0o600"}
    assert [name for name, form in WITHIN.items() if form in done.out + done.err] == []


TELL = """
import os, sys

def tell():
    with open("/proc/self/environ") as file, open(f"{os.environ['SEEN']}/{os.getpid()}", "w") as seen:
        seen.write(repr(dict(os.environ)) + file.read())

class Told:  # workers and reducers may be forked: each of them begins with the import of its module
    def find_spec(self, name, path=None, target=None):
        if name in ("aiperf.worker.process", "aiperf.run.reducer_process"):
            tell()

sys.meta_path.insert(0, Told())
tell()
"""


def test_processes_inherit_no_secret_that_they_do_not_need(aiperf: Program, parrot: str) -> None:
    hidden = {"HF_TOKEN": "hf-secret-value", "OPENAI_API_KEY": "oa-secret-value", "AWS_SECRET_ACCESS_KEY": "aws-secret-value"}
    site = aiperf.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(TELL)
    seen = aiperf.folder / "seen"
    seen.mkdir()
    proxy = {"HTTPS_PROXY": "http://user:proxy-secret-value@127.0.0.1:9", "NO_PROXY": "a", "TOKENIZERS_PARALLELISM": "false"}
    aiperf.environment |= {**hidden, **proxy, "PYTHONPATH": str(site), "SEEN": str(seen), "MY_TOKEN": "mine-secret-value",
                           "AIPERF_PASS_VARIABLES": "MY_TOKEN"}  # fmt: skip
    aiperf("profile", "--model", "m", "--url", parrot, "--tokenizer", "builtin", "--isl", 8, "--request-count", 2)
    texts = [path.read_text() for path in Path(seen).iterdir()]
    with_secrets = [text for text in texts if any(value in text for value in (*hidden.values(), "proxy-secret-value"))]
    assert len(with_secrets) == 1, "the program itself"
    assert len(texts) >= 3, "a worker and a reducer"
    assert all("mine-secret-value" in text and "'TOKENIZERS_PARALLELISM'" in text and "'NO_PROXY'" in text for text in texts)
