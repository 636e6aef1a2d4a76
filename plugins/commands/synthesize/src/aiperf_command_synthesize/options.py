"""Options of ``aiperf synthesize``."""

from __future__ import annotations

from pathlib import Path

from aiperf.sdk.options import Finite, Options, option

_SCALING, _AGENTS = "From a trace", "agentic-code"
OF_TRACES = {
    "input_file": "--input-file", "dataset_type": "--custom-dataset-type", "block_size": "--block-size",
    "speedup": "--speedup-ratio", "prefix_length": "--prefix-len-multiplier", "prefix_roots": "--prefix-root-multiplier",
    "prompt_length": "--prompt-len-multiplier", "output_length": "--output-len-multiplier",
}  # fmt: skip
"""Options that scale a trace."""
OF_AGENTS = {"num_sessions": "--num-sessions", "config": "--config"}
"""Options of the model of coding agents."""


class SynthesizeOptions(Options):
    input_file: Path | None = option("--input-file", metavar="FILE", help="The trace, instead of a word for it.")
    output: Path | None = option("--output", metavar="PATH", shown=". for agentic-code",
        help="File to write, compressed where its name ends in .gz; of agentic-code the directory for its folder.")
    seed: int = option("--seed", default=42, ge=0, metavar="INT", help="Root of every draw.")
    max_isl: int | None = option("--max-isl", ge=1, metavar="TOKENS", shown="no limit",
        help="Leave out prompts that are longer, and cut new ones to this.")
    max_osl: int | None = option("--max-osl", ge=1, metavar="TOKENS", shown="no limit", help="Cut answer lengths to this.")

    dataset_type: str | None = option("--custom-dataset-type", group=_SCALING, metavar="NAME", shown="the file tells",
        help="Format of the trace.")
    block_size: int | None = option("--block-size", ge=1, group=_SCALING, metavar="TOKENS",
        shown="the format's, mooncake_trace 512", help="Tokens that a hash id stands for.")
    speedup: Finite = option("--speedup-ratio", default=1.0, gt=0, group=_SCALING, metavar="RATIO", shown="1",
        help="Divide times and delays by this.")
    prefix_length: Finite = option("--prefix-len-multiplier", default=1.0, gt=0, group=_SCALING, metavar="FACTOR", shown="1",
        help="Multiply the blocks of shared prefixes.")
    prefix_roots: int = option("--prefix-root-multiplier", default=1, ge=1, group=_SCALING, metavar="INT",
        help="Number of trees of prefixes that share nothing; a session, or a row without one, goes to any of them.")
    prompt_length: Finite = option("--prompt-len-multiplier", default=1.0, gt=0, group=_SCALING, metavar="FACTOR", shown="1",
        help="Multiply the tokens of prompts behind their shared prefixes.")
    output_length: Finite = option("--output-len-multiplier", default=1.0, ge=0, group=_SCALING, metavar="FACTOR", shown="1",
        help="Multiply the recorded answer lengths; at least 1.")

    num_sessions: int = option("--num-sessions", default=1000, ge=1, group=_AGENTS, metavar="INT", help="Number of sessions.")
    config: str | None = option("--config", group=_AGENTS, metavar="FILE", shown="default",
        help="The built-in model, default, or the manifest.json of a data set that was made.")
