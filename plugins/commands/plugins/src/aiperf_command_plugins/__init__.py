"""``aiperf plugins``: what is installed, what it can do, what it shadows and why something is broken."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from aiperf import Command, PluginError, UsageError
from aiperf.sdk.registry import CATEGORIES, InstalledPlugins, find_category, singular

from aiperf_command_plugins.report import Report, counted

_NEW = "aiperf plugins new endpoint my-dialect"


class Plugins(Command):
    """Lists, explains, checks and makes plugins."""

    arguments = "[WORD] [CATEGORY] [NAME]"

    def run(self, options: Any, words: Sequence[str]) -> int:
        """0, or 1 where ``validate`` finds a fault."""
        words = [*words, *(word for word in (options.category, options.name) if word is not None)]
        if options.markdown and options.as_json:
            raise UsageError("--markdown and --json exclude each other: a report has one form", "drop one of them")
        if options.markdown and words == ["sdk"] and options.output is not None:
            from aiperf_command_plugins import sdk_page

            print(f"{options.output}: {counted(len(sdk_page.write(options.output)), 'page')}")
            return 0
        if options.markdown:
            print(_markdown(self.registry, words))
            return 0
        report = _report(self.registry, words, options)
        for note in report.notes:
            print(note, file=sys.stderr)
        print(report.json() if options.as_json else report.text)
        return report.code


def _markdown(registry: InstalledPlugins, words: list[str]) -> str:
    from aiperf_command_plugins import endpoint_page, metric_page, option_page, sdk_page, variable_page

    if words == ["options"]:
        return option_page.page(registry)
    if words == ["options", "kernel"]:
        return option_page.kernel_page(registry)
    if words == ["variables", "kernel"]:
        return variable_page.kernel_page()
    if words == ["sdk"]:
        return "\n".join(sdk_page.pages().values()).removesuffix("\n")
    if words == ["variables"]:
        return variable_page.page(registry)
    pages = {"metrics": metric_page.page, "endpoints": endpoint_page.page}
    categories = [find_category(word) for word in words]
    if len(categories) != 1 or categories[0] not in pages:
        others = "or: aiperf plugins endpoints --markdown, options, sdk or variables"
        forms = ("write: aiperf plugins metrics --markdown", others)
        raise UsageError("--markdown prints the reference of metrics, or of endpoints, options, the sdk or variables", *forms)
    return pages[categories[0]](registry)


def _report(registry: InstalledPlugins, words: list[str], options: Any) -> Report:
    from aiperf_command_plugins import listing

    if words[:1] == ["new"]:
        return _new(registry, words[1:], Path() if options.output is None else options.output)
    if options.output is not None:
        raise UsageError(
            "--output says where a new package goes, or the pages of the SDK",
            f"for example: {_NEW} --output DIR", "or: aiperf plugins sdk --markdown --output DIR",
        )  # fmt: skip
    if len(words) > 2:
        left = ", ".join(map(repr, words[2:]))
        raise UsageError(f"left over: {left}; aiperf plugins takes [CATEGORY] [NAME]", "see aiperf plugins --help")
    first, second = [*words, "", ""][:2]
    if options.check or first == "validate":
        from aiperf_command_plugins.validation import validated

        if first != "validate" and second:
            raise UsageError(f"left over: {second!r}; --validate checks all plugins, or those of one distribution")
        return validated(registry, second if first == "validate" else first)
    if first == "hooks":
        from aiperf_command_plugins import hook_page

        return hook_page.package(registry, second) if second else hook_page.reference()
    if first in ("options", "variables"):
        if second not in ("", "kernel"):
            raise UsageError(f"left over: {second!r}", f"aiperf plugins {first} kernel shows those of the kernel")
        return (_options if first == "options" else _variables)(registry, kernel=bool(second))
    if first == "manifest":
        return _manifest(Path(second or "."))
    if first == "readme":
        return _readme(registry, Path(second or "."))
    if not first:
        return listing.names(registry) if options.everything else listing.packages(registry)
    category = find_category(first)
    if category is None:
        close = get_close_matches(first, [*CATEGORIES, *map(singular, CATEGORIES)], 1, 0.6)
        hints = [f"categories: {', '.join(CATEGORIES)}", *([f"did you mean {close[0]}?"] if close else [])]
        raise UsageError(f"there is no plugin category {first!r}", *hints)
    return listing.plugin(registry, category, second) if second else listing.category(registry, category)


def _options(registry: InstalledPlugins, kernel: bool) -> Report:
    from aiperf.parts.tools import table, width

    from aiperf_command_plugins import option_page

    return Report(table(option_page.listed(registry, kernel), width()), option_page.schema(registry, kernel))


def _variables(registry: InstalledPlugins, kernel: bool) -> Report:
    from aiperf.parts.tools import table, width

    from aiperf_command_plugins import variable_page

    found = variable_page.of_kernel() if kernel else variable_page.variables(registry)
    rows = [(one.name, f"{one.what}{f' [default: {one.default}]' if one.default else ''}") for one in found]
    return Report(table(rows, width()), [one._asdict() for one in found])


def _manifest(where: Path) -> Report:
    from aiperf_command_plugins import generate

    path = generate.manifest_path(where)
    try:
        counts = generate.write(path)
    except OSError as error:
        raise PluginError(f"{path} can't be written: {error.strerror}") from error
    lines = [f"{path}: {counted(number, 'option')} of {model}" for model, number in counts.items()]
    return Report(lines or [f"{path}: no row has an options_model"], {"manifest": str(path), "options": counts})


def _readme(registry: InstalledPlugins, where: Path) -> Report:
    from aiperf_command_plugins import readme_page

    path = readme_page.readme_path(where)
    text = readme_page.updated(registry, where)
    changed = text != path.read_text(encoding="utf-8")
    try:
        if changed:
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PluginError(f"{path} can't be written: {error.strerror}") from error
    return Report([f"{path}: {'written' if changed else 'up to date'}"], {"readme": str(path), "changed": changed})


def _new(registry: InstalledPlugins, words: list[str], output: Path) -> Report:
    import msgspec

    from aiperf_command_plugins import scaffold

    if len(words) != 2:
        categories = f"categories: {', '.join(scaffold.templates())}"
        raise UsageError("aiperf plugins new takes CATEGORY NAME", categories, f"for example: {_NEW}")
    package = scaffold.new(registry, words[0], words[1], output)
    lines = [
        f"{package.path}: the package {package.distribution}, with the {singular(package.category)} plugin {package.name}",
        "install it, then try it and check it:",
        f"  pip install -e {package.path}",
        f"  pytest {package.path}",
        f"  aiperf plugins validate {package.distribution}",
    ]
    return Report(lines, msgspec.to_builtins(package, enc_hook=str))


__all__ = ["Plugins"]
