"""A plugin's options: one class from the command line to ``self.options`` in every process.

The class is plain Python, so that a worker may import it.  Values are validated at the command line alone, by pydantic
(:mod:`aiperf.registry.option_specs`); they travel as JSON values and are decoded with the declared types.
"""

from __future__ import annotations

import math
import sys
import typing
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal

import msgspec
from msgspec import Struct

from aiperf.sdk.descriptor import OptionSpec

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    OptionsT = TypeVar("OptionsT", default=Any)
    """The options of a plugin: ``class Chat(Endpoint[ChatOptions])``."""
else:
    from typing import TypeVar

    OptionsT = TypeVar("OptionsT")

_NOT_FINITE = "$float"
_USUAL = (str, int, float, bool, bytes, type(None), Path, Enum, Struct, list, tuple, set, frozenset, dict)


class Before(Struct, frozen=True):
    """An annotation of an option's type: *convert* changes the text before it is validated."""

    convert: Callable[[Any], Any]


class After(Struct, frozen=True):
    """An annotation of an option's type: *check* gets the typed value and returns it.

    A ValueError from it is reported with the flag; ``must be …`` is completed to a sentence.
    """

    check: Callable[[Any], Any]


class Face(Struct, frozen=True):
    """The declaration of an option.  spec: without what the field's name and type add.  Fields as in :func:`option`."""

    default: Any
    spec: OptionSpec
    limits: dict[str, Any]


def option(
    *flags: str, help: str, default: Any = None, group: str = "", metavar: str = "", shown: str | None = None,
    negative: str | None = None, arity: str | None = None, choices: tuple[str, ...] = (), secret: bool = False,
    commas: bool = True, hidden: bool = False, place: str = "", cells: bool = False,
    ge: float | None = None, gt: float | None = None, le: float | None = None, lt: float | None = None,
    min_length: int | None = None, max_length: int | None = None,
    pattern: str | None = None,
) -> Any:
    """An option of an :class:`Options` class.

    flags: canonical first.  default: ``...`` makes the option required.  shown: the default in the help, where it isn't the
    value itself.  negative: the flag that switches it off.  arity: ``none``, ``one``, ``many`` or ``maybe``; None derives it
    from the type.  commas: whether a comma separates values of a ``many`` option.  choices: the valid words, where they are
    fixed.  secret: the value is never written.  place: its place in a configuration file (``endpoint.timeout``).
    cells: whether a comma separates values of which each has a run of its own; for an option with one value.
    ge, gt, le, lt: limits of a number, or of each number of a list.  min_length, max_length: of a text or list.
    pattern: regular expression of a text.
    """
    limits = {"ge": ge, "gt": gt, "le": le, "lt": lt, "min_length": min_length, "max_length": max_length, "pattern": pattern}
    spec = OptionSpec("", flags, help, "", arity or "", metavar, shown, choices, group, negative, secret, commas, hidden,
        place, cells)
    return Face(default, spec, {name: limit for name, limit in limits.items() if limit is not None})


class WithOptions(Generic[OptionsT]):
    """A plugin that is made from its options.  options: None where it declares none."""

    def __init__(self, options: OptionsT = None) -> None:  # type: ignore[assignment]  # None where it declares none
        self.options = options


@typing.dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """Base of all option classes, the kernel's and plugins'.  Instances are frozen; annotated names are the fields."""

    option_faces: ClassVar[Mapping[str, Face]] = {}
    """The declarations by field; a field without flags has none."""
    option_defaults: ClassVar[Mapping[str, Any]] = {}
    """The defaults by field; ``...`` stands for none."""

    def __init_subclass__(cls) -> None:
        faces: dict[str, Face] = {}
        defaults: dict[str, Any] = {}
        for base in cls.__bases__:  # of one field the first base's counts, as for its type
            if issubclass(base, Options):
                faces, defaults = {**faces, **base.option_faces, **faces}, {**defaults, **base.option_defaults, **defaults}
        for name, annotation in cls.__annotations__.items():
            if "ClassVar" in str(annotation):
                continue
            if name in _RESERVED:
                raise TypeError(f"{cls.__name__}: an option can't be called {name}")
            declared = vars(cls).get(name, ...)
            if isinstance(declared, Face):
                faces[name] = declared
                declared = declared.default
            defaults[name] = declared
            if name in vars(cls):
                delattr(cls, name)
        cls.option_faces, cls.option_defaults = faces, defaults

    def __init__(self, **values: Any) -> None:
        unknown = sorted(values.keys() - self.option_defaults.keys())
        missing = [name for name, default in self.option_defaults.items() if default is ... and name not in values]
        if unknown or missing:
            what = f"no option {', '.join(unknown)}" if unknown else f"no value of {', '.join(missing)}"
            raise TypeError(f"{type(self).__name__} has {what}")
        for name, default in self.option_defaults.items():
            fresh = default.copy() if isinstance(default, list | dict) else default
            vars(self)[name] = values.get(name, fresh)
        vars(self)["_fields_set"] = frozenset(values)

    @property
    def fields_set(self) -> frozenset[str]:
        """The fields with a given value; the others have their defaults."""
        fields: frozenset[str] = vars(self)["_fields_set"]
        return fields

    @property
    def expected_answer_tokens(self) -> float | None:
        """Mean length of the answers that a data set with these options asks for; None where its rows or the model decide.

        The number of workers follows it.
        """
        return None

    def problems(self, typed: dict[str, str]) -> list[str]:
        """The conflicts between the options: a sentence each, hints on further lines.  typed: the flag as typed, by field."""
        return []

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} can't be set")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and option_values(self) == option_values(other)

    __hash__ = None  # type: ignore[assignment]  # values may be lists

    def __repr__(self) -> str:
        hidden = {name for name, face in self.option_faces.items() if face.spec.secret}
        fields = (f"{name}={'…' if name in hidden else repr(value)}" for name, value in option_values(self).items())
        return f"{type(self).__name__}({', '.join(fields)})"


_RESERVED = ("option_faces", "option_defaults", "fields_set", "expected_answer_tokens", "problems")


def option_values(options: Any) -> dict[str, Any]:
    """The values by field."""
    return {name: vars(options)[name] for name in options.option_defaults}


def option_types(options_class: type[Options], fields: Collection[str] | None = None) -> dict[str, Any]:
    """The declared types by field, of all or of these *fields*.

    Raises:
        NameError: A type can't be resolved in the module of its class.
    """
    cls: Any = options_class
    known = _resolved(cls)
    wanted = options_class.option_defaults if fields is None else fields
    if missing := {name for name in wanted if name not in known}:
        for base in reversed(options_class.__mro__):
            own = {name: hint for name, hint in vars(base).get("__annotations__", {}).items() if name in missing}
            if own:
                declared = SimpleNamespace(__annotations__=own)
                known |= typing.get_type_hints(declared, vars(sys.modules[base.__module__]), vars(base), include_extras=True)
    return {name: known[name] for name in wanted if name in known}


@cache
def _resolved(options_class: Any) -> dict[str, Any]:
    """The types of a class that were asked for, by field: each is resolved once, and most are never asked for."""
    return {}


@cache
def _all_types(options_class: type[Options]) -> dict[str, Any]:
    """:func:`option_types` of all fields: a class keeps them, and each plan of a study decodes all options again."""
    return option_types(options_class)


def shown_options(options: Options) -> dict[str, Any]:
    """The values by field as result files show them: a path as text, an enum as its value."""
    shown: dict[str, Any] = msgspec.to_builtins(option_values(options), enc_hook=_encode)
    return shown


@cache
def undecodable(options_class: Any) -> str | None:
    """The reason why another process can't decode the class; None if it can."""
    if not (isinstance(options_class, type) and issubclass(options_class, Options)):
        return "it is no subclass of aiperf.Options"
    try:
        hints = option_types(options_class)
    except Exception as error:  # noqa: BLE001  # an annotation of a plugin
        return f"its types can't be resolved: {error}"
    for name, hint in hints.items():
        strange = sorted({getattr(leaf, "__name__", str(leaf)) for leaf in _leaves(hint) if not _is_decodable(leaf)})
        if strange:
            return f"the option {name} has the type {' and '.join(strange)}, which no other process can decode"
        try:
            msgspec.json.Decoder(hint, dec_hook=_decode)
        except TypeError as error:
            return f"the option {name} can't be decoded in another process: {error}"
    return None


class EncodedOptions(Struct, frozen=True):
    """A plugin's options on their way to another process.

    options_class: ``module:Class``.  values: JSON values by field; ``inf`` is ``{"$float": "inf"}``, None may stand for a
    secret that is not written.  given: fields that have no default value, None where that isn't known.
    """

    options_class: str
    values: dict[str, Any]
    given: tuple[str, ...] | None = None

    @classmethod
    def of(cls, options: Options) -> EncodedOptions:
        values = {name: _json(value) for name, value in shown_options(options).items()}
        return cls(f"{type(options).__module__}:{type(options).__qualname__}", values, tuple(sorted(options.fields_set)))

    def decoded(self) -> Any:
        """The options, with their declared types.

        Raises:
            msgspec.ValidationError: A value doesn't have its declared type.
        """
        module, _, name = self.options_class.partition(":")
        options_class: Any = import_module(module)
        for part in name.split("."):
            options_class = getattr(options_class, part)
        hints = _all_types(options_class)
        secret = {field for field, face in options_class.option_faces.items() if face.spec.secret}
        options = options_class(**{
            field: None if value is None and field in secret else msgspec.convert(_plain(value), hints[field], dec_hook=_decode)
            for field, value in self.values.items()
        })  # fmt: skip
        if self.given is not None:
            vars(options)["_fields_set"] = frozenset(self.given)
        return options


def _encode(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} can't be encoded")


def _decode(kind: type, value: Any) -> Any:
    if issubclass(kind, Path):
        return kind(value)
    raise NotImplementedError(f"{kind.__name__} can't be decoded")


def _json(value: Any) -> Any:
    """Builtins with each number that JSON lacks in an object of its own."""
    if isinstance(value, float) and not math.isfinite(value):
        return {_NOT_FINITE: str(value)}
    if isinstance(value, dict):
        return {name: _json(item) for name, item in value.items()}
    return [_json(item) for item in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """The inverse of :func:`_json`."""
    if isinstance(value, dict):
        return float(value[_NOT_FINITE]) if _NOT_FINITE in value else {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _leaves(hint: Any) -> list[Any]:
    """The classes in a type."""
    if typing.get_origin(hint) is Annotated:
        return _leaves(typing.get_args(hint)[0])
    if typing.get_origin(hint) is Literal or hint in (Any, ...):
        return []
    arguments = typing.get_args(hint)
    return [leaf for argument in arguments for leaf in _leaves(argument)] if arguments else [hint]


def _is_decodable(leaf: Any) -> bool:
    if isinstance(leaf, type) and issubclass(leaf, _USUAL):
        return True
    from msgspec import inspect  # costs 30 ms, and is needed for unusual types only

    return not isinstance(inspect.type_info(leaf), inspect.CustomType)


def _word(value: Any) -> Any:
    return value.strip().lower().replace("-", "_") if isinstance(value, str) else value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


Word = Annotated[str, Before(_word)]
"""A name compared without case, with ``-`` equal to ``_``."""
Finite = Annotated[float, After(_finite)]
"""A number other than ``inf``."""


__all__ = ["After", "Before", "EncodedOptions", "Finite", "Options", "OptionsT", "WithOptions", "Word", "option"]
