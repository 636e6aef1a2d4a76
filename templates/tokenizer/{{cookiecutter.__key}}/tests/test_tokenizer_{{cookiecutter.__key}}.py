"""The {{ cookiecutter.name }} tokenizer: text to bytes and back."""

from __future__ import annotations

import pytest
from aiperf import BadTokenizer
from aiperf.testing import TokenizerContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(TokenizerContract):
    tokenizer = {{ cookiecutter.__class }}().open("{{ cookiecutter.__word }}")


def test_a_character_of_two_bytes_is_two_tokens() -> None:
    assert {{ cookiecutter.__class }}().open("{{ cookiecutter.__key }}").encode("aß") == [97, 195, 159]


def test_another_name_is_refused() -> None:
    assert not {{ cookiecutter.__class }}().recognises("another")
    with pytest.raises(BadTokenizer, match="not 'another'"):
        {{ cookiecutter.__class }}().open("another")
