"""Between pydantic and the command line: a model as option specs, and typed text as a model."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from aiperf.argv import REDACTED, redact
from aiperf.descriptor import OptionSpec, canonical
from aiperf.errors import AiperfError, ConfigError, PluginError, UsageError

_METAVARS = {"int": "INT", "float": "NUMBER", "path": "PATH", "str": "TEXT", "choice": "WORD"}


def specs(model: type[BaseModel]) -> tuple[OptionSpec, ...]:
    """The model's fields that a person can type, in their order.

    Raises:
        ValueError: A field's face contradicts its type.
    """
    made = [_spec(name, field) for name, field in model.model_fields.items()]
    return tuple(spec for spec in made if spec is not None)


def _spec(name: str, field: FieldInfo) -> OptionSpec | None:
    extra = field.json_schema_extra
    face: Any = extra.get("aiperf") if isinstance(extra, dict) else None
    if face is None:
        return None
    if not face["flags"]:
        raise ValueError(f"the option {name} has no flag")
    kind, many, choices = _kind(field.annotation)
    choices = tuple(face["choices"]) or choices
    kind = "choice" if choices else kind
    arity = face["arity"] or ("none" if kind == "flag" else "many" if many else "one")
    if (arity == "none") != (kind == "flag"):
        raise ValueError(f"the option {name} is {kind} and can't have arity {arity}")
    return OptionSpec(
        field=name,
        flags=tuple(face["flags"]),
        help=field.description or "",
        type=kind,
        arity=arity,
        metavar=face["metavar"] or _METAVARS.get(kind, ""),
        default=face["shown"] if face["shown"] is not None else _shown(field.get_default(call_default_factory=True)),
        choices=choices,
        group=face["group"],
        negative=face["negative"],
        secret=face["secret"],
        commas=face["commas"],
        hidden=face["hidden"],
        place=face["place"],
    )


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
    if default is None or default is PydanticUndefined or default is False or default in ([], (), {}, ""):
        return None
    if default is True:
        return "on"
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, float) and math.isfinite(default) and default == int(default):
        return str(int(default))
    if isinstance(default, list | tuple):
        return ",".join(str(part) for part in default)
    return str(default)


Text = str | bool | list[str]
"""What a command line gives for a field: a word, several, or a flag's state."""


def validate(
    model: type[BaseModel], known: Sequence[OptionSpec], given: Mapping[str, Text], typed: Mapping[str, str]
) -> tuple[Any, list[AiperfError]]:
    """The model made of typed text, or None and every error, said of the flags as *typed* (by field)."""
    by_field = {spec.field: spec for spec in known}
    values: dict[str, Text] = {}
    errors: list[AiperfError] = []
    for field, value in given.items():
        spec = by_field[field]
        try:
            values[field] = _chosen(spec, value, typed.get(field, spec.flags[0])) if spec.choices else value
        except UsageError as error:
            errors.append(error)
    try:
        made = model.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            field = str(detail["loc"][0]) if detail["loc"] else ""
            if field in given and field not in values:
                continue  # its choice was wrong, which has been said
            found = by_field.get(field)
            flag = typed.get(field) or (found.flags[0] if found else "")
            sentence = rule(detail, hidden=found.secret if found else False)
            errors.append(UsageError(f"{flag}: {sentence}" if flag else sentence))
        return None, errors
    return (None, errors) if errors else (made, [])


def conflicts(owner: str, model: Any, typed: Mapping[str, str]) -> list[AiperfError]:
    """What *model*, the options of the plugin *owner*, finds wrong among themselves.

    *typed*: the flags as they were typed, by field.
    """
    problems: Callable[[dict[str, str]], list[str]] | None = getattr(model, "problems", None)
    if problems is None:
        return []
    try:
        return [ConfigError(*sentence.split("\n")) for sentence in problems(dict(typed))]
    except Exception as error:  # noqa: BLE001  # strangers' code
        return [PluginError(f"the plugin {owner} can't check its options: {type(error).__name__}: {error}")]


def _chosen(spec: OptionSpec, value: Text, flag: str) -> Text:
    if isinstance(value, list):
        return [str(_chosen(spec, one, flag)) for one in value]
    match = {canonical(choice): choice for choice in spec.choices}.get(canonical(str(value)))
    if match is None:
        close = get_close_matches(canonical(str(value)), [canonical(choice) for choice in spec.choices], 1, 0.6)
        hints = [f"did you mean {close[0]}?"] if close else []
        raise UsageError(f"{flag}: {value!r} is not one of {', '.join(spec.choices)}", *hints)
    return match


def rule(detail: ErrorDetails, *, hidden: bool) -> str:
    """A pydantic error as a sentence about the value: what was given, and what is allowed."""
    given = REDACTED if hidden else redact(str(detail.get("input", "")))
    limits = detail.get("ctx", {})
    kind = detail["type"]
    if kind in ("value_error", "assertion_error"):
        cause = str(limits.get("error", "")) or detail["msg"].partition(", ")[2]
        return f"{given} is not allowed; {cause}" if cause.startswith("must ") else cause
    if given.lower().lstrip("+-") == "nan":
        return f"{given!r} is not a number"
    is_not = {
        "int_parsing": "a whole number",
        "int_from_float": "a whole number",
        "int_type": "a whole number",
        "int_parsing_size": "a number of a usual size",
        "float_parsing": "a number",
        "float_type": "a number",
        "bool_parsing": "true or false",
        "path_type": "a path",
    }.get(kind)
    if is_not:
        return f"{given!r} is not {is_not}"
    must = {
        "greater_than": ("more than", "gt"),
        "greater_than_equal": ("at least", "ge"),
        "less_than": ("less than", "lt"),
        "less_than_equal": ("at most", "le"),
        "multiple_of": ("a multiple of", "multiple_of"),
    }.get(kind)
    if must:
        return f"{given} is not allowed; must be {must[0]} {_number(limits[must[1]])}"
    if kind == "finite_number":
        return f"{given} is not allowed; must be a finite number"
    if kind == "missing":
        return "is required"
    if kind in ("literal_error", "enum"):
        return f"{given!r} is not one of {limits.get('expected', '')}"
    if kind == "too_short":
        return f"needs at least {limits['min_length']} values"
    if kind == "too_long":
        return f"takes at most {limits['max_length']} values"
    if kind == "string_too_short":
        return "must not be empty" if limits["min_length"] == 1 else f"must have at least {limits['min_length']} characters"
    if kind == "string_pattern_mismatch":
        return f"{given!r} does not have the form {limits['pattern']}"
    message = detail["msg"]
    return f"{given!r} is not allowed; {message[:1].lower()}{message[1:]}"


def _number(limit: Any) -> str:
    return str(int(limit)) if isinstance(limit, float) and limit == int(limit) else str(limit)
