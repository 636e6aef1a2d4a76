"""Options of requests to an engine."""

from __future__ import annotations

from aiperf import Options, option

_GROUP = "TensorRT-LLM engine"


class EngineOptions(Options):
    deterministic: bool = option("--output-tokens-mean-deterministic", default=False, group="KServe endpoint",
        help="Send the output length as the minimum, too, so that an answer has exactly that length.")
    set_end_id: bool = option("--set-end-id", default=False, group=_GROUP,
        help="Send the tokenizer's id of the end; the engine otherwise takes its own.  Also --extra-inputs set_end_id:true.")
    apply_chat_template: bool = option("--engine-chat-template", default=False, group=_GROUP,
        help="Make ids in the model's chat template.  Also --extra-inputs apply_chat_template:true.")
