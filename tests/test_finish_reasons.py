"""Why answers ended, and what their servers count: from the server's bytes to every file and the screen."""

from __future__ import annotations

import csv
import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from aiperf_results import finished_run, open_run
from program import Done, Program

DONE = "data: [DONE]\n\n"


def chunk(delta: dict[str, Any] | None = None, finish: Any = None, index: int = 0, usage: Any = None) -> str:
    choices = [] if delta is None else [{"index": index, "delta": delta, "finish_reason": finish}]
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': choices, 'usage': usage})}\n\n"


def answered(delta: dict[str, Any], finish: Any, usage: Any = None) -> str:
    counts = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11} if usage is None else usage
    return chunk({"role": "assistant"}) + chunk(delta) + chunk({}, finish) + chunk(usage=counts) + DONE


NOTHING = {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}
NEGATIVE = {"prompt_tokens": -5, "completion_tokens": -3, "total_tokens": -8}
ANSWERS = {
    "stop": answered({"content": "a b"}, "stop"),
    "content_filter": answered({"content": "a b"}, "content_filter"),
    "stop, refusal": answered({"refusal": "I can't do that"}, "stop"),
    "length": answered({"audio": {"transcript": "as I said"}}, "length"),
    "pondering": answered({"content": "a b"}, "pondering"),
    "eos": answered({"content": "a b"}, "eos", NEGATIVE),
    "SAFETY": answered({"content": ""}, "SAFETY", NOTHING),
    '{"type":"abort"}': answered({"content": "a b"}, {"type": "abort"}, "none"),
}
"""Answers of a server by the finish reason that is told of them; all but one have content."""
EMPTY = "SAFETY"


@contextmanager
def serving(bodies: Sequence[str]) -> Iterator[str]:
    """A server that answers with each body in turn; gives its URL."""
    turn, lock = iter(range(1 << 30)), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                body = bodies[next(turn) % len(bodies)].encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def words(url: str, *more: str) -> list[str]:
    given = ["--tokenizer", "builtin", "--isl", "9", "--osl", "8", "--random-seed", "5", "--ui", "none", "--streaming"]
    return ["profile", "--model", "m", "--url", url, *given, *more]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Done, Program]:
    aiperf = Program(tmp_path_factory.mktemp("ends"), parquet=True)
    with serving(list(ANSWERS.values())) as url:
        done = aiperf(*words(url, "--use-server-token-count", "--request-count", str(2 * len(ANSWERS)), "--concurrency", "1"))
    assert done.code == 0, done.err
    return done, aiperf


Run = tuple[Done, Program]


def test_each_request_has_the_reason_that_its_server_sent(run: Run) -> None:
    told = Counter(line["metadata"].get("finish_reason") for line in run[0].lines("profile_export.jsonl"))
    assert told == dict.fromkeys(ANSWERS, 2)


def test_the_table_of_requests_has_them_too(run: Run) -> None:
    table = pyarrow.parquet.read_table(run[0].artifacts / "profile_export.parquet")
    assert Counter(table["finish_reason"].to_pylist()) == dict.fromkeys(ANSWERS, 2)


def test_the_summary_counts_them_in_json_and_csv(run: Run) -> None:
    counted = run[0].json()["finish_reasons"]
    assert counted == dict.fromkeys(ANSWERS, 2)
    rows = list(csv.reader((run[0].artifacts / "profile_export_aiperf.csv").open(newline="")))
    begin = rows.index(["Finish Reason", "Requests"])
    assert rows[begin + 1 :] == [[reason, "2"] for reason in counted]


def test_the_report_shows_them_where_one_is_unusual(run: Run) -> None:
    assert "Finish reasons: " in run[0].out and "2 pondering" in " ".join(run[0].out.split())


def test_one_warning_tells_of_filters_refusals_and_errors(run: Run) -> None:
    (warning,) = [each for each in run[0].json()["warnings"] if "ended with a filter" in each]
    assert warning.startswith("8 of 16 answers ended")


def test_a_refusal_and_a_transcript_are_answers(run: Run) -> None:
    failed = [line["error"] for line in run[0].lines("profile_export.jsonl") if "error" in line]
    assert [each["message"] for each in failed] == [
        "the answer has no content: the server says that it ended with 'SAFETY' and counts no output tokens"
    ] * 2
    assert run[0].json()["outcomes"] == {"completed": 14, "empty": 2}


def test_an_empty_answer_with_a_reason_is_not_told_to_be_of_another_dialect(run: Run) -> None:
    said = " ".join(run[0].json()["warnings"])
    assert "ended with 'SAFETY'" in said and "--endpoint-type" not in said


def test_counts_that_are_none_are_not_used_and_told_once(run: Run) -> None:
    summary = run[0].json()
    (warning,) = [each for each in summary["warnings"] if "can't be read" in each]
    assert "4 of 14 answers" in warning
    assert [each["numbers"] for each in summary["measurement"]["findings"] if each["kind"] == "unreadable_usage"] == [
        {"unreadable": 4, "answers": 14}
    ]
    assert (summary["input_sequence_length"]["min"], summary["output_sequence_length"]["min"]) == (9, 2)
    assert not any("sent no token counts" in each for each in summary["warnings"])


def test_every_file_agrees_and_a_later_report_says_the_same(run: Run) -> None:
    done, aiperf = run
    judged = aiperf("validate", str(done.artifacts))
    assert judged.code == 0, judged.out
    before = done.json()
    assert aiperf("report", str(done.artifacts)).code == 0
    after = done.json()
    assert (after["finish_reasons"], after["warnings"]) == (before["finish_reasons"], before["warnings"])
    table = open_run(done.artifacts).requests(failed=True)
    assert Counter(table.texts("finish_reason")) == dict.fromkeys(ANSWERS, 2)


def test_columns_of_the_journal_are_those_of_the_lines(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["request_latency", "input_sequence_length", "request_start_ns", "request_end_ns", "session_num", "error_code"]
    lines = open_run(run[0].artifacts)
    monkeypatch.setattr(finished_run, "FEW_BYTES", 0)
    monkeypatch.setattr(finished_run, "of_lines", None)
    columns = open_run(run[0].artifacts)
    whole, texts = lines.requests(failed=True), ["error_type", "error_message"]
    chosen = columns.requests([*names, *texts], failed=True)
    for name in names[:-1]:
        np.testing.assert_array_equal(chosen.numbers(name), whole.numbers(name), name)
    assert [chosen.texts(name) for name in texts] == [whole.texts(name) for name in texts]
    assert len(columns.column("request_latency")) == 14 and len(chosen) == 16


def test_a_changed_count_of_reasons_is_found(run: Run, tmp_path: Path) -> None:
    done, aiperf = run
    path = done.artifacts / "profile_export_aiperf.json"
    kept = path.read_bytes()
    summary = json.loads(kept)
    summary["finish_reasons"]["stop"] += 1
    path.write_text(json.dumps(summary))
    try:
        judged = aiperf("validate", str(done.artifacts))
    finally:
        path.write_bytes(kept)
    assert judged.code != 0 and "finish reasons are not" in judged.out


PIECES = "".join(chunk({"content": text}, index=at) for text, at in (("a", 0), ("x", 1), (" b", 0), (" y", 1)))
EACH = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
OTHER = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
ALL = {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}
SEVERAL = {
    "one each, behind its choice, as llama.cpp": (
        PIECES + chunk({}, "stop") + chunk(usage=EACH) + chunk({}, "length", 1) + chunk(usage=OTHER), (9, 7)
    ),
    "one of all, as OpenAI": (PIECES + chunk({}, "stop") + chunk({}, "length", 1) + chunk(usage=ALL), (9, 7)),
    "one of all behind those so far of each, as vLLM": (
        PIECES + chunk({}, "stop", usage=EACH) + chunk({}, "length", 1, usage=OTHER) + chunk(usage=ALL), (9, 7)
    ),
    "those so far of each alone": (
        PIECES + chunk({"content": "c"}, usage=EACH | {"completion_tokens": 2}) + chunk({}, "stop", usage=EACH)
        + chunk({}, "length", 1, usage=OTHER), (9, 7)
    ),
    "three for two": (
        PIECES + chunk({}, "stop") + chunk({}, "length", 1) + chunk(usage=EACH) + chunk(usage=OTHER) + chunk(usage=EACH), None
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Done:
    aiperf = Program(tmp_path_factory.mktemp("several"))
    with serving([body + DONE for body, _ in SEVERAL.values()]) as url:
        more = ["--extra-inputs", "n:2", "--use-server-token-count", "--request-count", str(len(SEVERAL)), "--concurrency", "1"]
        done = aiperf(*words(url, *more))
    assert done.code == 0, done.err
    return done


@pytest.mark.parametrize(("place", "wanted"), list(enumerate(counts for _, counts in SEVERAL.values())), ids=SEVERAL)
def test_the_tokens_of_several_choices_are_those_of_all(several: Done, place: int, wanted: tuple[int, int] | None) -> None:
    line = next(each for each in several.lines("profile_export.jsonl") if each["metadata"]["session_num"] == place)
    metrics = line["metrics"]
    names = ("input_sequence_length", "output_sequence_length")
    assert [metrics[name]["value"] if name in metrics else None for name in names] == [*(wanted or (None, None))]
    assert line["metadata"]["finish_reason"] == "stop, length"


def test_counts_that_cannot_be_told_apart_by_choice_are_told(several: Done) -> None:
    assert any("1 of 5 answers can't be read" in each for each in several.json()["warnings"])
