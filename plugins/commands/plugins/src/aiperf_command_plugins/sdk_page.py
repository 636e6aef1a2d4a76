"""The reference of the public names as Markdown, from their signatures and docstrings."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol, cast

import aiperf
import msgspec
from aiperf import PluginError
from aiperf.sdk.registry import find_category

_HEAD = """\
# The SDK

Generated from signatures and docstrings by `aiperf plugins sdk --markdown --output docs/sdk`: every name that a plugin may
import from the modules of `aiperf.sdk`, and from `aiperf` what has no module there. `aiperf` has many of them at hand; they are
marked. Readers of finished runs (`aiperf.results`) and the contracts for tests (`aiperf.testing`) are in
[plugins.md](../plugins.md)."""
_TABLE = "| module | what it is |\n|---|---|"


class _Absent(NamedTuple):
    """A name in a package that is not installed.  *sentence*: says which."""

    sentence: str


def pages() -> dict[str, str]:
    """A page for each module by the file's name, and ``README.md``, their index; every public name has its heading."""
    names = [f"aiperf.sdk.{found.name}" for found in pkgutil.iter_modules(importlib.import_module("aiperf.sdk").__path__)]
    modules = [importlib.import_module(name) for name in sorted(names)]
    listed = {name for module in modules for name in module.__all__}
    rest = [name for name in aiperf.__all__ if name not in listed and name not in ("KernelTransport", "__version__")]
    made = {_file(module): "\n\n".join(_module(module, module.__all__)) + "\n" for module in modules}
    made[_file(aiperf)] = "\n\n".join(_module(aiperf, rest)) + "\n"
    contracts = [module for module in modules if find_category(module.__name__.rpartition(".")[2])]
    shared = [aiperf, *(module for module in modules if module not in contracts)]
    parts = [_HEAD, "## Categories", _index(contracts), "## For several categories", _index(shared)]
    return {"README.md": "\n\n".join(parts) + "\n"} | made


def write(where: Path) -> list[Path]:
    """Write the pages into a directory, which is made; their paths.

    Raises:
        PluginError: One can't be written.
    """
    paths = []
    for name, text in pages().items():
        paths.append(where / name)
        try:
            where.mkdir(parents=True, exist_ok=True)
            paths[-1].write_text(text, encoding="utf-8")
        except OSError as error:
            raise PluginError(f"{paths[-1]} can't be written: {error.strerror}") from error
    return paths


def _file(module: ModuleType) -> str:
    return f"{module.__name__.rpartition('.')[2]}.md"


def _index(modules: list[ModuleType]) -> str:
    """A table of modules with the first sentence of each."""
    rows = (f"| [`{module.__name__}`]({_file(module)}) | {_first_sentence(module)} |" for module in modules)
    return "\n".join([_TABLE, *rows])


def _first_sentence(module: ModuleType) -> str:
    (first, *_) = _text(inspect.getdoc(module) or "")
    return " ".join(first.split()).replace("|", r"\|")


def _module(module: ModuleType, names: list[str]) -> Iterator[str]:
    yield f"# `{module.__name__}`"
    yield from _text(inspect.getdoc(module) or "")
    values = _values(module, names)
    homes = {name: value.__module__ for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)}
    doors = sorted({home for home in homes.values() if home.startswith("aiperf_")})  # those that the names come from
    sources = [*(sys.modules[home] for home in doors), module]
    constants, aliases = {name: text for source in sources for name, text in _constants(source)}, _aliases(module)
    for name in sorted(names, key=str.lower):
        value, home = values[name], homes.get(name, "")
        yield f"## `{name}`" + (f" (also `aiperf.{name}`)" if module is not aiperf and name in aiperf.__all__ else "")
        if isinstance(value, _Absent):
            yield value.sentence
        elif home != module.__name__ and home.startswith("aiperf.sdk."):
            yield f"From [`{home}`]({home.rpartition('.')[2]}.md)."
        elif name in aliases:
            yield f"```python\n{name}: TypeAlias = {aliases[name]}\n```"
            yield from _text(constants.get(name, ""))
        elif inspect.isclass(value):
            yield from _class(value)
        elif inspect.isroutine(value):
            yield f"```python\n{name}{_signature(value)}\n```"
            yield from _text(inspect.getdoc(value) or "")
        else:
            yield f"```python\n{name}{_value(value)}\n```"
            yield from _text(constants.get(name, ""))


def _values(module: ModuleType, names: list[str]) -> dict[str, Any]:
    """The public names with what they are."""
    values: dict[str, Any] = {}
    for name in names:
        try:
            values[name] = getattr(module, name)
        except ImportError as error:
            values[name] = _Absent(str(error))
    return values


def _aliases(module: ModuleType) -> dict[str, str]:
    """The types that the module declares as aliases, as its source has them: at run time some are ``Any`` (no numpy yet)."""
    aliases = {}
    for statement in ast.walk(ast.parse(inspect.getsource(module))):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value):
                aliases[name] = ast.unparse(value)
    return aliases


def _value(value: Any) -> str:
    """A constant's value where it is short, else its type."""
    text = _default(value)
    plain = isinstance(value, (str, int, float, tuple)) and text != "..." and len(text) <= 300
    return f" = {text}" if plain else f": {type(value).__name__}"


def _class(cls: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    lines = [f"class {cls.__name__}" + (f"({bases})" if bases else "")]
    if issubclass(cls, enum.Enum):
        lines += [f"    {member.name} = {member.value!r}" for member in cls]
    elif issubclass(cls, msgspec.Struct):
        lines += [f"    {parameter}" for parameter in _fields(cls)]
    else:
        own = inspect.get_annotations(cls)
        lines += [f"    {name}: {_type(kind)}" for name, kind in own.items() if not name.startswith("_")]
        if "__init__" in vars(cls) and Protocol not in cls.__bases__:
            lines.append(f"    __init__{_signature(cls.__init__)}")
    yield "```python\n" + "\n".join(lines) + "\n```"
    yield from _text(vars(cls).get("__doc__") or "")
    for name, member in vars(cls).items():
        if name.startswith("_"):
            continue
        plain = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if isinstance(plain, (property, cached_property)):
            reader = plain.fget if isinstance(plain, property) else plain.func
            kind = _type(inspect.get_annotations(cast(Any, reader)).get("return", ""))
            yield f"**`.{name}: {kind}`**"
            yield from _text(inspect.getdoc(plain) or "")
        elif inspect.isfunction(plain):
            yield f"**`.{name}{_signature(plain)}`**"
            yield from _text(inspect.getdoc(plain) or "")


def _fields(cls: type[msgspec.Struct]) -> Iterator[str]:
    """The fields of a structure, inherited ones first."""
    kinds = {name: kind for base in reversed(cls.__mro__) for name, kind in inspect.get_annotations(base).items()}
    defaults = cls.__struct_defaults__
    required = len(cls.__struct_fields__) - len(defaults)
    for number, name in enumerate(cls.__struct_fields__):
        default = defaults[number - required] if number >= required else msgspec.NODEFAULT
        yield f"{name}: {_type(kinds[name])}" + ("" if default is msgspec.NODEFAULT else f" = {_default(default)}")


def _signature(function: Any) -> str:
    result = _type(inspect.get_annotations(function).get("return", "")) if inspect.isfunction(function) else ""
    return f"({', '.join(_parameters(function))})" + (f" -> {result}" if result else "")


def _parameters(of: Any) -> Iterator[str]:
    """The parameters, with their kinds' marks and without *self*."""
    try:
        parameters = list(inspect.signature(of).parameters.values())
    except ValueError:  # written in C
        return
    keyword_only = False
    for number, each in enumerate(parameters):
        if each.name in ("self", "cls"):
            continue
        keyword_only |= each.kind is each.VAR_POSITIONAL
        if each.kind is each.KEYWORD_ONLY and not keyword_only and not inspect.isclass(of):
            keyword_only = True
            yield "*"
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        kind = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        yield f"{stars}{each.name}{kind}" + ("" if each.default is each.empty else f" = {_default(each.default)}")
        following = parameters[number + 1].kind if number + 1 < len(parameters) else None
        if each.kind is each.POSITIONAL_ONLY and following is not each.POSITIONAL_ONLY:
            yield "/"


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(factory := inspect.getattr_static(type(value), "factory", None) and value.factory, type):
        return f"{factory.__name__}()"
    if inspect.isroutine(value) or inspect.isclass(value):
        return value.__name__
    text = repr(value)
    return "..." if text.startswith("<") or " at 0x" in text else text


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return "None" if text == "NoneType" else text


def _constants(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The text below each assignment of the module."""
    body = ast.parse(inspect.getsource(module)).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        match statement, following:
            case (
                (ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, text


def _text(docstring: str) -> Iterator[str]:
    """Its paragraphs as Markdown: errors are a list, and a table keeps its columns."""
    text = inspect.cleandoc(docstring)
    text = re.sub(r":\w+:`~?([^`]+)`", r"``\1``", text).replace("``", "`")
    for paragraph in filter(str.strip, text.split("\n\n")):
        first, _, rest = paragraph.partition("\n")
        if first in ("Raises:", "Yields:", "Returns:"):
            entries = re.sub(r"\n {5,}", " ", rest)
            yield first + "\n\n" + "\n".join(f"- {line.strip()}" for line in entries.splitlines())
        elif "===" in paragraph:
            yield f"```text\n{paragraph}\n```"
        else:
            yield paragraph
