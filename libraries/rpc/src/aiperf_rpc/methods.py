"""Methods of services by their descriptors, and their messages as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FileDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

_USUAL = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers", "descriptor")
"""Files of protocol buffers that sets leave out now and then: ``google/protobuf/any.proto`` and so on."""


class MethodError(ValueError):
    """The descriptors can't be used, or have no such method, or a message isn't of its type; the text is a sentence."""


class Method:
    """One method.  path: of its calls.  several_in, several_out: it takes, it gives a stream."""

    def __init__(self, pool: DescriptorPool, service: str, name: str, asked: Descriptor, answer: Descriptor) -> None:
        self.path = f"/{service}/{name}"
        self.several_in = self.several_out = False
        self._pool, self.asked, self.answer = pool, asked.full_name, answer.full_name
        self._asked, self._answer = GetMessageClass(asked), GetMessageClass(answer)

    def encoded(self, value: dict[str, Any]) -> bytes:
        """A message to the server, from its JSON form.

        Raises:
            MethodError: It isn't of the type.
        """
        try:
            message = json_format.ParseDict(value, self._asked(), descriptor_pool=self._pool)
        except (json_format.ParseError, ValueError, TypeError) as error:
            raise MethodError(f"no {self.asked}: {_first_line(error)}") from error
        return message.SerializeToString(deterministic=True)

    def checked(self, data: bytes) -> bytes:
        """A serialized message to the server, as it is.

        Raises:
            MethodError: It isn't of the type.
        """
        try:
            self._asked.FromString(data)
        except DecodeError as error:
            raise MethodError(f"no {self.asked}") from error
        return data

    def text_of(self, data: bytes) -> str:
        """An answer as JSON in one line.

        Raises:
            MethodError: The bytes are none.
        """
        try:
            message: Message = self._answer.FromString(data)
        except DecodeError as error:
            raise MethodError(f"no {self.answer}") from error
        return json_format.MessageToJson(message, indent=None, descriptor_pool=self._pool)


def read_set(data: bytes) -> list[FileDescriptorProto]:
    """The files of a serialized FileDescriptorSet.

    Raises:
        MethodError: It is none.
    """
    try:
        files = list(FileDescriptorSet.FromString(data).file)
    except DecodeError as error:
        raise MethodError("it is no serialized FileDescriptorSet") from error
    if not files or not all(file.name for file in files):
        raise MethodError("it has no descriptors of files")
    return files


def set_of(files: Iterable[FileDescriptorProto]) -> bytes:
    """A serialized FileDescriptorSet of these files."""
    return FileDescriptorSet(file=files).SerializeToString(deterministic=True)


def method_of(files: Iterable[FileDescriptorProto], name: str) -> Method:
    """The method ``package.Service/Method``.

    Raises:
        MethodError: A file's imports are missing, or nothing is called so: with what is called nearly so.
    """
    pool, added = _pooled(files)
    services = {service.full_name: service for file in added for service in file.services_by_name.values()}
    wanted, _, method_name = name.partition("/")
    service = services.get(wanted)
    if service is None:
        raise MethodError(f"there is no service {wanted!r}, but {near(wanted, services)}")
    methods = service.methods_by_name
    if method_name not in methods:
        raise MethodError(f"the service {wanted!r} has no method {method_name!r}, but {near(method_name, methods)}")
    return _made(pool, service, method_name)


def _made(pool: DescriptorPool, service: ServiceDescriptor, name: str) -> Method:
    found = service.methods_by_name[name]
    method = Method(pool, service.full_name, name, found.input_type, found.output_type)
    method.several_in, method.several_out = found.client_streaming, found.server_streaming
    return method


def _pooled(files: Iterable[FileDescriptorProto]) -> tuple[DescriptorPool, list[FileDescriptor]]:
    """A pool with the files, each behind those that it imports."""
    pool, waiting = DescriptorPool(), {file.name: file for file in files}
    added: list[FileDescriptor] = []
    begun: set[str] = set()

    def add(name: str, by: str) -> None:
        if name in begun:
            return
        begun.add(name)
        file = waiting.get(name) or _usual(name)
        if file is None:
            raise MethodError(f"the file {by!r} imports {name!r}, which is missing (protoc --include_imports)")
        for imported in file.dependency:
            add(imported, name)
        try:
            pool.Add(file)
            added.append(pool.FindFileByName(name))
        except (TypeError, KeyError) as error:
            raise MethodError(f"the file {name!r} can't be used: {_first_line(error)}") from error

    for name in waiting:
        add(name, name)
    return pool, added


def _usual(name: str) -> FileDescriptorProto | None:
    """A file that comes with protocol buffers."""
    stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if stem not in _USUAL:
        return None
    described = import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR
    return FileDescriptorProto.FromString(described.serialized_pb)


def near(name: str, known: Iterable[str]) -> str:
    """Names that are nearly this one; else the first ones."""
    known = sorted(known)
    near = get_close_matches(name, known, 3, 0.5) or list(_by_end(name, known)) or known[:5]
    return ", ".join(near) if near else "none at all"


def _by_end(name: str, known: Iterable[str]) -> Iterator[str]:
    """Names that end like this one, as those of another package do."""
    last = name.rpartition(".")[2].lower()
    return (each for each in known if each.rpartition(".")[2].lower() == last)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


__all__ = ["Method", "MethodError", "method_of", "near", "read_set", "set_of"]
