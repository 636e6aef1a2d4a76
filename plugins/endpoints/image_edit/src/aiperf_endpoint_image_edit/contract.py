"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_image_edit import ImageEdit


class ImageEditContract(EndpointContract):
    endpoint = ImageEdit()
    transcript = (
        b'{"type":"image_edit.partial_image","partial_image_index":0,"b64_json":"iVBO","size":"512x512"}',
        b'{"type":"image_edit.completed","b64_json":"iVBORw0K","usage":{"input_tokens":4,"output_tokens":9}}',
    )
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"input_tokens": 4, "output_tokens": 9}
    numbers: ClassVar[dict[str, float] | None] = {"made_images": 1.0}
    whole = b'{"created":1,"data":[{"b64_json":"iVBORw0K"}],"usage":{"input_tokens":4,"output_tokens":9}}'
    silent = (b'{"data":[]}', b'{"type":"image_edit.in_progress"}')
