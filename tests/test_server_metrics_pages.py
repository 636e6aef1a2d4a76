"""Pages of metrics that are wrong, each in its way: a sentence each, and nothing of the run or of other pages is lost."""

from __future__ import annotations

import gzip
import http.server
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program

LONG = "x" * 10_000 + '\\"quoted\\" \\n next line'
LAMP = "# TYPE lamp gauge\nlamp 1\n"


def turns(number: int) -> str:
    return f"# TYPE turns_total counter\nturns_total {number}\n"


def histogram(*bounds: str) -> str:
    buckets = "".join(f'wait_seconds_bucket{{le="{bound}"}} 3\n' for bound in (*bounds, "+Inf"))
    return f"# TYPE wait_seconds histogram\n{buckets}wait_seconds_sum 1\nwait_seconds_count 3\n"


PAGES: dict[str, Callable[[int], str]] = {
    "good": lambda n: LAMP + turns(n),
    "reset": lambda n: turns(100 + n if n < 4 else n),
    "unfinite": lambda n: f"{LAMP}# TYPE level gauge\nlevel NaN\n# TYPE speed gauge\nspeed +Inf\n",
    "twice": lambda n: f"{LAMP}# TYPE seen gauge\nseen 1\nseen 2\n",
    "retyped": lambda n: LAMP + (f"# TYPE jobs gauge\njobs {n}\n" if n < 4 else f"# TYPE jobs counter\njobs {n}\n"),
    "rebucketed": lambda n: LAMP + histogram(*("0.1", "1") if n < 4 else ("0.1", "0.5", "1")),
    "long": lambda n: f'{LAMP}# TYPE told gauge\ntold{{text="{LONG}"}} 4\n',
    "odd": lambda n: f"{LAMP}# TYPE odd bananas\nodd 1\n",
}
"""Pages that are read, by the number of the reading."""


class _Handler(http.server.BaseHTTPRequestHandler):
    readings: Counter[str]

    def do_GET(self) -> None:
        name = self.path.split("/")[1]
        self.readings[name] += 1
        number = self.readings[name]
        status, kind, body, length = 200, "text/plain; version=0.0.4", PAGES.get(name, PAGES["good"])(number).encode(), 0
        match name:
            case "html":
                kind, body = "text/html", b"<html><body>Welcome</body></html>"
            case "json":
                kind, body = "application/json", b'[{"running": 3}]'
            case "cut":
                body = body[:-3]
            case "half":
                length = len(body) + 50
            case "gzip":
                body = gzip.compress(body)
            case "moved":
                status = 302
            case "login":
                status = 401
            case "slow":
                time.sleep(0.5)
            case "late" if number < 4:
                status, body = 503, b"loading"
            case "goes" if number >= 4:
                self.close_connection = True
                return
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 302:
            self.send_header("Location", "/good/metrics")
        self.send_header("Content-Length", str(length or len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *arguments: Any) -> None:
        pass


NAMES = (*PAGES, "html", "json", "cut", "half", "gzip", "moved", "login", "slow", "late", "goes")
REQUESTS = 120


@pytest.fixture(scope="module")
def run(shared_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Done, str]]:
    """A run of six seconds beside all of them, and where they are: a busy machine reads few pages a second."""
    readings = Counter[str]()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"readings": readings}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    folder = tmp_path_factory.mktemp("pages")
    done = Program(folder, server_metrics=True)(
        "profile", "--model", "m", "--url", shared_simulator.url, "--tokenizer", "builtin", "--isl", 12, "--osl", 5,
        "--ui", "none", "--streaming", "--request-rate", 20, "--arrival-pattern", "constant", "--request-count", REQUESTS,
        "--server-metrics", *(f"{base}/{name}" for name in NAMES), f"{base.replace('127.0.0.1', 'localhost')}/good/metrics/",
    )  # fmt: skip
    server.shutdown()
    server.server_close()
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == REQUESTS
    yield done, base


def document(run: tuple[Done, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run[0].artifacts / "server_metrics_export.json").read_bytes())
    return found


def series(run: tuple[Done, str], page: str, family: str) -> list[dict[str, Any]]:
    """What the JSON file has of a family of a page."""
    url = f"{run[1]}/{page}/metrics"
    return [each for each in document(run)["metrics"].get(family, {"series": []})["series"] if each["endpoint_url"] == url]


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("html", "the page is HTML, and has no metrics"),
        ("json", "the page is JSON, and has no metrics"),
        ("cut", "the page was cut: its last line has no end"),
        ("half", "the page was cut, 50 bytes before its end"),
        ("moved", "the server answers 302 Found; redirects are not followed: give the address that it leads to"),
        ("login", "the server answers 401 Unauthorized; a login is given as http://USER:PASSWORD@HOST:PORT/metrics"),
        ("late", "the server answers 503 Service Unavailable"),
        ("goes", "Remote end closed connection without response"),
    ],
)
def test_a_page_that_can_not_be_read_is_a_warning(run: tuple[Done, str], page: str, sentence: str) -> None:
    warnings = [each for each in run[0].json()["warnings"] if f"/{page}/metrics" in each]
    assert [each.endswith(sentence) for each in warnings].count(True) == 1, warnings


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("gzip", "it is compressed though that was not asked for; it is unpacked"),
        ("unfinite", "level has values that are no finite numbers; they are left out"),
        ("unfinite", "speed has values that are no finite numbers; they are left out"),
        ("twice", "seen has several samples of a series; the last one counts"),
        ("odd", "odd is left out: its text can't be read"),
    ],
)
def test_what_is_left_out_of_a_page_is_in_the_log_once(run: tuple[Done, str], page: str, sentence: str) -> None:
    log = (run[0].artifacts / "logs" / "aiperf.log").read_text().splitlines()
    assert sum(f"/{page}/metrics: {sentence}" in line for line in log) == 1
    assert series(run, page, "lamp") != []


@pytest.mark.parametrize(("page", "name"), [("retyped", "jobs"), ("rebucketed", "wait_seconds")])
def test_a_series_that_changes_is_named_and_goes_on(run: tuple[Done, str], page: str, name: str) -> None:
    sentence = f"changes the kind, unit, labels or buckets of {name}, which goes on as another series"
    warnings = [each for each in run[0].json()["warnings"] if f"/{page}/metrics" in each]
    assert [each.endswith(sentence) for each in warnings].count(True) == 1, warnings
    assert series(run, page, "lamp") != [] and series(run, page, name) != []


def test_a_counter_that_began_again_goes_on_counting(run: tuple[Done, str]) -> None:
    (found,) = series(run, "reset", "turns_total")
    assert found["stats"]["resets"] == 1 and 0 < found["stats"]["total"] < 100


def test_long_labels_are_kept_whole(run: tuple[Done, str]) -> None:
    (found,) = series(run, "long", "told")
    assert found["labels"]["text"] == "x" * 10_000 + '"quoted" \n next line'


def test_a_page_slower_than_the_interval_misses_its_own_readings(run: tuple[Done, str]) -> None:
    about = document(run)["summary"]["endpoint_info"]
    slow, good = (about[f"{run[1]}/{page}/metrics"] for page in ("slow", "good"))
    assert slow["missed_fetches"] > 0 < slow["total_fetches"] and good["total_fetches"] > 0 == good["failed_fetches"]


def test_pages_that_come_late_or_go_have_their_figures(run: tuple[Done, str]) -> None:
    about = document(run)["summary"]["endpoint_info"]
    late, goes = (about[f"{run[1]}/{page}/metrics"] for page in ("late", "goes"))
    assert late["late_s"] and late["failed_fetches"] == 3 and series(run, "late", "lamp") != []
    assert goes["failed_fetches"] > 0 and series(run, "goes", "lamp") != []


def test_two_spellings_of_a_page_are_read_once(run: tuple[Done, str]) -> None:
    known = document(run)["summary"]["endpoints_configured"]
    assert sum("/good/metrics" in each for each in known) == 1 and len(known) == len(NAMES) + 1


def test_the_files_of_such_a_run_are_valid_and_made_again(run: tuple[Done, str], tmp_path: Path) -> None:
    done = run[0].copy(tmp_path / "again")
    aiperf = Program(tmp_path, server_metrics=True)
    before = {path.name: path.read_bytes() for path in done.artifacts.glob("server_metrics_export.*")}
    checked = aiperf("validate", done.artifacts)
    assert checked.code == 0, checked.out
    again = aiperf("report", done.artifacts)
    assert again.code == 0, again.err
    assert {path.name: path.read_bytes() for path in done.artifacts.glob("server_metrics_export.*")} == before
