"""Controls that a terminal obeys are escaped in what exporters write."""

from __future__ import annotations

import json

import msgspec
import pytest
from aiperf.sdk.exporter import visible

HARMFUL = [*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]


@pytest.mark.parametrize("number", HARMFUL)
def test_a_control_is_escaped_and_reads_as_the_same(number: int) -> None:
    value = {f"k{chr(number)}": f"a{chr(number)}b"}
    written = visible(msgspec.json.encode(value))
    assert chr(number).encode() not in written
    assert b"\\u%04x" % number in written
    assert json.loads(written) == value


def test_other_characters_stay_as_they_are() -> None:
    text = msgspec.json.encode("".join(chr(number) for number in range(0x20, 0x3000) if number not in HARMFUL))
    assert visible(text) == text
