"""Options of tracelab files."""

from __future__ import annotations

from aiperf.sdk.options import option
from aiperf_traces.options import AgentTraceOptions

BLOCK_TOKENS = 64


class TracelabOptions(AgentTraceOptions):
    """Also the length of blocks, which the file doesn't have."""

    block_size: int = option("--prompt-input-tokens-block-size", "--synthetic-input-tokens-block-size", "--isl-block-size",
        default=BLOCK_TOKENS, ge=1, group="Prompt and answer length", metavar="TOKENS", place="dataset.prompts.block_size",
        help="Tokens of a block of prompts that rounds share.")
