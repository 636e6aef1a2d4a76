import json
from importlib.resources import files

import jsonschema
import pytest
from aiperf import AiperfError, Target
from aiperf.rundir.journal import ERROR, request_id
from aiperf.sdk.engine import SiteClock
from aiperf_exporter_raw import RawRecords
from aiperf_exporter_raw.contract import RawContract
from aiperf_exporter_raw.shape import schema
from aiperf_testing.journals import CLOCK, Recording
from aiperf_testing.manifests import check_row
from aiperf_testing.summaries import sample_summary

SCHEMA = json.loads(files("aiperf_exporter_raw").joinpath("profile_export_raw.schema.json").read_text())
FILES = {"jsonl": "{prefix}.jsonl", "raw.jsonl": "{prefix}_raw.jsonl"}
HEADERS = {"User-Agent": "aiperf/0", "X-Request-ID": "r", "Authorization": "<redacted>"}


def keep(run: Recording, request: int, body: bytes | None = None, *, shard: int = 0) -> None:
    run.text(request, "request", {"headers": HEADERS, "body": body}, shard=shard)


def record(run: Recording, request: int, *, shard: int = 0, **more) -> str:
    name = request_id(run.plan.run.run_id, shard, request)
    metadata = {"session_num": request, "worker_id": f"worker-{shard}", "x_request_id": name}
    return json.dumps({"metadata": metadata, "metrics": {"request_latency": {"value": 1.5, "unit": "ms"}}, **more})


def target_of(run: Recording, **more) -> Target:
    return Target(run.directory, level="raw", journal=run.journal, files=FILES, **more)


def exported(run: Recording, *records: str, **more) -> list[dict]:
    target = target_of(run, **more)
    target.file("jsonl").write_text("".join(f"{line}\n" for line in records))
    (artifact,) = RawRecords(target).export(sample_summary())
    assert artifact.path == target.file("raw.jsonl")
    assert artifact.path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in artifact.path.read_bytes().splitlines()]
    for line in lines:
        jsonschema.validate(line, SCHEMA)
    return lines


@pytest.fixture
def run(tmp_path) -> Recording:
    return Recording(tmp_path, export_level="raw")


def test_a_stream_is_its_events_each_when_it_came(run):
    run.sent(0, 1_000)
    keep(run, 0, b'{"n": 1,  "x": [true]}')
    run.read(0, 5_000, b'data: {"a":1}\n\n: still here\n\nda')
    run.read(0, 9_000, b"ta: two\ndata: lines\n\nevent: error\ndata: [DONE]\n\n")
    run.done(0, 9_500)
    run.flush(10_000)
    (line,) = exported(run, record(run, 0))
    zero = CLOCK.started_mono_ns
    assert line["start_perf_ns"] == zero + 1_000
    assert line["status"] == 200
    assert line["request_headers"] == HEADERS
    assert line["payload"] == {"n": 1, "x": [True]}
    assert line["responses"] == [
        {"perf_ns": zero + 5_000, "packets": [{"name": "data", "value": '{"a":1}'}]},
        {"perf_ns": zero + 9_000, "packets": [{"name": "data", "value": "two\nlines"}]},
        {"perf_ns": zero + 9_000, "packets": [{"name": "event", "value": "error"}, {"name": "data", "value": "[DONE]"}]},
    ]
    assert line["metadata"]["session_num"] == 0
    assert "metrics" not in line and "error" not in line


def test_requests_of_a_lost_site_are_left_out_and_counted(tmp_path, caplog):
    run = Recording(tmp_path, export_level="raw", workers=2, sites=("attic", "barn"))
    for shard in (0, 1):
        run.answered(0, 1_000, (2_000, b"data: x\n\n"), shard=shard)
        keep(run, 0, b"{}", shard=shard)
        run.flush(3_000, shard=shard)
    run.ended(sites=(SiteClock("attic", (0,)), SiteClock("barn", (1,), lost="it is gone")))
    lines = exported(run, record(run, 0), record(run, 0, shard=1), record(run, 1, shard=1))
    assert [line["metadata"]["worker_id"] for line in lines] == ["worker-0", "worker-1"]
    assert "has no line for 1 request of the site barn, which was lost" in caplog.text
    with pytest.raises(AiperfError, match="don't have request 1 of worker 0"):
        exported(run, record(run, 1))


def test_events_of_a_merged_read_say_since_when_they_may_have_come(run):
    run.sent(0, 1_000)
    keep(run, 0, b"{}")
    run.read(0, 5_000, b"data: a\n\n", late_ns=500)
    run.read(0, 90_000, b"data: b\n\ndata: c\n\ndata: d\n\n", hidden=2)
    run.done(0, 95_000)
    run.flush(100_000)
    (line,) = exported(run, record(run, 0))
    since = CLOCK.started_mono_ns + 5_500
    assert [each.get("after_perf_ns") for each in line["responses"]] == [None, since, since, None]


def test_a_body_that_the_data_set_has_comes_from_there(run):
    run.answered(0, 1_000, (2_000, b"data: x\n\n"), entry=1)
    keep(run, 0)
    run.flush(3_000)
    (line,) = exported(run, record(run, 0))
    assert line["payload"] == {"body_base64": "b25l"}, "the plain dialect's body is text: one"


@pytest.mark.parametrize(
    ("body", "kind", "response"),
    [
        (b'{"ok": "\xc3\xa9"}', "application/json", {"text": '{"ok": "\u00e9"}', "content_type": "application/json"}),
        (b"\xff\xfe", "audio/wav", {"raw_bytes": "//4=", "content_type": "audio/wav"}),
        (b"plain", None, {"text": "plain"}),
    ],
)
def test_an_answer_that_does_not_stream_is_one_response(run, body, kind, response):
    run.sent(0, 1_000)
    keep(run, 0, b"{}")
    run.text(0, "head", {"status": 200, "reason": "OK", "headers": [("content-type", kind)] if kind else []})
    run.read(0, 4_000, body[:1])
    run.read(0, 6_000, body[1:])
    run.done(0, 7_000, flags=0)
    run.flush(8_000)
    (line,) = exported(run, record(run, 0))
    assert line["responses"] == [{"perf_ns": CLOCK.started_mono_ns + 6_000, **response}]


def test_a_failure_has_its_records_error_and_no_responses(run):
    run.sent(0, 1_000)
    keep(run, 0, b"{}")
    run.read(0, 2_000, b"busy")
    run.done(0, 3_000, outcome=ERROR, status=503, flags=0)
    run.sent(1, 1_500)
    run.done(1, 4_000, outcome=ERROR, status=0, flags=0)
    run.flush(5_000)
    busy = {"message": "busy", "code": 503}
    refused, gone = exported(run, record(run, 0, error=busy), record(run, 1, error={"message": "no"}))
    assert (refused["status"], refused["responses"], refused["error"]) == (503, [], busy)
    assert "status" not in gone and gone["responses"] == []


def test_lines_follow_the_records_whatever_was_left_out_of_them(run):
    for shard in (0, 1):
        for request in range(3):
            run.answered(request, 1_000 * request, (1_000 * request + 50, b"data: %d\n\n" % request), shard=shard)
            keep(run, request, b"{}", shard=shard)
        run.flush(9_000, shard=shard)
        run.roll(shard=shard)
        run.answered(3, 9_000, (9_100, b"data: 3\n\n"), shard=shard)
        run.flush(9_900, shard=shard)
    lines = exported(run, record(run, 1, shard=1), record(run, 0), record(run, 3, shard=1), record(run, 2))
    said = [(line["metadata"]["worker_id"], line["responses"][0]["packets"][0]["value"]) for line in lines]
    assert said == [("worker-1", "1"), ("worker-0", "0"), ("worker-1", "3"), ("worker-0", "2")]


def test_after_a_step_of_the_wall_clock_the_monotonic_clock_places_reads(run):
    run.answered(0, 1_000, (2_000, b"data: 0\n\n"))
    run.flush(3_000)
    run.step_ns = 5_000_000_000
    run.answered(1, 4_000, (5_000, b"data: 1\n\n"))
    run.flush(6_000)
    first, second = exported(run, record(run, 0), record(run, 1))
    assert first["responses"][0]["perf_ns"] == CLOCK.started_mono_ns + 2_000
    assert second["responses"][0]["perf_ns"] == CLOCK.started_mono_ns + 5_000 + 1_000, "when it was read"


def test_segments_that_are_gone_are_named_and_no_half_file_is_left(run):
    target = target_of(run)
    target.file("jsonl").write_text(record(run, 0) + "\n")
    with pytest.raises(AiperfError, match="don't have request 0 of worker 0"):
        RawRecords(target).export(sample_summary())
    assert not target.file("raw.jsonl").exists()


def test_an_answer_that_is_damaged_in_the_segments_is_named_and_the_file_of_before_stays(run):
    """The per-request file has its line from the columns, which are whole."""
    for request in range(2):
        run.answered(request, 1_000 * request, (1_000 * request + 50, b"data: %d\n\n" % request))
        keep(run, request, b"{}")
        run.flush(9_000 * (request + 1))
    before = exported(run, record(run, 0), record(run, 1))
    (segment,) = run.journal.glob("shard-0.*.seg")
    data = bytearray(segment.read_bytes())
    data[data.index(b"data: 1")] ^= 1
    segment.write_bytes(data)
    with pytest.raises(AiperfError, match=r"don't have the whole answer to request 1 of worker 0: .* damaged"):
        exported(run, record(run, 0), record(run, 1))
    assert [json.loads(line) for line in target_of(run).file("raw.jsonl").read_bytes().splitlines()] == before


def test_without_the_per_request_file_there_is_nothing_to_follow(run):
    with pytest.raises(AiperfError, match="whose lines the raw file follows"):
        RawRecords(target_of(run)).export(sample_summary())


def test_the_prefix_names_it(run):
    run.answered(0, 1_000, (2_000, b"data: 0\n\n"))
    run.flush(3_000)
    exported(run, record(run, 0), prefix="mine")
    assert (run.directory / "mine_raw.jsonl").exists()


def test_the_shipped_schema_is_that_of_the_structures():
    assert schema() == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_its_manifest_says_what_it_is():
    check_row("exporters", RawRecords)


class TestRawKeepsTheContract(RawContract):
    pass


def test_an_event_of_more_than_16_mib_costs_its_own_request_alone(run):
    long = b"data: " + b"x" * ((16 << 20) + 1)
    for number, second in enumerate((b"data: b\n\n", long, b"data: b\n\n")):
        run.sent(number, 1_000)
        keep(run, number, b"{}")
        run.read(number, 5_000, b"data: a\n\n")
        run.read(number, 6_000, second)
        run.done(number, 7_000)
    run.flush(10_000)
    first, bad, last = exported(run, *(record(run, number) for number in range(3)))
    assert len(first["responses"]) == len(last["responses"]) == 2
    assert "responses_left_out" not in first
    assert [each["packets"][0]["value"] for each in bad["responses"]] == ["a"]
    assert bad["responses_left_out"] == "an event is longer than 16 MiB"
