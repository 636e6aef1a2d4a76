"""The option specs of an options class: what its manifest row must say."""

from __future__ import annotations

import types
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from msgspec.structs import replace

from aiperf.registry.option_specs import plain
from aiperf.sdk.descriptor import OptionSpec
from aiperf.sdk.options import Face, Options, option_types

_METAVARS = {"int": "INT", "float": "NUMBER", "path": "PATH", "str": "TEXT", "choice": "WORD"}


def specs(options_class: type[Options]) -> tuple[OptionSpec, ...]:
    """The fields of the class with a flag, in their order.

    Raises:
        ValueError: The face of a field contradicts its type.
    """
    hints = option_types(options_class)
    return tuple(_spec(name, hints[name], face) for name, face in options_class.option_faces.items())


def _spec(name: str, annotation: Any, face: Face) -> OptionSpec:
    spec = face.spec
    if not spec.flags:
        raise ValueError(f"the option {name} has no flag")
    kind, many, choices = _kind(annotation)
    choices = spec.choices or choices
    kind = "choice" if choices else kind
    arity = spec.arity or ("none" if kind == "flag" else "many" if many else "one")
    if (arity == "none") != (kind == "flag"):
        raise ValueError(f"the option {name} is {kind} and can't have arity {arity}")
    metavar, default = spec.metavar or _METAVARS.get(kind, ""), _shown(face.default) if spec.default is None else spec.default
    return replace(spec, field=name, type=kind, arity=arity, metavar=metavar, default=default, choices=choices)


def _kind(annotation: Any) -> tuple[str, bool, tuple[str, ...]]:
    """Type word, whether it is a list, and its choices, of an annotation."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kind(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        kinds = [_kind(part) for part in get_args(annotation) if part is not type(None)]
        return next((kind for kind in kinds if kind[1]), kinds[0])
    if origin in (list, tuple, set, frozenset):
        kind, _, choices = _kind(get_args(annotation)[0])
        return kind, True, choices
    if origin is Literal:
        return "choice", False, tuple(str(choice) for choice in get_args(annotation))
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return "choice", False, tuple(str(member.value) for member in annotation)
        for known, word in ((bool, "flag"), (int, "int"), (float, "float"), (Path, "path")):
            if issubclass(annotation, known):
                return word, False, ()
    return "str", False, ()


def _shown(default: Any) -> str | None:
    """A default as help prints it."""
    if default is None or default is ... or default is False or default in ([], (), {}, ""):
        return None
    if default is True:
        return "on"
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, list | tuple):
        return ",".join(str(part) for part in default)
    return plain(default)
