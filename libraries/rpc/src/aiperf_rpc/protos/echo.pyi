from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import Any as _Any, ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mood(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLAIN: _ClassVar[Mood]
    LOUD: _ClassVar[Mood]
PLAIN: Mood
LOUD: Mood

class Said(_message.Message):
    __slots__ = ("text", "times", "mood", "data", "number", "marks")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIELD_NUMBER: _ClassVar[int]
    MOOD_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    MARKS_FIELD_NUMBER: _ClassVar[int]
    text: str
    times: int
    mood: Mood
    data: bytes
    number: int
    marks: _containers.RepeatedCompositeFieldContainer[Mark]
    def __init__(self, text: _Optional[str] = ..., times: _Optional[int] = ..., mood: _Optional[_Union[Mood, str]] = ..., data: _Optional[bytes] = ..., number: _Optional[int] = ..., marks: _Optional[_Iterable[_Union[Mark, _Mapping[str, _Any]]]] = ...) -> None: ...

class Mark(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
