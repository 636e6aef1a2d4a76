"""A tokenizer with a chat template, as a directory of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TEMPLATE = "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}"


def write_tokenizer(folder: Path) -> None:
    """One token a byte: no other tokenizer counts so many."""
    pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    own = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    folder.mkdir(parents=True)
    own.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
