"""``aiperf plugins``: what is installed, what it can do, what it shadows and why something is broken."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from aiperf import conformance
from aiperf.argv import Scan
from aiperf.commandline import Face, Values, options_of
from aiperf.descriptor import CATEGORIES, Descriptor, OptionSpec
from aiperf.errors import PluginError, UsageError
from aiperf.helptext import table, width, wrapped
from aiperf.registry import Registry, find_category, singular
from aiperf.registry.precedence import label

_OPTIONS = (
    OptionSpec("all", ("--all", "-a"), "Every category with the names in it.", "flag", "none"),
    OptionSpec("validate", ("--validate", "-v"), "Import and check every plugin; exit 1 on a fault.", "flag", "none"),
    OptionSpec("json", ("--json",), "Print JSON.", "flag", "none"),
    OptionSpec("markdown", ("--markdown",), "metrics, options: print their reference as Markdown.", "flag", "none"),
    OptionSpec("category", ("--category",), "The category, instead of a word.", metavar="CATEGORY"),
    OptionSpec("name", ("--name",), "The name, instead of a word.", metavar="NAME"),
    OptionSpec("output", ("--output",), "new: where to make the package's directory.", "path", metavar="DIR", default="."),
)

_SUMMARY = "Show which plugins are installed, what they can do and what is wrong with them."
_MORE = (
    "Without a word: packages. CATEGORY: its plugins. CATEGORY NAME: one of them. 'validate [DISTRIBUTION]' imports and checks"
    " them, 'hooks' prints the hook reference, 'options' every option and whose it is (--json: their JSON Schema), 'manifest"
    " [DIRECTORY]' writes the generated part of a manifest, 'new CATEGORY NAME' makes a package for a new plugin."
)
_NEW = "aiperf plugins new endpoint my-dialect"


def plugins_face(registry: Registry, further: Sequence[OptionSpec]) -> Face:
    """The subcommand; *further* options are those that choose between plugins."""

    def call(values: Values, words: list[str], read: Scan) -> int:
        given = values.get("", {})
        named = [str(given[field]) for field in ("category", "name") if field in given]
        if given.get("markdown"):
            print(_markdown(registry, words + named))
            return 0
        output = None if "output" not in given else Path(str(given["output"]))
        report = _report(registry, words + named, bool(given.get("all")), bool(given.get("validate")), output)
        for note in report.notes:
            print(note, file=sys.stderr)
        print(_json(report.plain) if given.get("json") else report.text)
        return report.code

    return Face("plugins", _SUMMARY, options_of((*_OPTIONS, *further)), call, "[WORD] [CATEGORY] [NAME]", _MORE)


def _markdown(registry: Registry, words: list[str]) -> str:
    if words == ["options"]:
        from aiperf import optionpage

        return optionpage.page(registry)
    if [find_category(word) for word in words] != ["metrics"]:
        forms = ("write: aiperf plugins metrics --markdown", "or: aiperf plugins options --markdown")
        raise UsageError("--markdown prints the reference of metrics, or of options", *forms)
    from aiperf.metricpage import page

    return page(registry)


class _Report:
    """An answer, for people and for programs."""

    def __init__(self, lines: Iterable[str], plain: Any, code: int = 0, notes: Sequence[str] = ()) -> None:
        self.text = "\n".join(lines)
        self.plain = plain
        self.code = code
        self.notes = notes


def _json(plain: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def _report(registry: Registry, words: list[str], everything: bool, validate: bool, output: Path | None) -> _Report:
    if words[:1] == ["new"]:
        return _new(registry, words[1:], Path() if output is None else output)
    if output is not None:
        raise UsageError("--output says where a new package goes", f"for example: {_NEW} --output DIR")
    if len(words) > 2:
        raise UsageError(f"left over: {', '.join(map(repr, words[2:]))}; aiperf plugins takes [CATEGORY] [NAME]")
    first, second = [*words, "", ""][:2]
    if validate or first == "validate":
        return _validated(registry, second if first == "validate" else "")
    if first == "hooks":
        return _hooks()
    if first == "options":
        return _options(registry)
    if first == "manifest":
        return _manifest(Path(second or "."))
    if not first:
        return _all(registry) if everything else _packages(registry)
    category = find_category(first)
    if category is None:
        close = get_close_matches(first, [*CATEGORIES, *map(singular, CATEGORIES)], 1, 0.6)
        hints = [f"categories: {', '.join(CATEGORIES)}", *([f"did you mean {close[0]}?"] if close else [])]
        raise UsageError(f"there is no plugin category {first!r}", *hints)
    return _one(registry, category, second) if second else _category(registry, category)


def _options(registry: Registry) -> _Report:
    from aiperf import optionpage

    return _Report(table(optionpage.listed(registry), width()), optionpage.schema(registry))


def _known(registry: Registry) -> list[Descriptor]:
    """Every plugin that has a name or lost it, broken ones included."""
    usable = [one for category in registry.categories() for one in registry.all(category)]
    return usable + registry.broken


def _packages(registry: Registry) -> _Report:
    counts: dict[tuple[str, str], list[str]] = {}
    for one in _known(registry):
        if one.version:  # a name that two packages claim belongs to neither
            counts.setdefault((one.distribution, one.version), []).append(f"{one.category}:{one.name}")
    lines = ["Installed packages:"]
    lines += table([(f"{name} {version}", ", ".join(found)) for (name, version), found in sorted(counts.items())], width())
    if len(counts) < 2:
        lines += ["", "No plugin package is installed beside the kernel."]
    lines += _troubles(registry)
    lines += ["", "aiperf plugins CATEGORY shows one kind, aiperf plugins --all every name."]
    plain = {
        "packages": [
            {"distribution": name, "version": version, "plugins": found} for (name, version), found in sorted(counts.items())
        ],
        "shadowed": [
            {"category": one.category, "name": one.name, "by": label(one), "packages": one.shadows}
            for one in _known(registry)
            if one.shadows
        ],
        "broken": [_plain(one) for one in registry.broken],
        "disabled": [f"{one.category}:{one.name}" for one in registry.disabled],
        "problems": list(registry.problems),
    }
    return _Report(lines, plain)


def _troubles(registry: Registry) -> list[str]:
    """What is shadowed, broken or switched off."""
    lines = []
    shadowing = [one for one in _known(registry) if one.shadows]
    for title, rows in (
        ("Shadowed", [(f"{one.category}:{one.name}", f"{label(one)} over {', '.join(one.shadows)}") for one in shadowing]),
        ("Broken", [(f"{one.category}:{one.name}", f"{label(one)}: {one.broken}") for one in registry.broken]),
        ("Switched off", [(f"{one.category}:{one.name}", label(one)) for one in registry.disabled]),
    ):
        if rows:
            lines += ["", f"{title}:", *table(rows, width())]
    return lines


def _all(registry: Registry) -> _Report:
    names = {category: registry.names(category) for category in registry.categories()}
    rows = [(category, ", ".join(found) or "none") for category, found in names.items()]
    return _Report([*table(rows, width()), *_troubles(registry)], names)


def _category(registry: Registry, category: str) -> _Report:
    found = registry.all(category)
    broken = [one for one in registry.broken if one.category == category]
    lines = [f"{category}: {CATEGORIES[category]}", ""]
    lines += table([(one.name, one.summary) for one in found], width()) or ["  none installed"]
    if broken:
        lines += ["", "Broken:", *table([(one.name, f"{label(one)}: {one.broken}") for one in broken], width())]
    if found:
        lines += ["", f"aiperf plugins {singular(category).replace(' ', '_')} NAME shows one of them."]
    plain = {
        "category": category,
        "description": CATEGORIES[category],
        "plugins": [_plain(one) for one in found],
        "broken": [_plain(one) for one in broken],
    }
    return _Report(lines, plain)


def _one(registry: Registry, category: str, name: str) -> _Report:
    try:
        one = registry.descriptor(category, name)
    except PluginError as error:  # here the name is what is wrong, not a package
        raise UsageError(error.message, *error.hints) from None
    rows = [
        ("Name", one.name),
        ("Category", category),
        ("Package", label(one)),
        ("Object", one.value),
        ("API", one.api),
        ("Summary", one.summary),
        ("Aliases", ", ".join(one.aliases)),
        ("Priority", str(one.priority)),
        ("Requires", "; ".join(one.requires)),
        ("Shadows", ", ".join(one.shadows)),
        ("Broken", one.broken or ""),
    ]
    lines = table([(title, value) for title, value in rows if value], width())
    if one.capabilities:
        lines += ["", "Capabilities:", *table([(key, _shown(value)) for key, value in one.capabilities.items()], width())]
    if one.options:
        lines += ["", "Options:", *table([(spec.flags[0], spec.help) for spec in one.options], width())]
    plain = _plain(one)
    if category == "hooks" and one.broken is None:
        implemented = _implemented(registry, one)
        lines += ["", "Hooks:", *(f"  {hook}" for hook in implemented)]
        plain["hooks"] = implemented
    return _Report(lines, plain)


def _implemented(registry: Registry, one: Descriptor) -> list[str]:
    """Names of the hooks that a hooks plugin implements; it is imported for that."""
    from aiperf.registry.hooking import scratch

    made, target = scratch(one, registry.load("hooks", one.name))
    return sorted(caller.name for caller in made.get_hookcallers(target) or ())


def _plain(one: Descriptor) -> dict[str, Any]:
    return {
        "category": one.category,
        "name": one.name,
        "aliases": one.aliases,
        "summary": one.summary,
        "distribution": one.distribution,
        "version": one.version,
        "object": one.value,
        "api": one.api,
        "priority": one.priority,
        "first_party": one.first_party,
        "capabilities": one.capabilities,
        "requires": one.requires,
        "options": [{"flags": spec.flags, "help": spec.help, "default": spec.default} for spec in one.options],
        "shadows": one.shadows,
        "broken": one.broken,
    }


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def _validated(registry: Registry, distribution: str) -> _Report:
    from aiperf.registry.checks import faults

    known = [one for one in _known(registry) if not distribution or one.distribution == distribution]
    if not known:
        names = sorted({one.distribution for one in _known(registry)})
        close = get_close_matches(distribution, names, 1, 0.6)
        hints = [f"installed: {', '.join(names) or 'none'}", *([f"did you mean {close[0]}?"] if close else [])]
        raise UsageError(f"no installed distribution called {distribution!r} has plugins", *hints)
    found = faults(registry, known)
    wrong = [one for one, _ in found]
    sound = [one for one in known if one not in wrong]
    wanting: tuple[tuple[Descriptor, tuple[str, ...]], ...] = ()
    notes = []
    if not conformance.available():
        notes.append(f"aiperf: {conformance.PYTEST_MISSING}")
    elif sound:
        verdict = conformance.check(registry, sound)
        found += verdict.faults
        wanting = verdict.wanting
    if wanting:
        left = "; ".join(f"{one.category}:{one.name} ({', '.join(what)})" for one, what in wanting)
        notes.append(f"aiperf: not checked, for want of a contract in the manifest that brings the material: {left}")
    lines = [f"{one.category}:{one.name} ({label(one)}): {fault}" for one, fault in found]
    lines.append(f"{_count(len(known), 'plugin')} checked, {_count(len(found), 'fault') if found else 'no fault'}")
    plain = {
        "checked": len(known),
        "faults": [
            {"category": one.category, "name": one.name, "distribution": one.distribution, "fault": fault}
            for one, fault in found
        ],
        "contracts": conformance.available(),
        "wanting": [{"category": one.category, "name": one.name, "material": what} for one, what in wanting],
    }
    return _Report(lines, plain, 1 if found else 0, notes)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _hooks() -> _Report:
    import inspect

    from aiperf import hooks

    found = [
        (name, inspect.signature(member), inspect.getdoc(member) or "")
        for name, member in vars(hooks).items()
        if name.startswith("aiperf_") and callable(member)
    ]
    lines = wrapped((inspect.getdoc(hooks) or "").partition("\n")[0], width())
    for name, signature, text in found:
        lines += ["", *wrapped(f"{name}{_arguments(signature)}", width(), "", "    ")]
        for paragraph in text.split("\n\n"):
            lines += wrapped(" ".join(paragraph.split()), width(), "    ")
    plain = [
        {"hook": name, "arguments": list(signature.parameters), "description": " ".join(text.split())}
        for name, signature, text in found
    ]
    return _Report(lines, plain)


def _arguments(signature: Any) -> str:
    return f"({', '.join(signature.parameters)})"


def _manifest(where: Path) -> _Report:
    from aiperf.registry import generate

    path = generate.manifest_path(where)
    try:
        counts = generate.write(path)
    except OSError as error:
        raise PluginError(f"{path} can't be written: {error.strerror}") from error
    lines = [f"{path}: {_count(number, 'option')} of {model}" for model, number in counts.items()]
    return _Report(lines or [f"{path}: no row has an options_model"], {"manifest": str(path), "options": counts})


def _new(registry: Registry, words: list[str], output: Path) -> _Report:
    from aiperf import scaffold

    if len(words) != 2:
        there_are = f"categories: {', '.join(scaffold.templates())}"
        raise UsageError("aiperf plugins new takes CATEGORY NAME", there_are, f"for example: {_NEW}")
    made = scaffold.new(registry, words[0], words[1], output)
    lines = [
        f"{made.path}: the package {made.distribution}, with the {singular(made.category)} plugin {made.name}",
        "install it, then try it and check it:",
        f"  pip install -e {made.path}",
        f"  pytest {made.path}",
        f"  aiperf plugins validate {made.distribution}",
    ]
    return _Report(lines, msgspec.to_builtins(made, enc_hook=str))
