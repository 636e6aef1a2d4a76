"""The HTTP exchange of a record: the shown parts, and the secrets that stay hidden."""

from __future__ import annotations

import msgspec
import pytest
from aiperf.redaction import shown_headers
from aiperf.sdk.columns import WireTrace
from aiperf_reducer_columns.reduce.rows import traced


def read(text: str) -> WireTrace:
    return msgspec.json.decode(text, type=WireTrace)


def test_a_trace_has_both_heads_and_every_read() -> None:
    head = {"reason": "OK", "headers": [("Via", "a"), ("Set-Cookie", "id=1"), ("Via", "b")]}
    found = read(traced({"headers": {"A": "b"}}, head, [(5, 10), (9, 1)]))
    assert found == WireTrace({"A": "b"}, "OK", {"Via": "a, b", "Set-Cookie": "<redacted>"}, ((5, 10), (9, 1)))


def test_what_never_came_to_it_is_empty() -> None:
    assert read(traced(None, None, [])) == WireTrace()


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "proxy-authorization", "Cookie", "X-API-Key", "api_key", "X-Auth-Token", "X-Amz-Security-Token",
        "My-Secret",
    ],
)  # fmt: skip
def test_headers_that_look_like_credentials_are_not_shown(name: str) -> None:
    assert shown_headers({name: "hush"}) == {name: "<redacted>"}


def test_headers_set_by_the_user_are_hidden_and_others_shown() -> None:
    headers = {"x-team": "hush", "Content-Type": "text/plain", "X-Max-Tokens": "7"}
    assert shown_headers(headers, ["X-Team"]) == {"x-team": "<redacted>", "Content-Type": "text/plain", "X-Max-Tokens": "7"}
