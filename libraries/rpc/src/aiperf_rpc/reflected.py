"""The descriptors of a service, asked of its server (reflection, v1, then v1alpha)."""

from __future__ import annotations

from typing import Any

from aiperf import HttpRequest
from aiperf.sdk.asking import Ask, AskError
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from aiperf_rpc.calls import CONTENT_TYPE, UNIMPLEMENTED
from aiperf_rpc.methods import MethodError, near
from aiperf_rpc.pool import DecodeError
from aiperf_rpc.protos.reflection import ServerReflectionRequest, ServerReflectionResponse

_VERSIONS = ("v1", "v1alpha")
_MOST_FILES = 2000
"""Files that one service may need."""


class NoReflectionError(MethodError):
    """The server has no reflection, in neither version."""


def reflected(ask: Ask, service: str) -> list[FileDescriptorProto]:
    """The file of a service, and all that it imports.

    Raises:
        NoReflectionError: The server doesn't tell.
        MethodError: It knows no such service; the sentence has those that it knows.
        AskError: It gives no answer.
    """
    for version in _VERSIONS:
        try:
            return _files(ask, version, service)
        except AskError as error:
            if error.code not in UNIMPLEMENTED:
                raise
    raise NoReflectionError("the server has no reflection")


def _files(ask: Ask, version: str, service: str) -> list[FileDescriptorProto]:
    try:
        first = _asked(ask, version, file_containing_symbol=service)
    except LookupError:
        known = [each.name for each in _response(ask, version, list_services="").list_services_response.service]
        raise MethodError(f"there is no service {service!r}, but {near(service, known)}") from None
    files = {file.name: file for file in first}
    waiting = [name for file in first for name in file.dependency]
    while waiting and len(files) < _MOST_FILES:
        name = waiting.pop()
        if name in files:
            continue
        try:
            found = _asked(ask, version, file_by_filename=name)
        except LookupError:
            continue  # one that comes with protocol buffers; another one is told when it is used
        for file in found:
            files.setdefault(file.name, file)
            waiting += file.dependency
    return [*files.values()]


def _asked(ask: Ask, version: str, **question: str) -> list[FileDescriptorProto]:
    """
    Raises:
        LookupError: The server has no such file.
    """
    response = _response(ask, version, **question)
    if response.WhichOneof("message_response") != "file_descriptor_response":
        raise LookupError(response.error_response.error_message)
    try:
        return [FileDescriptorProto.FromString(data) for data in response.file_descriptor_response.file_descriptor_proto]
    except DecodeError as error:
        raise MethodError("the server's reflection gives no descriptors") from error


def _response(ask: Ask, version: str, **question: Any) -> ServerReflectionResponse:
    path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    message = ServerReflectionRequest(**question).SerializeToString()
    reply = ask(HttpRequest(path, message, content_type=CONTENT_TYPE))
    if not reply.messages:
        raise MethodError("the server's reflection gives no answer")
    try:
        return ServerReflectionResponse.FromString(reply.messages[0])
    except DecodeError as error:
        raise MethodError("the server's reflection gives another message") from error


__all__ = ["NoReflectionError", "reflected"]
