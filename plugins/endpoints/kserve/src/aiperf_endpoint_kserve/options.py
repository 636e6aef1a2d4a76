"""Options of the endpoint type."""

from __future__ import annotations

from typing import Literal

from aiperf import Options, option

GROUP = "KServe endpoint"


class KserveOptions(Options):
    backend: Literal["tensorrtllm", "vllm"] = option(
        "--backend", default="tensorrtllm", group=GROUP,
        help="Backend of the model behind Triton, which names the input tensors.",
    )  # fmt: skip
    deterministic: bool = option(
        "--output-tokens-mean-deterministic", default=False, group=GROUP,
        help="Send the output length as the minimum, too, so that an answer has exactly that length.",
    )  # fmt: skip
    output_tensor: str | None = option(
        "--output-tensor", group=GROUP, metavar="NAME",
        help="Output tensor with the answer's text.  Also --extra-inputs output_tensor:NAME.",
        shown="text_output, else the first of texts",
    )  # fmt: skip
