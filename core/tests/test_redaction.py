"""Secrets: which texts are removed from what a server says, and where."""

from __future__ import annotations

import json
import logging
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf import logs
from aiperf.planning.secret_texts import secret_texts
from aiperf.redaction import REDACTED, private, redact, redact_json, scrubbed, secret_fields, shown_fields
from aiperf.sdk.exporter import Target
from aiperf.sdk.model import ErrorDetails

KEY = "sk-0123456789"


@pytest.mark.parametrize(("given", "texts"), [
    ({}, ()),
    ({"headers": {"X-Key": "seven77"}}, ()),
    ({"headers": {"Content-Type": "application/json", "accept": "text/event-stream"}}, ()),
    ({"headers": {"X-Key": KEY}}, (KEY,)),
    ({"headers": {"X-Key-bin": "c2stMDEyMzQ1Njc4OQ"}}, ("c2stMDEyMzQ1Njc4OQ", KEY)),
    ({"headers": {"X-Key-bin": "//79/P37+g=="}}, ("//79/P37+g==",)),
    ({"headers": {"Authorization": f"Bearer {KEY}"}}, (f"Bearer%20{KEY}", f"Bearer {KEY}", KEY)),
    ({"headers": {"Cookie": "a=b; session=0123456789"}},
     ("a%3Db%3B%20session%3D0123456789", "a=b; session=0123456789", "0123456789")),
    ({"options": {"endpoints:x": {"keys": ["short", 'quote"quote'], "none": None, "n": 5}}},
     ("quote%22quote", 'quote\\"quote', 'quote"quote')),
    ({"urls": ("http://h/?sig=abcdefgh%2B&api-version=2024-01-01", "/x?code=longer-code")},
     ("abcdefgh%252B", "abcdefgh%2B", "longer-code", "abcdefgh+")),
    ({"extra": {"max_tokens": 12345678, "auth": {"api_key": "12345678"}, "l": [{"password": "abcdefgh"}]}},
     ("12345678", "abcdefgh")),
])  # fmt: skip
def test_long_secrets_are_looked_for_in_every_form(given: dict[str, Any], texts: tuple[str, ...]) -> None:
    everything: dict[str, Any] = {"headers": {}, "options": {}, "urls": (), "extra": {}, **given}
    found = secret_texts(**everything)
    assert tuple(text for text in found if text in texts) == texts
    assert bool(found) == bool(texts) and list(map(len, found)) == sorted(map(len, found), reverse=True)


@pytest.mark.parametrize("before", ["", "k", "kk", "Bearer ", "user:"])
def test_a_secret_is_found_within_base64(before: str) -> None:
    forms = secret_texts({"X-Key": KEY}, {}, (), {})
    for encode in (b64encode, urlsafe_b64encode):
        shown = scrubbed(f"<{encode(f'{before}{KEY}!'.encode()).decode()}>", forms)
        assert REDACTED in shown and len(shown) < len(REDACTED) + 16, shown
    assert scrubbed(KEY.encode().hex().upper(), forms) == scrubbed(KEY.swapcase(), forms) == REDACTED


def test_an_error_is_scrubbed_in_each_of_its_texts() -> None:
    error = ErrorDetails(f"{KEY} and {KEY}", type=f"Told {KEY}", code=401, cause=f"<{KEY}>")
    shown = ErrorDetails("<redacted> and <redacted>", type="Told <redacted>", code=401, cause="<<redacted>>")
    assert error.without((KEY,)) == shown
    assert error.without(()) is error
    assert ErrorDetails("m").without((KEY,)) == ErrorDetails("m")


def test_lines_of_a_log_are_scrubbed_with_their_tracebacks() -> None:
    lines: list[str] = []
    with logs.lent(logging.INFO):
        logs.to_console(logging.INFO, lines.append)
        logs.scrub((KEY,))
        try:
            raise ValueError(KEY)
        except ValueError:
            logging.getLogger("aiperf.x").exception("key %s", KEY)
    assert "key <redacted>" in lines[0]
    assert "ValueError: <redacted>" in lines[0]
    assert KEY not in lines[0]


def test_secret_fields_of_bodies_are_shown_without_their_values() -> None:
    extra = {"api_key": KEY, "auth": {"password": KEY, "n": 1}, "list": [{"secret": KEY}, 2], "max_tokens": 5}
    shown = shown_fields(extra)
    assert KEY not in str(shown)
    assert (shown["max_tokens"], shown["auth"]["n"], shown["list"][1]) == (5, 1, 2)
    target = Target(Path(), config={"endpoint": {"extra": shown}})
    body = msgspec.json.encode({"prompt": KEY, **extra})
    assert msgspec.json.decode(target.shown_body(body)) == {"prompt": KEY, **shown}
    assert Target(Path(), config={"endpoint": {"extra": {"n": 1}}}).shown_body(b"no JSON") == b"no JSON"
    assert Target(Path()).shown_body(body) is body


@pytest.mark.parametrize("body", [
    b"no JSON: %b", b'{"inputs": [{"name": "api_key", "data": ["%b"]}]}', b'{"auth": "%b", "api_key": "a", "list": [{}, 2]}',
    b'{"auth": {"password": "a"}, "api_key": "a", "list": []}', b'["%b"]', b'{"parameters": "{\\"api_key\\": \\"%b\\"}"}',
])  # fmt: skip
def test_a_body_is_hidden_where_its_secrets_are_not_found(body: bytes) -> None:
    extra = {"api_key": KEY, "auth": {"password": KEY}, "list": [{"secret": KEY}, 2], "max_tokens": 5}
    target = Target(Path(), config={"endpoint": {"extra": shown_fields(extra)}})
    assert target.shown_body(body.replace(b"%b", KEY.encode())) == b'{"body":"<redacted>"}'


@pytest.mark.parametrize(("name", "hidden"), [
    ("token", True), ("Token", True), ("jwt", True), ("private_key", True), ("passphrase", True), ("hf_token", True),
    ("stop_token", False), ("max_tokens", False), ("tokens", False), ("key", False),
])  # fmt: skip
def test_the_name_of_a_field_says_whether_it_is_secret(name: str, hidden: bool) -> None:
    assert (shown_fields({name: KEY})[name] != KEY) is hidden
    assert (KEY not in redact(f'{{"{name}": "{KEY}"}}')) is hidden
    assert (KEY not in redact(f"{name}:{KEY}")) is hidden


@pytest.mark.parametrize("text", [
    f"401: Authorization: Bearer {KEY}", f"sent {{'Authorization': 'Bearer {KEY}'}}", f"authorization=basic {KEY}, was refused",
])  # fmt: skip
def test_a_credential_behind_its_scheme_is_hidden(text: str) -> None:
    assert KEY not in redact(text) and redact(text).startswith(text[:5])
    assert redact("Basic authorization: it is required") == "Basic authorization: it is required"


@pytest.mark.parametrize(("text", "fields"), [
    ('{"api_key": "sk-0123456789", "auth": {"token" : "abcdefgh"}}', ["api_key", "token"]),
    ('{"api_key": "EMPTY", "secret": "{{ model }}", "password": {{ text }}, "text": "sk-0123456789"}', []),
])  # fmt: skip
def test_a_template_shows_which_of_its_fields_are_secret(text: str, fields: list[str]) -> None:
    assert secret_fields(text) == fields


def test_a_private_file_is_its_owners_before_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "old").touch(0o644)
    assert {private(tmp_path / name).stat().st_mode & 0o777 for name in ("old", "new")} == {0o600}
    assert scrubbed("", (KEY,)) == ""


def test_redacted_json_stays_json() -> None:
    secret = "sk-0123456789abcdef"
    url = f'"http://me:{secret}@h/?token={secret}"'
    document = {"a": f"x api_key={secret}", "b": [url], "api_key": secret, "n": [1.5, None]}
    shown = redact_json(json.dumps(document))
    assert secret not in shown
    assert json.loads(shown) == {
        "a": "x api_key=<redacted>", "b": ['"http://<redacted>@h/?token=<redacted>'], "api_key": "<redacted>", "n": [1.5, None],
    }  # fmt: skip
