"""The contracts of both plugins, with a stand-in for the library.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiperf.testing import EndpointContract, TransportContract

from aiperf_endpoint_tensorrtllm_engine import TensorrtllmEngine, standin
from aiperf_endpoint_tensorrtllm_engine.engine import EngineTransport


class EngineContract(EndpointContract):
    endpoint = TensorrtllmEngine()
    transcript = (
        b'{"output_ids":[5,9],"prompt_tokens":4,"finish":null}', b'{"output_ids":[2],"prompt_tokens":4,"finish":"length"}',
    )  # fmt: skip
    answer = ""
    usage = {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}
    silent = (b'{"output_ids":[],"prompt_tokens":4,"finish":null}',)


class EngineTransportContract(TransportContract):
    transport = EngineTransport
    body = b'{"input_ids":[7,8],"request_output_len":[3]}'

    @asynccontextmanager
    async def serve(self, behaviour: str) -> AsyncIterator[str]:
        known = sys.modules.get("tensorrt_llm")
        sys.modules["tensorrt_llm"] = standin
        try:
            with tempfile.TemporaryDirectory() as folder:
                (model := Path(folder) / behaviour).mkdir()
                yield f"engine://{model}"
        finally:
            if known is None:
                del sys.modules["tensorrt_llm"]
            else:
                sys.modules["tensorrt_llm"] = known
