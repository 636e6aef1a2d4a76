"""Between an options class and the command line: its validation.

Pydantic validates and words the errors.  Its import and its models cost a start 150 ms, so text whose spelling leaves no doubt
(``16``, ``0.5``, a name) is converted here, and pydantic gets what is left.
"""

from __future__ import annotations

import operator
import re
import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from aiperf.environment import duration_s
from aiperf.errors import AiperfError, ConfigError, PluginError, UsageError
from aiperf.redaction import REDACTED, redact
from aiperf.sdk.descriptor import OptionSpec, canonical
from aiperf.sdk.options import After, Before, Options, option_types

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

_Class = TypeVar("_Class", bound=Options)
_OF_NUMBERS = ("ge", "gt", "le", "lt")


def model_of(options_class: type[Options]) -> type[BaseModel]:
    """The pydantic model that validates typed text."""
    import pydantic

    fields: dict[str, Any] = {}
    for name, declared in option_types(options_class).items():
        hint = declared
        default, face = options_class.option_defaults[name], options_class.option_faces.get(name)
        extra: dict[str, Any] = {}
        if face is not None:
            shown = {"flags": face.spec.flags, "place": face.spec.place, "choices": face.spec.choices}
            limits = face.limits
            if get_origin(hint) is list:  # those of a number count for each one
                each = {limit: value for limit, value in limits.items() if limit in _OF_NUMBERS}
                hint = list[Annotated[get_args(hint)[0], pydantic.Field(**each)]] if each else hint  # type: ignore[misc]
                limits = {limit: value for limit, value in limits.items() if limit not in each}
            extra = {"description": face.spec.help, "json_schema_extra": {"aiperf": shown}, **limits}
        extra |= {"default_factory": default.copy} if isinstance(default, list | dict) else {"default": default}
        fields[name] = (_validated(hint), pydantic.Field(**extra))
    config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())
    return pydantic.create_model(options_class.__name__, __config__=config, **fields)


def options_schema(options_class: type[Options]) -> dict[str, Any]:
    """JSON Schema of the options; each has its flags, place and choices under ``aiperf``."""
    return model_of(options_class).model_json_schema()


def _validated(hint: Any) -> Any:
    """A declared type as pydantic validates it: with its checks, and a struct given as JSON."""
    from pydantic import BeforeValidator, WithJsonSchema

    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[(_validated(arguments[0]), *map(_validator, arguments[1:]))]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_validated, arguments))]  # noqa: UP007  # made at run time
    if origin in (list, tuple, set, frozenset, dict):
        return origin[tuple(map(_validated, arguments))]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return Annotated[hint, BeforeValidator(partial(_struct, hint)), WithJsonSchema(msgspec.json.schema(hint))]
    return hint


def _validator(annotation: Any) -> Any:
    from pydantic import AfterValidator, BeforeValidator

    if isinstance(annotation, Before):
        return BeforeValidator(annotation.convert)
    return AfterValidator(annotation.check) if isinstance(annotation, After) else annotation


def _struct(kind: type[Struct], value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"{value!r} is no JSON object of {', '.join(kind.__struct_fields__)}: {error}") from error


Text = str | bool | list[str]
"""What a command line gives for a field: a word, several, or a flag's state."""


def validate(
    options_class: type[_Class], known: Sequence[OptionSpec], given: Mapping[str, Text], typed: Mapping[str, str]
) -> tuple[_Class | None, list[AiperfError]]:
    """The options of typed text; or None and all errors, each with the flag as *typed* (by field)."""
    if not given and ... not in options_class.option_defaults.values():
        return options_class(), []
    flags = {spec.field: typed.get(spec.field) or spec.flags[0] for spec in known}
    choosing = {spec.field: spec for spec in known if spec.choices}
    secret = {spec.field for spec in known if spec.secret}
    timed = {spec.field for spec in known if spec.metavar == "SECONDS"}
    paths = {spec.field for spec in known if spec.type == "path"}
    values: dict[str, Text] = {}
    errors: list[AiperfError] = []
    for field, value in given.items():
        try:
            values[field] = _chosen(choosing[field], value, flags[field]) if field in choosing else value
            if field in timed:
                values[field] = _seconds(value)
            if field in paths and "" in (value, *(value if isinstance(value, list) else ())):
                raise UsageError(f"{flags[field]}: the path is empty", "is the variable it comes from set?")
        except UsageError as error:
            errors.append(error)
    plain = None if errors else _plainly(options_class, values)
    if plain is not None:
        return options_class(**plain), []
    from pydantic import ValidationError

    try:
        validated = model_of(options_class).model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            field = str(detail["loc"][0])
            if field in values or field not in given:  # a bad choice is reported already
                flag = flags.get(field) or typed.get(field, field)
                hints = _hints(detail, timed=field in timed)
                errors.append(UsageError(f"{flag}: {rule(detail, hidden=field in secret)}", *hints))
        return None, errors
    if errors:
        return None, errors
    return options_class(**{name: getattr(validated, name) for name in validated.model_fields_set}), []


_INT, _FLOAT = re.compile(r"-?\d{1,15}", re.ASCII), re.compile(r"-?\d{1,15}(\.\d{1,15})?", re.ASCII)


class _Doubt(Exception):  # noqa: N818  # the value may be right
    """Pydantic is to decide."""


def _plainly(options_class: type[Options], values: Mapping[str, Text]) -> dict[str, Any] | None:
    """The typed values, as pydantic would give them; None if one is in doubt."""
    required = {name for name, default in options_class.option_defaults.items() if default is ...}
    if required - values.keys() or values.keys() - options_class.option_defaults.keys():
        return None
    try:
        hints = option_types(options_class, values)
        faces = options_class.option_faces
        return {name: _limited(_converted(hints[name], value), faces[name].limits) for name, value in values.items()}
    except Exception:  # noqa: BLE001  # a check of strangers: pydantic calls it again, and words the error
        return None


def _limited(value: Any, limits: Mapping[str, Any]) -> Any:
    """A value within limits that count for it as a whole.

    Raises:
        _Doubt: It isn't, or the limits aren't that plain.
    """
    checks = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
    for name, limit in limits.items():
        if name == "min_length" and isinstance(value, str | list) and len(value) >= limit:
            continue
        if name not in checks or type(value) not in (int, float) or not checks[name](value, limit):
            raise _Doubt
    return value


def _converted(hint: Any, value: Any) -> Any:
    """The value of a declared type.

    Raises:
        _Doubt: The text is spelled unusually, or the type is.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        if any(type(mark) not in (Before, After) for mark in arguments[1:]):
            raise _Doubt
        for mark in reversed(arguments[1:]):
            value = mark.convert(value) if isinstance(mark, Before) else value
        value = _converted(arguments[0], value)
        for mark in arguments[1:]:
            value = mark.check(value) if isinstance(mark, After) else value
        return value
    if origin in (Union, types.UnionType):
        own = [part for part in arguments if part is not type(None)]
        if len(own) == 1 and value is not None:
            return _converted(own[0], value)
    elif origin is list and type(value) is list:
        return [_converted(arguments[0], part) for part in value]
    elif (origin is Literal and type(value) is str and value in arguments) or (hint is bool and type(value) is bool):
        return value
    elif type(value) is str and isinstance(hint, type):
        if hint is str:
            return value
        if issubclass(hint, Enum):
            return hint(value)
        if (hint is int and _INT.fullmatch(value)) or (hint is float and _FLOAT.fullmatch(value)) or hint is Path:
            return hint(value)
    raise _Doubt


def _seconds(value: Text) -> Text:
    """The number of seconds in ``30s``, ``5m``, ``1.5h`` or ``200ms``; any other text as it is."""
    number = duration_s(value) if isinstance(value, str) else None
    return value if number is None else repr(number)


def conflicts(owner: str, options: Options, typed: Mapping[str, str]) -> list[AiperfError]:
    """The conflicts among the options of the plugin *owner*.  typed: the flags as typed, by field."""
    try:
        return [ConfigError(*sentence.split("\n")) for sentence in options.problems(dict(typed))]
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
    limits = {name: plain(limit) for name, limit in detail.get("ctx", {}).items()}
    kind, message = detail["type"], detail["msg"]
    if kind in ("value_error", "assertion_error"):
        cause = limits.get("error") or message.partition(", ")[2]
        return f"{given} is not allowed; {cause}" if cause.startswith("must ") else cause
    if given.lower().lstrip("+-") == "nan":
        return f"{given!r} is not a number"
    if kind == "string_too_short" and limits["min_length"] == "1":
        return "must not be empty"
    message = f"{message[:1].lower()}{message[1:]}"
    return _RULES.get(kind, "{given!r} is not allowed; {message}").format_map({**limits, "given": given, "message": message})


def _hints(detail: ErrorDetails, *, timed: bool) -> list[str]:
    """The next step after a number that isn't one.  *timed*: it is a time."""
    if detail["type"] not in ("int_parsing", "float_parsing"):
        return []
    if "," in str(detail.get("input", "")):
        return ["one run has one value: start a run for each"]
    return ["seconds, or a number with its unit: 30s, 5m, 1.5h, 200ms"] if timed else []


_RULES = {
    **dict.fromkeys(("int_parsing", "int_from_float", "int_type"), "{given!r} is not a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), "{given!r} is not a number"),
    **dict.fromkeys(("literal_error", "enum"), "{given!r} is not one of {expected}"),
    "int_parsing_size": "{given!r} is not a number of a usual size",
    "bool_parsing": "{given!r} is not true or false", "path_type": "{given!r} is not a path",
    "greater_than": "{given} is not allowed; must be more than {gt}",
    "greater_than_equal": "{given} is not allowed; must be at least {ge}",
    "less_than": "{given} is not allowed; must be less than {lt}",
    "less_than_equal": "{given} is not allowed; must be at most {le}",
    "multiple_of": "{given} is not allowed; must be a multiple of {multiple_of}",
    "finite_number": "{given} is not allowed; must be a finite number", "missing": "is required",
    "too_short": "needs at least {min_length} values", "too_long": "takes at most {max_length} values",
    "string_too_short": "must have at least {min_length} characters",
    "string_pattern_mismatch": "{given!r} does not have the form {pattern}",
}  # fmt: skip
"""Sentences by pydantic's name of the error."""


def plain(value: Any) -> str:
    """A value as text; a whole number without its fraction."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
