"""The inference protocol of KServe, version 2: input tensors out, the texts of an output tensor in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.asking import Ask
from aiperf.sdk.endpoint import Prompt, Reader
from aiperf.sdk.transport import END_MARKER
from aiperf_dialects.growing import GrowingText
from aiperf_dialects.prompts import prompt_of
from aiperf_rpc.calls import CONTENT_TYPE, check_status

from aiperf_endpoint_kserve import asking, json_form
from aiperf_endpoint_kserve.asking import SERVICE
from aiperf_endpoint_kserve.options import KserveOptions
from aiperf_endpoint_kserve.tensors import Listed, tensor, tensors_of

log = logging.getLogger(f"aiperf.{__name__}")
"""Below the kernel's logger, whose lines stand in the log of the run."""
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
        schemes={"grpc": "http2", "grpcs": "http2", "http": "", "https": "", "unix": "http2"}, url="grpc://localhost:8001",
    )  # fmt: skip
    plain_prompts = True
    takes_back = True

    def __init__(self, options: KserveOptions | None = None) -> None:
        super().__init__(options or KserveOptions())
        self._known: dict[str, dict[str, Listed]] = {}
        self._told: set[tuple[str, str]] = set()

    def prepare(self, ask: Ask) -> dict[str, Any] | None:
        """The inputs of each model that tells them: name, datatype and shape."""
        found = {model: asking.inputs_of(ask, model, self.options.output_tensor) for model in ask.models}
        return {
            model: {name: [listed.datatype, [*listed.shape]] for name, listed in inputs.items()}
            for model, inputs in found.items() if inputs is not None
        }  # fmt: skip

    def unready(self, ask: Ask) -> str | None:
        return asking.unready(ask)

    def _inputs(self, model: str) -> Mapping[str, Listed] | None:
        """The inputs of a model; None where they are unknown."""
        told = (self.prepared or {}).get(model)
        if told is None:
            return None
        known = self._known.get(model)
        if known is None:
            known = self._known[model] = {name: Listed(datatype, tuple(shape)) for name, (datatype, shape) in told.items()}
        return known

    def _leave_out(self, names: Sequence[str], model: str) -> None:
        new = [name for name in names if (model, name) not in self._told]
        if new:
            self._told.update((model, name) for name in new)
            log.warning("the model %r has no input %s: it is left out of the requests", model, ", ".join(new))

    def encode(self, turn: Turn) -> HttpRequest:
        options, inputs = self.options, self._inputs(turn.model)
        tensors = tensors_of(turn, options.backend, deterministic=options.deterministic)
        if inputs is not None:
            self._leave_out([name for name in tensors if name not in inputs], turn.model)
        made = [tensor(name, value, inputs) for name, value in tensors.items() if inputs is None or name in inputs]
        if turn.scheme.startswith("http"):
            path = json_form.INFER_STREAM if turn.stream else json_form.INFER
            return HttpRequest(path, json_form.body(made))
        from aiperf_endpoint_kserve import proto_form  # not in workers

        path = self.path(streaming=turn.stream)
        return HttpRequest(path, proto_form.body(turn.model, made), content_type=CONTENT_TYPE)

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
