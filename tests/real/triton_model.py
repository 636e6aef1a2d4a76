"""A Triton Inference Server with one model, ``echo``, which answers a text word by word.

Words: HTTP port, folder for its files.
gRPC has the next port, the metrics the one after it.  It runs in Triton's own environment, without aiperf.
"""

# mypy: ignore-errors

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
    """A word at a time, as many as ``max_tokens`` says."""
    request = requests[0]
    words = np.ravel(request["text_input"])[0].decode().split() or ["word"]
    count = request.data.get("max_tokens")
    for place in range(WORDS if count is None else int(np.ravel(count)[0])):
        time.sleep(NEXT_S if place else FIRST_S)
        word = (" " if place else "") + words[place % len(words)]
        yield [{"text_output": np.array([word.encode()], dtype=object)}]


config = TritonConfig(
    http_address="127.0.0.1", http_port=PORT, grpc_address="127.0.0.1", grpc_port=PORT + 1, metrics_address="127.0.0.1",
    metrics_port=PORT + 2, allow_gpu_metrics=False,
)  # fmt: skip
with Triton(config=config, workspace=str(FOLDER / f"workspace-{PORT}")) as triton:
    triton.bind(
        model_name="echo",
        infer_func=[say] * 4,
        inputs=[
            Tensor(name="text_input", dtype=bytes, shape=(1,)),
            Tensor(name="max_tokens", dtype=np.int32, shape=(1,), optional=True),
            Tensor(name="stream", dtype=np.bool_, shape=(1,), optional=True),
        ],
        outputs=[Tensor(name="text_output", dtype=bytes, shape=(1,))],
        config=ModelConfig(batching=False, decoupled=True),
    )
    triton.serve()
