"""The tokenizer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import TokenizerContract

from aiperf_tokenizer_builtin import Builtin


class BuiltinContract(TokenizerContract):
    source = Builtin
    tokenizer = Builtin().open("builtin")
