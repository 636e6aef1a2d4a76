"""A service in all four kinds of call, for clients of gRPC; and what such clients ask: health checks and reflection.

Both versions of reflection know the services of this server, and have the same messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from aiperf_http2.grpc import framed
from aiperf_rpc.pool import DecodeError, FileDescriptor
from aiperf_rpc.protos import echo, health, kserve, reflection

from aiperf_command_simulate.dialect import Page, Reply
from aiperf_command_simulate.http1 import Request
from aiperf_command_simulate.talks import Talk

if TYPE_CHECKING:
    from aiperf_command_simulate.server import Server

SERVICE = "/aiperf.simulate.Echo"
NOT_FOUND = 5
"""The ``error_code`` of a symbol that nobody knows."""
_FILES = {
    "kserve.proto": kserve.DESCRIPTOR, "echo.proto": echo.DESCRIPTOR, "health.proto": health.DESCRIPTOR,
    "reflection.proto": reflection.DESCRIPTOR,
}  # fmt: skip


def _read(message: bytes) -> echo.Said:
    """
    Raises:
        ValueError: It is none.
    """
    try:
        return echo.Said.FromString(message)
    except DecodeError as error:
        raise ValueError("the message is no Said") from error


class _Once(Talk):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/Once",)

    def end(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        if len(messages) != 1:
            raise ValueError(f"the call has {len(messages)} messages, and takes one")
        return [_read(messages[0]).SerializeToString()]


class _Down(Talk):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/Down",)

    def end(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        if len(messages) != 1:
            raise ValueError(f"the call has {len(messages)} messages, and takes one")
        said = _read(messages[0])
        texts = [said.text] * said.times if said.times else said.text.split()
        return [echo.Said(text=text, number=number).SerializeToString() for number, text in enumerate(texts)]


class _Up(Talk):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/Up",)

    def end(self, messages: Sequence[bytes]) -> Sequence[bytes]:
        texts = [_read(message).text for message in messages]
        return [echo.Said(text=" ".join(texts), number=len(texts)).SerializeToString()]


class _Both(Talk):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/Both",)

    def message(self, message: bytes) -> Sequence[bytes]:
        return [_read(message).SerializeToString()]


class _Health(Page):
    method = "POST"
    paths: ClassVar[tuple[str, ...]] = ("/grpc.health.v1.Health/Check",)

    def answer(self, request: Request, server: Server) -> Reply:
        try:
            service = health.HealthCheckRequest.FromString(request.body).service
        except DecodeError:
            return Reply(400, b"the message is no HealthCheckRequest")
        if service and service not in _services():
            return Reply(404, b"the service is unknown")
        status = health.HealthCheckResponse(status=health.HealthCheckResponse.SERVING)
        return Reply(body=framed(status.SerializeToString()))


def _services() -> list[str]:
    """The full names of the server's services."""
    return [service.full_name for file in _FILES.values() for service in file.services_by_name.values()]


class _Reflection(Page):
    method = "POST"
    paths: ClassVar[tuple[str, ...]] = tuple(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo" for version in ("v1", "v1alpha")
    )
    each = True

    def answer(self, request: Request, server: Server) -> Reply:
        try:
            asked = reflection.ServerReflectionRequest.FromString(request.body)
        except DecodeError:
            return Reply(400, b"the message is no ServerReflectionRequest")
        told = reflection.ServerReflectionResponse(valid_host=asked.host, original_request=asked)
        kind = asked.WhichOneof("message_request")
        if kind == "list_services":
            for name in _services():
                told.list_services_response.service.add(name=name)
        else:
            file = _FILES.get(asked.file_by_filename) if kind == "file_by_filename" else _file_of(asked.file_containing_symbol)
            if file is None:
                told.error_response.error_code = NOT_FOUND
                told.error_response.error_message = "not found"
            else:
                told.file_descriptor_response.file_descriptor_proto.append(file.serialized_pb)
        return Reply(body=framed(told.SerializeToString()))


def _file_of(symbol: str) -> FileDescriptor | None:
    """The file that defines a service, a method or a message."""
    for file in _FILES.values():
        package = f"{file.package}."
        names = {*file.services_by_name, *file.message_types_by_name, *file.enum_types_by_name}
        if symbol.startswith(package) and symbol.removeprefix(package).partition(".")[0] in names:
            return file
    return None


ROUTES = (_Once(), _Down(), _Up(), _Both(), _Health(), _Reflection())
