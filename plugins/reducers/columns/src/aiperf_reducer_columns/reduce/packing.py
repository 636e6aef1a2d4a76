"""Columns of numbers in few bytes: most of them are constant, or whole numbers within a small range."""

from __future__ import annotations

import msgspec
import numpy as np
from aiperf.sdk.columns import Floats
from msgspec import Struct

_RAW = 8
"""Bytes of a value that is not packed."""
_SMALL = {1: "<u1", 2: "<u2", 4: "<u4"}


class _Packed(Struct, array_like=True, frozen=True):
    """A table.  widths: bytes of a value, by column: 0 for a constant, 8 for float64, else of its difference to the column's
    base, where the greatest number is NaN.  bases: float64 by column.  data: the values, column by column."""

    count: int
    widths: bytes
    bases: bytes
    data: bytes


def pack(table: Floats) -> bytes:
    """The table, a row for each column; :func:`unpacked` gives the same numbers."""
    absent = np.isnan(table)
    missing, known = absent.any(axis=1), ~absent.all(axis=1)
    with np.errstate(invalid="ignore"):
        low, high = (reduce(table, axis=1, initial=np.nan) for reduce in (np.fmin.reduce, np.fmax.reduce))
        span = high - low
        whole = ((np.rint(table) == table) | absent).all(axis=1)
    widths = np.where(~known | ((span == 0) & ~missing), 0, _RAW)
    for width in (6, 4, 2, 1):
        widths[(widths > 0) & whole & (span < 256.0**width - 1)] = width
    data = []
    for at in np.flatnonzero(widths).tolist():
        width = int(widths[at])
        if width == _RAW:
            data.append(table[at].tobytes())
            continue
        values = np.where(absent[at], 256.0**width - 1, table[at] - low[at]).astype(np.uint64)
        if width in _SMALL:
            data.append(values.astype(_SMALL[width]).tobytes())
        else:
            data += [values.astype("<u4").tobytes(), (values >> np.uint64(32)).astype("<u2").tobytes()]
    packed = _Packed(table.shape[1], widths.astype(np.uint8).tobytes(), low.tobytes(), b"".join(data))
    return msgspec.msgpack.encode(packed)


def unpacked(data: bytes) -> Floats:
    """The table that was packed.

    Raises:
        msgspec.MsgspecError, ValueError: *data* is no packed table.
    """
    packed = msgspec.msgpack.decode(data, type=_Packed)
    bases, count, start = np.frombuffer(packed.bases), packed.count, 0
    table = np.repeat(bases[:, None], count, axis=1)

    def taken(kind: str) -> Floats:
        nonlocal start
        values = np.frombuffer(packed.data, kind, count, start)
        start += values.nbytes
        return values.astype(np.float64)

    for at, width in enumerate(packed.widths):
        if width == _RAW:
            table[at] = taken("<f8")
        elif width:
            values = taken(_SMALL[width]) if width in _SMALL else taken("<u4") + taken("<u2") * 2.0**32
            table[at] += np.where(values == 256.0**width - 1, np.nan, values)
    return table
