"""A model for MLServer that answers a text word by word, or at once.  It runs in MLServer's own environment, without aiperf."""

# mypy: ignore-errors

import asyncio
from collections.abc import AsyncIterator

from mlserver import MLModel
from mlserver.codecs import StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

FIRST_S, NEXT_S, WORDS = 0.05, 0.01, 8


class Echo(MLModel):
    async def load(self) -> bool:
        return True

    def words_of(self, request):
        """As many words of the text as ``max_tokens`` says."""
        inputs = {each.name: each for each in request.inputs}
        words = StringCodec.decode_input(inputs["text_input"])[0].split() or ["word"]
        count = int(next(iter(inputs["max_tokens"].data))) if "max_tokens" in inputs else WORDS
        return [words[place % len(words)] for place in range(count)]

    def answer(self, request, text):
        return InferenceResponse(
            model_name=self.name, id=request.id, outputs=[StringCodec.encode_output("text_output", [text])]
        )

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        words = self.words_of(payload)
        await asyncio.sleep(FIRST_S + NEXT_S * len(words))
        return self.answer(payload, " ".join(words))

    async def predict_stream(self, payloads: AsyncIterator[InferenceRequest]) -> AsyncIterator[InferenceResponse]:
        async for payload in payloads:
            for place, word in enumerate(self.words_of(payload)):
                await asyncio.sleep(NEXT_S if place else FIRST_S)
                yield self.answer(payload, (" " if place else "") + word)
