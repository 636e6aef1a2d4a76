"""A stand-in for the library, with the published names that this package uses and no others: for tests.

The name of the model's directory says what it does: ``silence`` never answers, ``break`` fails behind the first ids, any other
answers.  It writes its calls into the file ``calls`` there.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class SamplingParams:
    def __init__(
        self, *, max_tokens: int = 32, min_tokens: int | None = None, end_id: int | None = None, pad_id: int | None = None,
        detokenize: bool = True, temperature: float | None = None,
    ) -> None:  # fmt: skip
        self.max_tokens, self.min_tokens, self.end_id, self.pad_id = max_tokens, min_tokens, end_id, pad_id
        self.detokenize, self.temperature = detokenize, temperature


class _Result:
    """What ``generate_async`` returns: iterated with ``async for``, and aborted."""

    def __init__(self, behaviour: str, ids: list[int], parameters: SamplingParams) -> None:
        self._behaviour, self._ids, self._parameters = behaviour, ids, parameters
        self._aborted = asyncio.Event()

    def abort(self) -> None:
        self._aborted.set()

    async def __aiter__(self) -> Any:
        if self._behaviour == "silence":
            await self._aborted.wait()
            return
        count, given = self._parameters.max_tokens, list[int]()
        for number in range(count):
            if self._aborted.is_set():
                return
            due = time.monotonic() + 0.002
            while time.monotonic() < due:  # timers of a loop may fire up to 1 ms early
                await asyncio.sleep(0.001)
            given = [*given, self._ids[number % len(self._ids)] if self._ids else number]
            last = number == count - 1
            reason = "length" if last else None
            yield SimpleNamespace(outputs=[SimpleNamespace(token_ids=given, finish_reason=reason)], finished=last)
            if self._behaviour == "break":
                raise RuntimeError("the engine has died")


class LLM:
    def __init__(self, model: str) -> None:
        if not Path(model).is_dir():
            raise FileNotFoundError(f"{model} has no engine")
        self._behaviour = Path(model).name
        self._calls = Path(model) / "calls"

    def generate_async(self, inputs: list[int], sampling_params: SamplingParams, streaming: bool = False) -> _Result:
        with self._calls.open("a") as file:
            file.write(f"{len(inputs)} {sorted(vars(sampling_params).items())} {streaming}\n")
        return _Result(self._behaviour, inputs, sampling_params)

    def shutdown(self) -> None:
        with self._calls.open("a") as file:
            file.write("shutdown\n")
