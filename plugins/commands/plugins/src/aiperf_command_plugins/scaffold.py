"""``aiperf plugins new``: a new plugin package from a template.

The templates come with a distribution of their own, ``aiperf-templates``, which brings cookiecutter along.
"""

from __future__ import annotations

import keyword
import re
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from aiperf import AiperfError, PluginError, UsageError
from aiperf.sdk.registry import CATEGORIES, InstalledPlugins, canonical, find_category, singular
from msgspec import Struct

_MODULE = "aiperf_templates"
_INSTALL = "install what is needed: pip install aiperf-templates"
_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")


class Package(Struct, frozen=True):
    """A new package: its directory, and its names."""

    path: Path
    category: str
    name: str
    distribution: str


def new(registry: InstalledPlugins, category: str, name: str, output: Path) -> Package:
    """Make a package for a plugin in a new directory below *output*, called like the plugin.

    Raises:
        UsageError: There is no such template, or the name is taken or not allowed.
        PluginError: The templates or cookiecutter are not installed.
        AiperfError: The directory is there already or can't be written.
    """
    source = _source()
    folders: dict[str, Path] = source.folders()
    template = _template(folders, category)
    # A category may have several templates: the second one of engines is called site_engine.
    plural = find_category(template) or find_category(template.rpartition("_")[2]) or template
    name = name.strip()
    if not _NAME.fullmatch(name.lower()):
        raise UsageError(
            f"a plugin can't be called {name!r}", "letters, digits and single hyphens make a name, a letter first: my-dialect"
        )
    key = canonical(name)
    _check_free(registry, plural, key, folders[template])
    target = output / key
    if target.exists():
        raise AiperfError(f"{target} is there already", "choose another name, or another directory with --output")
    try:
        source.make(template, name, output)
    except ImportError as error:
        raise PluginError(f"the templates need cookiecutter, which can't be imported: {error}", _INSTALL) from error
    except OSError as error:
        why = "it is a file" if output.is_file() else error.strerror or error
        hint = "name another directory with --output"
        raise AiperfError(f"{error.filename or output} can't be written: {why}", hint) from error
    except Exception as error:  # cookiecutter has many errors
        raise PluginError(f"the template {template!r} can't be used: {type(error).__name__}: {error}") from error
    return Package(target, plural, key, f"aiperf-{template}-{key}".replace("_", "-"))


def templates() -> list[str]:
    """Names of the installed templates.

    Raises:
        PluginError: They are not installed.
    """
    return sorted(_source().folders())


def _source() -> Any:
    """The module that has the templates, a package of its own."""
    try:
        return import_module(_MODULE)
    except ImportError as error:
        raise PluginError("a package is made from templates, which are not installed here", _INSTALL) from error


def _template(folders: dict[str, Path], word: str) -> str:
    """The template of a category in singular or plural, or of the folder's own name."""
    category = find_category(word)
    key = canonical(word)
    for name in folders:
        if name == key or (category is not None and find_category(name) == category):
            return name
    listed = f"templates: {', '.join(sorted(folders))}"
    if category is not None:
        raise UsageError(f"there is no template for {category.replace('_', ' ')}", listed)
    close = get_close_matches(key, [*folders, *CATEGORIES, *map(singular, CATEGORIES)], 1, 0.6)
    raise UsageError(f"there is no plugin category {word!r}", listed, *([f"did you mean {close[0]}?"] if close else []))


def _check_free(registry: InstalledPlugins, category: str, key: str, template: Path) -> None:
    """Refuse the name of a first-party plugin, and one whose class the generated code has already."""
    owner = registry.find(category, key)
    if owner is not None and owner.first_party and owner.name == key:
        raise UsageError(f"the {singular(category)} plugin {key!r} is {owner.package}'s", "choose another name")
    class_name = key.replace("_", " ").title().replace(" ", "")
    sources = (path.read_text(encoding="utf-8") for path in template.rglob("*.py"))
    if keyword.iskeyword(class_name) or any(re.search(rf"\b{class_name}\b", text) for text in sources):
        other = f"{key!r} would give a class called {class_name}, which means something else there"
        raise UsageError(other, "choose another name")
