"""A Triton Inference Server with two models: ``echo`` answers a text word by word (decoupled), ``echo_once`` at once.

Both have the inputs of Triton's two backends for language models but one, ``min_length``.

Words: HTTP port, folder for its files.
gRPC has the next port, the metrics the one after it.  It runs in Triton's own environment, without aiperf.
"""

# mypy: ignore-errors

import json
import sys
import time
from pathlib import Path

import numpy as np
from pytriton.decorators import batch  # noqa: F401  # registers what models return
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
FIRST_S, NEXT_S, WORDS = 0.05, 0.01, 8


def say(requests):
    """A word at a time, as many as ``max_tokens`` says, or the JSON of ``sampling_parameters``."""
    request = requests[0]
    words = np.ravel(request["text_input"])[0].decode().split() or ["word"]
    count, sampling = request.data.get("max_tokens"), request.data.get("sampling_parameters")
    if count is None and sampling is not None:
        count = json.loads(np.ravel(sampling)[0]).get("max_tokens")
    for place in range(WORDS if count is None else int(np.ravel(count)[0])):
        time.sleep(NEXT_S if place else FIRST_S)
        word = (" " if place else "") + words[place % len(words)]
        yield [{"text_output": np.array([word.encode()], dtype=object)}]


def say_once(requests):
    """The same words in one answer."""
    words = [answers[0]["text_output"][0].decode() for answers in say(requests)]
    return [{"text_output": np.array(["".join(words).encode()], dtype=object)}]


config = TritonConfig(
    http_address="127.0.0.1", http_port=PORT, grpc_address="127.0.0.1", grpc_port=PORT + 1, metrics_address="127.0.0.1",
    metrics_port=PORT + 2, allow_gpu_metrics=False,
)  # fmt: skip
with Triton(config=config, workspace=str(FOLDER / f"workspace-{PORT}")) as triton:
    for name, function, decoupled in (("echo", say, True), ("echo_once", say_once, False)):
        triton.bind(
            model_name=name,
            infer_func=[function] * 4,
            inputs=[
                Tensor(name="text_input", dtype=bytes, shape=(1,)),
                Tensor(name="max_tokens", dtype=np.int32, shape=(1,), optional=True),
                Tensor(name="stream", dtype=np.bool_, shape=(1,), optional=True),
                Tensor(name="exclude_input_in_output", dtype=np.bool_, shape=(1,), optional=True),
                Tensor(name="sampling_parameters", dtype=bytes, shape=(1,), optional=True),
            ],
            outputs=[Tensor(name="text_output", dtype=bytes, shape=(1,))],
            config=ModelConfig(batching=False, decoupled=decoupled),
        )
    triton.serve()
