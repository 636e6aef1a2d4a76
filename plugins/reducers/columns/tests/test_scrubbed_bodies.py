"""Bodies of failed requests: without secrets, and not longer than need be."""

from __future__ import annotations

from pathlib import Path

import msgspec
from aiperf.rundir import journal
from aiperf_reducer_columns.reduce.batches import read_batches
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.reduce.request_errors import ERROR_CHARACTERS
from aiperf_testing.journals import CLOCK, Recording

KEY = "sk-0123456789"
MS = 1_000_000


def test_a_body_is_scrubbed_before_it_is_shortened(tmp_path: Path) -> None:
    made = Recording(tmp_path)
    made.sent(0, MS, due_ns=-1)
    made.read(0, 5 * MS, b"x" * (ERROR_CHARACTERS - 4) + KEY.encode())
    made.done(0, 6 * MS, status=500, outcome=journal.ERROR)
    made.flush(7 * MS)
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK, secret_texts=(KEY,)).finish()
    ((batch, _),) = read_batches(made.journal / "columns-0.0")
    message = msgspec.json.decode(batch.errors[0])["message"]
    assert message.startswith("x" * (ERROR_CHARACTERS - 4) + "<red… (")
