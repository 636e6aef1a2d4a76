"""The inference protocol of KServe, version 2: input tensors out, the texts of an output tensor in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt, Reader
from aiperf.sdk.transport import END_MARKER
from aiperf_dialects.growing import GrowingText
from aiperf_dialects.prompts import prompt_of
from aiperf_rpc.calls import CONTENT_TYPE, check_status

from aiperf_endpoint_kserve import json_form
from aiperf_endpoint_kserve.options import KserveOptions
from aiperf_endpoint_kserve.tensors import tensors_of

SERVICE = "/inference.GRPCInferenceService"
_JSON = frozenset(b'{[<" \t\r0123456789-tfn')
"""First bytes of JSON, and of pages; a message of the protocol begins with another."""


class KserveReader(Reader):
    """Reads one answer, of JSON or of messages: its first byte tells."""

    def __init__(self, wanted: str | None) -> None:
        self._wanted = wanted
        self._text = GrowingText()
        self._texts: Callable[[bytes], str | None] | None = None

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        return [self._delta(event) for event in events]

    def _delta(self, event: bytes) -> Delta | None:
        if not event or event == END_MARKER:
            return None
        read = self._texts
        if read is None:
            read = self._texts = self._form(event)
        text = read(event)
        return None if text is None else Delta(self._text.new(text))

    def _form(self, event: bytes) -> Callable[[bytes], str | None]:
        if event[0] in _JSON:
            return self._of_json
        from aiperf_endpoint_kserve.proto_form import MessageTexts  # not in workers

        return MessageTexts(self._wanted)

    def _of_json(self, event: bytes) -> str | None:
        return json_form.text_of(event, self._wanted)

    def choices(self) -> Sequence[Delta] | None:
        """The answer's text, where a part of it was taken back."""
        return [Delta(self._text.whole or "")] if self._text.took_back else None


class Kserve(Endpoint[KserveOptions]):
    """gRPC: ``ModelInfer``, streamed ``ModelStreamInfer``.  HTTP: ``/v2/models/MODEL/infer``, streamed ``…/infer_stream``."""

    capabilities = Capabilities(
        path=f"{SERVICE}/ModelInfer", streaming_path=f"{SERVICE}/ModelStreamInfer", streaming=True, produces_tokens=True,
        tokenizes_input=True, takes=("output_tensor",), service_kind="triton",
        schemes={"grpc": "http2", "grpcs": "http2", "http": "", "https": ""}, url="grpc://localhost:8001",
    )  # fmt: skip
    plain_prompts = True
    takes_back = True

    def __init__(self, options: KserveOptions | None = None) -> None:
        super().__init__(options or KserveOptions())

    def encode(self, turn: Turn) -> HttpRequest:
        options = self.options
        tensors = tensors_of(turn, options.backend, deterministic=options.deterministic, inputs=None)
        if turn.scheme.startswith("http"):
            path = json_form.INFER_STREAM if turn.stream else json_form.INFER
            return HttpRequest(path, json_form.body(tensors))
        from aiperf_endpoint_kserve import proto_form  # not in workers

        path = self.path(streaming=turn.stream)
        return HttpRequest(path, proto_form.body(turn.model, tensors), content_type=CONTENT_TYPE)

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        if request.body[:1] == b"{":
            return prompt_of(request.body)
        from aiperf_endpoint_kserve import proto_form

        texts = proto_form.prompt_texts(request.body)
        return None if texts is None else Prompt(texts)

    def reader(self) -> KserveReader:
        return KserveReader(self.options.output_tensor)

    def trailers(self, trailers: Mapping[str, str]) -> Delta | None:
        check_status(trailers)
        return None
