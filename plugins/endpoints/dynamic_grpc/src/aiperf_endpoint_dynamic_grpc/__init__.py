"""Any method of any gRPC service: messages of the data set out, every answer message a chunk."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aiperf import BadResponse, Capabilities, ConfigError, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.asking import Ask
from aiperf.sdk.endpoint import Reader
from aiperf.sdk.model import HIDDEN, Part
from aiperf_rpc.calls import CONTENT_TYPE, check_status

from aiperf_endpoint_dynamic_grpc.options import DynamicGrpcOptions

if TYPE_CHECKING:
    from aiperf_rpc.methods import Method

MOST_SHOWN_BYTES = 1 << 16
"""A longer answer message is counted, and not written as JSON."""


class CallReader(Reader):
    """Reads one call: each message is content, as JSON."""

    def __init__(self, method: Method | None) -> None:
        self._method = method
        self._messages = 0

    def feed(self, events: Sequence[bytes], names: Sequence[str | None]) -> Sequence[Delta | None]:
        self._messages += len(events)
        return [self._delta(event) for event in events]

    def _delta(self, event: bytes) -> Delta:
        if self._method is None or len(event) > MOST_SHOWN_BYTES:
            return Delta(items=1)
        from aiperf_rpc.methods import MethodError

        try:
            return Delta(f"{self._method.text_of(event)}\n", items=1)
        except MethodError as error:
            raise BadResponse(f"dynamic_grpc: {error}", raw=event) from error

    def close(self) -> Delta | None:
        """A call may have no answer at all; its latency then ends with its status."""
        return None if self._messages else Delta(reasoning=HIDDEN)


class DynamicGrpc(Endpoint[DynamicGrpcOptions]):
    """A method of ``--grpc-method``, in each of the four kinds of call."""

    capabilities = Capabilities(
        streaming=True, title="gRPC Metrics", service_kind="grpc", schemes={"grpc": "http2", "grpcs": "http2"},
        url="grpc://localhost:8001",
    )  # fmt: skip

    def __init__(self, options: DynamicGrpcOptions | None = None) -> None:
        super().__init__(options or DynamicGrpcOptions())
        self._found: Method | None = None

    @property
    def _name(self) -> str:
        """The method's name.

        Raises:
            ConfigError: None is given.
        """
        if self.options.grpc_method is None:
            sentence = "dynamic_grpc calls a method, and none is given"
            raise ConfigError(sentence, "name it with --grpc-method package.Service/Method")
        return self.options.grpc_method

    def path(self, *, streaming: bool) -> str:
        return "" if self.options.grpc_method is None else f"/{self.options.grpc_method}"

    def prepare(self, ask: Ask) -> dict[str, Any] | None:
        """The descriptors of the service: a FileDescriptorSet in base64.

        Raises:
            ConfigError: They can't be had, or have no such method.
        """
        from aiperf_endpoint_dynamic_grpc.descriptors import descriptors, named

        data = descriptors(ask, self._name, self.options.grpc_descriptors)
        named(data, self._name, "the server" if self.options.grpc_descriptors is None else str(self.options.grpc_descriptors))
        return {"descriptors": b64encode(data).decode()}

    def unready(self, ask: Ask) -> str | None:
        """By the health check of gRPC; a server without one is ready when it answers."""
        from aiperf_endpoint_dynamic_grpc.descriptors import unhealthy

        return unhealthy(ask)

    def method(self) -> Method:
        """The method, by its descriptors.

        Raises:
            ConfigError: They aren't known: in a dry run the server isn't asked.
        """
        if self._found is None:
            from aiperf_endpoint_dynamic_grpc.descriptors import described, named

            if self.prepared is not None:
                data, whose = b64decode(self.prepared["descriptors"]), "the server"
            elif self.options.grpc_descriptors is not None:
                data, whose = described(self.options.grpc_descriptors), str(self.options.grpc_descriptors)
            else:
                raise ConfigError(
                    "the descriptors of the service are unknown, because the server isn't asked", "give --grpc-descriptors FILE"
                )
            self._found = named(data, self._name, whose)
        return self._found

    def probe(self) -> Turn:
        """A call without content, where the method takes one."""
        return Turn(extra={"messages": [{}]}, row_extra={"messages": [{}]})

    def encode(self, turn: Turn) -> HttpRequest:
        from aiperf_rpc.methods import MethodError

        row = turn.row_extra
        place = f"{row['place']}: " if "place" in row else ""
        if "messages" not in row and "raw_messages" not in row:
            raise ConfigError(
                "dynamic_grpc sends the messages of a file, and the run has none",
                'give --input-file with rows such as {"messages": [{…}]}',
            )
        method = self.method()
        try:
            messages = [method.encoded({**turn.run_extra, **each}) for each in row.get("messages", ())]
            messages += [method.checked(b64decode(each)) for each in row.get("raw_messages", ())]
        except MethodError as error:
            raise ConfigError(f"{place}{error}", "each object of messages is the JSON form of the method's input") from error
        if len(messages) > 1 and not method.several_in:
            raise ConfigError(
                f"{place}the row has {len(messages)} messages, and {self._name} takes one", "write a row for each"
            )
        metadata = {name.lower(): value for name, value in row.get("metadata", {}).items()}
        waits = row.get("waits_ms") or [0] * len(messages)
        if len(messages) == 1 and not waits[0]:
            return HttpRequest(method.path, messages[0], metadata, CONTENT_TYPE)
        parts = tuple(Part(data, wait / 1e3) for data, wait in zip(messages, waits, strict=True))
        return HttpRequest(method.path, b"", metadata, CONTENT_TYPE, parts=parts)

    def reader(self) -> CallReader:
        known = self.prepared is not None or self.options.grpc_descriptors is not None
        return CallReader(self.method() if known else None)

    def trailers(self, trailers: Mapping[str, str]) -> Delta | None:
        check_status(trailers)
        return None
