"""The {{ cookiecutter.name }} definitions: latency a token over the whole request, time base from send to end."""

from __future__ import annotations

import numpy as np
from aiperf import Definition, Readings, RecordBatch


class {{ cookiecutter.__class }}(Definition):
    """Say where the definition is read from, and of which version: somebody will compare your numbers with the tool's."""

    title = "{{ cookiecutter.name }}"
    version = "0.1.0"
    source = "the README of {{ cookiecutter.__distribution }}"
    differs = "A token's time includes its share of the wait for the first."

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid)
        tokens = good["output_tokens"]
        took_ns = good["last_token_ns"] - good["started_ns"]
        a_token_ns = np.divide(took_ns, tokens, out=np.full(len(good), np.nan), where=tokens >= 1)
        return Readings(
            ttft_ns=good["first_token_ns"] - good["started_ns"],
            itl_ns=a_token_ns,
            tpot_ns=a_token_ns,
            requests=len(good),
            tokens=float(np.nansum(tokens)),
            begin_ns=float(np.nanmin(good["started_ns"])) if len(good) else float("nan"),
            end_ns=float(np.nanmax(good["ended_ns"])) if len(good) else float("nan"),
        )
