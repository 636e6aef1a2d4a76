"""What endpoints of vectors share: inputs go out in a batch, a vector for each comes back.

Their ``items`` are vectors; ``dimensions`` is the length of those of an answer, which are of one length.

The names are in the package ``aiperf-endpoint-embeddings`` and loaded from there; a package that uses them declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = [
    "VECTOR_NUMBERS", "TextInputs", "count_inputs", "inputs_request", "read_embeddings", "vectors", "without_pictures",
]  # fmt: skip

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_endpoint_embeddings.vectors"))

if TYPE_CHECKING:
    from aiperf_endpoint_embeddings.vectors import (  # isort: skip
        VECTOR_NUMBERS, TextInputs, count_inputs, inputs_request, read_embeddings, vectors, without_pictures,
    )  # fmt: skip
