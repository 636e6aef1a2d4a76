"""Message classes from descriptors, in pools of their own.

The pool that all packages share refuses a second file with the same messages; clients of servers bring such files.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass


def load(module: dict[str, Any], descriptor: bytes) -> None:
    """Add the message classes and the values of enums of a serialized file descriptor, which imports no other, to a module.

    ``DESCRIPTOR`` is the file's.
    """
    pool = DescriptorPool()
    pool.Add(FileDescriptorProto.FromString(descriptor))
    file = pool.FindFileByName(FileDescriptorProto.FromString(descriptor).name)
    module["DESCRIPTOR"] = file
    module.update({name: GetMessageClass(message) for name, message in file.message_types_by_name.items()})
    module.update({value.name: value.number for enum in file.enum_types_by_name.values() for value in enum.values})


__all__ = ["DecodeError", "FileDescriptor", "load"]
