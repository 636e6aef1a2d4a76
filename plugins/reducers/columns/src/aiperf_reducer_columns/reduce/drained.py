"""Answers whose bytes nobody kept: what the endpoint makes of their start and their number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiperf.parts.loading import why
from aiperf.parts.segments import Read
from aiperf.sdk.endpoint import Drained
from aiperf.sdk.errors import ENDPOINT_ERROR, BadResponse
from aiperf.sdk.model import Delta

from aiperf_reducer_columns.reduce.answer import Answer, add_delta


def read_drained(reads: Sequence[Read], received: int | None, drained: Callable[[bytes, int], Drained]) -> Answer:
    """A drained answer.  *reads*: those that brought its start, and the last one, without bytes.  *received*: the number of its
    bytes, None where it isn't known.  *drained*: the endpoint's.

    Its content came at two instants, if any: with the read that brought its first byte, and with the last one.
    """
    start, answer = b"".join([read[3] for read in reads]), Answer(whole=True)
    try:
        said = drained(start, len(start) if received is None else received)
        if not isinstance(said, Drained) or not isinstance(said.delta, Delta | None):
            raise TypeError(f"drained returned {said!r:.80}, not Drained")
    except BadResponse as error:
        answer.error = error
        return answer
    except Exception as error:  # noqa: BLE001  # code of a plugin
        answer.error = BadResponse(f"the endpoint can't read the answer: {why(error)}", kind=ENDPOINT_ERROR)
        return answer
    last_ns = max(read[0] for read in reads)
    add_delta(answer, said.delta, last_ns)
    first_ns = _brought(reads, said.begins)
    if answer.stamps and first_ns < last_ns:
        answer.stamps.insert(0, first_ns)
        answer.kinds *= 2
        answer.first_output_ns = first_ns
    return answer


def _brought(reads: Sequence[Read], place: int) -> int:
    """The stamp of the read that brought the byte at *place*; of the last one where none of those that were kept did."""
    for read in reads:
        if place < len(read[3]):
            return read[0]
        place -= len(read[3])
    return reads[-1][0]
