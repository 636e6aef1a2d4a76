"""``KEY:VALUE``, base URLs and export names as people type them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiperf.errors import ConfigError
from aiperf.planning import addresses, outputs, target
from aiperf.planning.request_fields import body_fields, typed_headers
from aiperf.redaction import without_secrets
from aiperf.sdk.headers import merged
from aiperf.sdk.model import join_url
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(("text", "fields"), [
    ("a:1", {"a": 1}),
    ("a:1,b:2.5,c:-3", {"a": 1, "b": 2.5, "c": -3}),
    ("a:true,b:False,c:none,d:null", {"a": True, "b": False, "c": None, "d": None}),
    ("a:x:y", {"a": "x:y"}),
    (" a : b , c:d ", {"a": "b", "c": "d"}),
    ("a:", {"a": ""}),
    ("a:1,", {"a": 1}),
    ("a:nan,b:inf,c:1e999,d:1_000,e:99999999999999999999", {
        "a": "nan", "b": "inf", "c": "1e999", "d": "1_000", "e": 99999999999999999999.0}),
    ('{"stop": ["a"], "n": 1}', {"stop": ["a"], "n": 1}),
    ('stop:["a","b"]', {"stop": ["a", "b"]}),
    ('f:{"type":"x","y":{"z":1}},n:2', {"f": {"type": "x", "y": {"z": 1}}, "n": 2}),
    ("a:007,b:.5,c:+5,d:1.,e:-0.5,f:1e3,g:0", {"a": "007", "b": ".5", "c": "+5", "d": "1.", "e": -0.5, "f": 1000.0, "g": 0}),
    ('a:"1"', {"a": "1"}),
    ("a:[1, b:2", {"a": "[1", "b": 2}),
    ("note:one, two", {"note": "one, two"}),
    ('payload_template:{"t": "{{ a }}", "b": 1},x:y', {"payload_template": '{"t": "{{ a }}", "b": 1},x:y'}),
])  # fmt: skip
def test_body_fields(text: str, fields: dict[str, Any]) -> None:
    assert body_fields(text) == fields


@pytest.mark.parametrize(("text", "said"), [
    ("temperature=1", "write temperature:1"), ("x", "temperature:0.7"), (":1", "KEY:VALUE"), ("", "KEY:VALUE"),
    ('{"a": 1', "no JSON object"), ('{"a": NaN}', "NaN is no JSON"),
])  # fmt: skip
def test_what_is_no_pair_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        body_fields(text)
    assert said in "\n".join(caught.value.lines())


words = st.text(st.characters(codec="ascii", exclude_characters=',:{["'), min_size=1).filter(str.strip)
values = st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=9), lambda inner: (
    st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)))  # fmt: skip


@given(st.dictionaries(words.map(str.strip), values, min_size=1, max_size=4))
def test_json_values_survive_whatever_is_in_them(fields: dict[str, Any]) -> None:
    assert body_fields(json.dumps(fields)) == fields
    fields.pop("payload_template", None)
    as_pairs = {key: value for key, value in fields.items() if isinstance(value, str | list | dict)}
    if as_pairs:
        assert body_fields(",".join(f"{key}:{json.dumps(value)}" for key, value in as_pairs.items())) == as_pairs


@pytest.mark.parametrize(("text", "found"), [
    ("X:1", {"X": "1"}), ("Accept: a,b", {"Accept": "a,b"}), ("Authorization: Basic a:b", {"Authorization": "Basic a:b"}),
    ('{"X": "1", "Y": 2}', {"X": "1", "Y": "2"}), ("X-Empty:", {"X-Empty": ""}), ("X: true", {"X": "true"}),
])  # fmt: skip
def test_header_values_are_opaque(text: str, found: dict[str, str]) -> None:
    assert typed_headers(text) == found


@pytest.mark.parametrize("text", [
    "s3cret", "bad name:s3cret", ":s3cret", "X:s3cret\r\nY: z", "X:s3cret\0", '{"X": "s3cret"', "X:s3cret€",
    "Content-Length: s3cret", "transfer-encoding: s3cret",
])  # fmt: skip
def test_what_is_no_header_is_refused_without_showing_its_value(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        typed_headers(text)
    assert "s3cret" not in "\n".join(caught.value.lines())


def test_headers_merge_without_case() -> None:
    assert merged({"A": "1", "b": "2"}, {"a": "3"}) == {"b": "2", "a": "3"}


@pytest.mark.parametrize(("text", "url"), [
    ("host:9000", "http://host:9000"), ("http://h", "http://h"), ("https://h:1/v1/", "https://h:1/v1/"),
    ("http://h/api?key=a&key=b", "http://h/api?key=a&key=b"), ("http://h/p#there", "http://h/p"),
    ("[::1]:80", "http://[::1]:80"),
    ("http://h/a@b", "http://h/a@b"),
])  # fmt: skip
def test_base_urls(text: str, url: str) -> None:
    assert addresses.base_url(text) == url


@pytest.mark.parametrize(("text", "said"), [
    ("", "empty"), ("ftp://h", "'ftp'"), ("http://", "no host"), ("http://a b", "white space"), ("http://h:99999", "port"),
    ("http://h:0", "port 0"), ("http://h:x", "port"), ("http://[::1", "no URL"), ("http://hé", "ASCII"), ("h\n", "white space"),
    ("://h", "scheme"), (":80", "no host"),
])  # fmt: skip
def test_what_is_no_base_url_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        addresses.base_url(text)
    assert said in "\n".join(caught.value.lines())


def test_a_password_in_a_url_is_refused_and_never_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        addresses.base_url("http://me:s3cret@h/x?t=s3cret")
    assert "s3cret" not in "\n".join(caught.value.lines())
    assert without_secrets("http://me:s3cret@h/x?t=1") == "http://<redacted>@h/x?<redacted>"
    assert without_secrets("http://h/a@b") == "http://h/a@b"


@pytest.mark.parametrize(("base", "path", "url"), [
    ("host:9000", "/v1/chat/completions", "http://host:9000/v1/chat/completions"),
    ("http://host/v1/", "/v1/chat/completions", "http://host/v1/chat/completions"),
    ("http://host/v1/chat/completions", "/v1/chat/completions", "http://host/v1/chat/completions"),
    ("http://host/api?key=a", "/v1/embeddings", "http://host/api/v1/embeddings?key=a"),
    ("http://host/predict", "", "http://host/predict"),
])  # fmt: skip
def test_urls_are_joined_without_repeating(base: str, path: str, url: str) -> None:
    assert join_url(addresses.base_url(base), target.request_path(path)) == url


@pytest.mark.parametrize("path", ["v1", "/a b", "/é", "/a\n"])
def test_a_path_that_cannot_be_in_a_request_line_is_refused(path: str) -> None:
    with pytest.raises(ConfigError):
        target.request_path(path)


FILES = ("{prefix_aiperf}.json", "{prefix_aiperf}.csv", "{prefix}.jsonl", "{prefix}_raw.jsonl",
         "{prefix_aiperf}_timeslices.csv", "{prefix_}ledger.txt", "{prefix_}pages{_export}.csv",
         "inputs.json")  # fmt: skip


@pytest.mark.parametrize(("typed", "base"), [
    ("run1", "run1"), ("run1.json", "run1"), ("run1.csv", "run1"), ("run1_raw.jsonl", "run1"), ("run1_timeslices.csv", "run1"),
    ("run1_server_metrics.parquet", "run1"), ("/a/run1", "run1"), ("sub/run1.jsonl", "run1"), ("run.json.csv", "run.json"),
    ("run.v2", "run.v2"), ("run1_ledger.txt", "run1"), ("ledger.txt", "ledger.txt"),
    ("run1_pages.csv", "run1"),
])  # fmt: skip
def test_the_base_name_of_exports(typed: str, base: str) -> None:
    assert outputs.export_base(typed, FILES) == base


@pytest.mark.parametrize("typed", [".json", "", "/", "..", "inputs.json", "inputs"])
def test_a_base_name_that_is_none_or_taken_is_refused(typed: str) -> None:
    with pytest.raises(ConfigError):
        outputs.export_base(typed, FILES)
