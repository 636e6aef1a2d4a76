"""The {{ cookiecutter.name }} data set: repeatable, and fit for the endpoint."""

from __future__ import annotations

import re

from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


def made(entries: int, seed: int, *, multi_turn: bool = True) -> {{ cookiecutter.__class }}:
    can = Capabilities(path="/chat", multi_turn=multi_turn)
    return {{ cookiecutter.__class }}(None, DatasetContext(entries, seed, seeded=True, tokenizer=None, capabilities=can))


class TestItKeepsTheContract(DatasetContract):
    def make(self, entries: int, seed: int) -> {{ cookiecutter.__class }}:
        return made(entries, seed)


def test_every_conversation_asks_for_a_sum() -> None:
    for conversation in made(20, 3):
        assert re.fullmatch(r"What is \d+ \+ \d+\?", conversation.turns[0].text)


def test_an_endpoint_without_a_history_is_asked_once() -> None:
    assert [len(each.turns) for each in made(3, 3, multi_turn=False)] == [1, 1, 1]
