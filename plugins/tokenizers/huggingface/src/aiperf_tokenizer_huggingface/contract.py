"""A small tokenizer file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf import Tokenizer
from aiperf.testing import TokenizerContract
from tokenizers import Tokenizer as Made
from tokenizers import decoders, models, pre_tokenizers

from aiperf_tokenizer_huggingface import HuggingFace

_TEMPLATE = (
    "{% for message in messages %}[{{ message.role }}]{{ message.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


class HuggingFaceContract(TokenizerContract):
    source = HuggingFace

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        made = Made(models.BPE(vocab={each: i for i, each in enumerate(alphabet)}, merges=[]))
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        made.save(str(tmp_path / "tokenizer.json"))
        about = {"eos_token": "</s>", "chat_template": _TEMPLATE}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
        self._path = tmp_path / "tokenizer.json"

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]  # made for each test, in its directory
        return HuggingFace().open(str(self._path))
