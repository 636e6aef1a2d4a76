"""Options that scale a trace while it is read: ``--synthesis-*``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from aiperf import AiperfError, DatasetContext
from aiperf.sdk.options import Finite, Options, option

from aiperf_dataset_mooncake_trace.synthesis import Row, Scaling, Synthesis

log = logging.getLogger(__name__)

_GROUP = "Synthesis"


class SynthesisOptions(Options):
    speedup: Finite = option("--synthesis-speedup-ratio", default=1.0, gt=0, group=_GROUP, metavar="RATIO", shown="1",
        place="dataset.synthesis.speedup_ratio", help="Divide the times and delays of the trace by this.")
    prefix_length: Finite = option("--synthesis-prefix-len-multiplier", default=1.0, gt=0, group=_GROUP, metavar="FACTOR",
        shown="1", place="dataset.synthesis.prefix_len_multiplier", help="Multiply the blocks of shared prefixes.")
    prefix_roots: int = option("--synthesis-prefix-root-multiplier", default=1, ge=1, group=_GROUP, metavar="INT",
        place="dataset.synthesis.prefix_root_multiplier",
        help="Number of trees of prefixes that share nothing; a session, or a row without one, goes to any of them.")
    prompt_length: Finite = option("--synthesis-prompt-len-multiplier", default=1.0, gt=0, group=_GROUP, metavar="FACTOR",
        shown="1", place="dataset.synthesis.prompt_len_multiplier",
        help="Multiply the tokens of prompts behind their shared prefixes.")
    output_length: Finite = option("--synthesis-output-len-multiplier", default=1.0, ge=0, group=_GROUP, metavar="FACTOR",
        shown="1", place="dataset.synthesis.output_len_multiplier", help="Multiply the recorded answer lengths; at least 1.")
    max_isl: int | None = option("--synthesis-max-isl", ge=1, group=_GROUP, metavar="TOKENS", shown="no limit",
        place="dataset.synthesis.max_isl",
        help="Leave out recorded prompts that are longer, and cut synthesized ones to this.")
    max_osl: int | None = option("--synthesis-max-osl", ge=1, group=_GROUP, metavar="TOKENS", shown="no limit",
        place="dataset.synthesis.max_osl", help="Cut answer lengths to this.")

    @property
    def scaling(self) -> Scaling | None:
        """What the options ask for; None where they leave the trace as it is."""
        factors = self.speedup, self.prefix_length, self.prefix_roots, self.prompt_length, self.output_length
        scaling = Scaling(*factors, self.max_isl, self.max_osl)
        return None if scaling == Scaling() else scaling


def synthesized(
    options: SynthesisOptions, context: DatasetContext, read: Callable[[], Iterator[Row]],
    session_of: Callable[[dict[str, Any], int], str | None], block_tokens: int, wrong: Callable[[int, str], AiperfError],
) -> Callable[[], Iterator[Row]] | None:  # fmt: skip
    """What reads the rows that *options* make of those of *read*; None where they leave them as they are.

    The other arguments are those of :class:`Synthesis`.  Rows that are left out are counted in a warning.
    """
    scaling = options.scaling
    if scaling is None:
        return None
    synthesis = Synthesis(scaling, read, session_of, block_tokens, context.seed, wrong)
    if synthesis.dropped:
        count, limit = synthesis.dropped, scaling.max_isl
        log.warning("left out, because their prompts are longer than %d tokens: %d of the rows", limit, count)
    if synthesis.torn:
        log.warning("%s", synthesis.torn)
    return synthesis.rows
