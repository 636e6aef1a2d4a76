"""Options of tokenizers from a hub."""

from __future__ import annotations

from aiperf.sdk.options import Options, option


class HuggingFaceOptions(Options):
    tokenizer_revision: str | None = option("--tokenizer-revision", group="Tokenizer", metavar="REV", shown="main",
        min_length=1, place="tokenizer.revision", help="Branch, tag or commit of a tokenizer from the hub.")
    tokenizer_trust_remote_code: bool = option("--tokenizer-trust-remote-code", default=False, group="Tokenizer",
        place="tokenizer.trust_remote_code", help="Let a tokenizer run the code that comes with it.")
