"""A small tokenizer file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import Tokenizer
from aiperf.testing import TokenizerContract
from tokenizers import Tokenizer as Made
from tokenizers import decoders, models, pre_tokenizers

from aiperf_tokenizer_huggingface import HuggingFace


class HuggingFaceContract(TokenizerContract):
    source = HuggingFace

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        made = Made(models.BPE(vocab={each: i for i, each in enumerate(alphabet)}, merges=[]))
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        made.save(str(tmp_path / "tokenizer.json"))
        self._path = tmp_path / "tokenizer.json"

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]  # made for each test, in its directory
        return HuggingFace().open(str(self._path))
