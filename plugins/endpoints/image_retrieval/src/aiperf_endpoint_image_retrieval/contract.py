"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_image_retrieval import ImageRetrieval

ANSWER = (
    b'{"data":[{"index":0,"bounding_boxes":{"table":[{"x_min":0.1,"y_min":0.2,"x_max":0.4,"y_max":0.5,"confidence":0.9}]}}],'
    b'"usage":{"images_size_mb":0.1}}'
)


class ImageRetrievalContract(EndpointContract):
    endpoint = ImageRetrieval()
    transcript = (ANSWER,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"images_size_mb": 0.1}
    numbers: ClassVar[dict[str, float] | None] = {"items": 1.0}
    whole = ANSWER
    silent = (b'{"data":[]}',)
