"""Texts in the place of another: the same requests as encoded one by one, and never another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.errors import PluginError
from aiperf.prepare.encoder import Encoder
from aiperf.prepare.templates import Templates
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.model import Conversation, HttpRequest, Media, Turn
from aiperf_testing.plans import sample_plan


class Plain(Endpoint[None]):
    """Counts how often it encodes."""

    capabilities = Capabilities(path="/ask", multi_turn=True, system_message=True, media_in=("image",))
    encoded = 0

    def __init__(self, options: None = None) -> None:
        super().__init__(options)

    def encode(self, turn: Turn) -> HttpRequest:
        self.encoded += 1
        said = [[message.role, message.text, *(one.value for one in message.media)] for message in turn.messages]
        body = {"said": said, "model": turn.model, "length": turn.max_tokens, **turn.extra}
        return HttpRequest("/ask", msgspec.json.encode(body), {"X-Kind": "plain"})


class Promises(Plain):
    splices_text = True


class Shouts(Promises):
    """Breaks its promise for texts that the first two don't show."""

    def encode(self, turn: Turn) -> HttpRequest:
        shouting = turn.text.startswith("!")
        return super().encode(msgspec.structs.replace(turn, texts=(turn.text.upper(),)) if shouting else turn)


class Doubles(Promises):
    """Has the text twice in its body, so that no template can be made."""

    def encode(self, turn: Turn) -> HttpRequest:
        return super().encode(msgspec.structs.replace(turn, extra={**turn.extra, "again": turn.text}))


def encoder(tmp_path: Path, endpoint: Endpoint[None]) -> Encoder:
    return Encoder(sample_plan(tmp_path, models=("m", "n")), endpoint, None)


def one(text: str, **changes: Any) -> Conversation:
    return Conversation(f"c {text}", (Turn((text,), **changes),))


TEXTS = ["first", "second", "m", "said", "", ' "\\\n\x00\u2028é\U0001f600', "c first", "a" * 10_000, "first"]
CONVERSATIONS = [
    *(one(text) for text in TEXTS),
    *(one(text, max_tokens=length) for text in TEXTS for length in (3, 4)),
    *(one(text, extra={"m": text}) for text in TEXTS),
    *(one(text, model="own") for text in TEXTS),
    *(one(text, headers={"X-Row": str(len(text))}) for text in TEXTS),
    *(one(text, media=(Media("image", "http://a/b"),)) for text in TEXTS),
    *(one(text, payload={"is": text}) for text in TEXTS),
    *(Conversation("c", (Turn((text,)),), system="first", context=text) for text in TEXTS),
    *(Conversation("c", (Turn((text,)), Turn(("first",)))) for text in TEXTS),
    *(Conversation("c", (Turn((text, "first")),)) for text in TEXTS),
]


@pytest.mark.parametrize("endpoint", [Promises, Doubles])
def test_requests_are_those_of_the_endpoint(tmp_path: Path, endpoint: type[Plain]) -> None:
    spliced = encoder(tmp_path, endpoint())
    whole = type("Whole", (endpoint,), {"splices_text": False})()
    for conversation in CONVERSATIONS * 2:
        assert spliced.requests(conversation) == encoder(tmp_path, whole).requests(conversation)


def test_an_endpoint_encodes_one_turn_of_each_kind_and_some_checks(tmp_path: Path) -> None:
    endpoint = Promises()
    spliced = encoder(tmp_path, endpoint)
    for number in range(1000):
        spliced.requests(one(f"text {number}"))
    assert endpoint.encoded <= 2 * (2 + 10)  # for both models: two to learn from, and each check


def test_without_the_promise_every_turn_is_encoded(tmp_path: Path) -> None:
    endpoint = Plain()
    asked = encoder(tmp_path, endpoint)
    for number in range(100):
        asked.requests(one(f"text {number}"))
    assert endpoint.encoded == 200


def test_turns_of_ever_new_kinds_are_encoded_once(tmp_path: Path) -> None:
    endpoint = Promises()
    spliced = encoder(tmp_path, endpoint)
    for number in range(1000):
        spliced.requests(one("text", extra={"row": number}))
    assert endpoint.encoded <= 2 * (1000 + 100)


def test_a_broken_promise_is_an_error(tmp_path: Path) -> None:
    spliced = encoder(tmp_path, Shouts())
    with pytest.raises(PluginError, match="promises splices_text"):
        for number in range(3):
            spliced.requests(one(f"!text {number}" if number else "text"))


def test_a_turn_with_media_is_no_template_and_has_none() -> None:
    """Each has others, and a template would keep them."""
    templates = Templates("the endpoint")
    plain = Conversation("c", (Turn(("Hi",)),))
    assert templates.of(plain)[0] is not None
    assert templates.of(Conversation("c", (Turn(("Hi",), (Media("image", "data:,"),)),))) == (None, None)
