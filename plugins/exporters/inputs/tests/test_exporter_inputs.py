import json
from base64 import b64encode
from importlib.resources import files
from pathlib import Path

import jsonschema
from aiperf import Conversation, Target, Turn
from aiperf.testing import DatasetExporterContract
from aiperf_exporter_inputs import Inputs


def written(*entries: tuple[str, list[bytes]]) -> bytes:
    exporter = Inputs(Target(Path()))
    content = exporter.header()
    for number, (name, bodies) in enumerate(entries):
        conversation = Conversation(name, tuple(Turn() for _ in bodies))
        content += exporter.entry(conversation, bodies, first=number == 0)
    return content + exporter.footer()


def test_the_file_is_indented_like_any_json_of_two_spaces():
    data = {
        "data": [
            {"session_id": "session_000000", "payloads": [{"messages": [{"content": "a\nb"}]}, {"n": [1, 2.5]}]},
            {"session_id": 'odd "name"', "payloads": [{"model": "\u00e9\u6f22\U0001f600", "stream": True}]},
        ]
    }

    def compact(body):
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()

    entries = [(entry["session_id"], [compact(body) for body in entry["payloads"]]) for entry in data["data"]]
    assert written(*entries).decode() == json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def test_several_conversations_at_once_are_written_as_one_by_one():
    bodies = [b'{"a":[],"b":{},"c":"x\\n"}', b" [1, 2 ] ", b"1]},{", b"\xff", b'"text"', b"{\n  \"n\": 1e5\n}"]
    entries = [(f'name "{number}"', bodies[: number + 1]) for number in range(len(bodies))]
    exporter = Inputs(Target(Path()))
    conversations = [(Conversation(name, ()), some) for name, some in entries]
    first, rest = conversations[:2], conversations[2:]
    together = exporter.entries(first, first=True) + exporter.entries(rest, first=False)
    assert exporter.header() + together + exporter.footer() == written(*entries)


def test_a_data_set_without_entries_is_json_too():
    assert json.loads(written()) == {"data": []}


def test_numbers_and_key_order_of_a_body_are_left_alone():
    body = b'{"z":1e400,"a":12345678901234567890123,"f":0.10}'
    assert b"".join(written(("s", [body])).split()).endswith(b'"payloads":[' + body + b"]}]}")


def test_a_body_that_is_not_json_is_kept_in_base64():
    body = b"--boundary\r\n\xff\x00"
    (entry,) = json.loads(written(("s", [body])))["data"]
    assert entry["payloads"] == [{"body_base64": b64encode(body).decode()}]


def test_the_name_is_not_prefixed():
    exporter = Inputs(Target(Path("out"), prefix="mine"))
    assert exporter.target.file(exporter.kind).name == "inputs.json"


def test_the_bodies_of_a_trace_are_written_too():
    exporter = Inputs(Target(Path("out")))
    assert exporter.wanted()
    recorded = Conversation("chat-1", (Turn(texts=("hi",), timestamp_ms=10.0),))
    (entry,) = json.loads(exporter.header() + exporter.entry(recorded, [b'{"n":1}'], first=True) + exporter.footer())["data"]
    assert entry == {"session_id": "chat-1", "payloads": [{"n": 1}]}


def test_the_shipped_schema_holds():
    schema = json.loads(files("aiperf_exporter_inputs").joinpath("inputs.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for content in (written(), written(("s", [b'{"a": 1}', b"\xff"]))):
        jsonschema.validate(json.loads(content), schema)


class TestInputsKeepsTheContract(DatasetExporterContract):
    exporter = Inputs
