"""What the suite requires, and which package has which plugin and option: read from the packages beside it, when it is built.

A source distribution has no packages beside it; it carries ``contents.json``, as a wheel does.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
CONTENTS = HERE / "src" / "aiperf_suite" / "contents.json"
PATTERNS = ("core", "templates", "libraries/*", "plugins/*/*")
NAME = "aiperf-suite"


def folders() -> list[Path]:
    """The packages of the checkout; none in a source distribution."""
    found = (path for pattern in PATTERNS for path in HERE.parent.glob(pattern))
    return sorted(path for path in found if (path / "pyproject.toml").is_file())


def gathered(packages: list[Path]) -> dict[str, Any]:
    """``requires`` and ``extras`` of the suite; ``plugins``: distribution by ``category:name``; ``flags``: by option."""
    projects = {path: tomllib.loads((path / "pyproject.toml").read_text()) for path in packages}
    requires: list[str] = []
    extras: dict[str, list[str]] = {}
    plugins: dict[str, str] = {}
    flags: dict[str, str] = {}
    manifests: list[tuple[dict[str, Any], str]] = []
    for path, project in sorted(projects.items(), key=lambda item: str(item[1]["project"]["name"])):
        name, version = project["project"]["name"], project["project"]["version"]
        major, minor = map(int, version.split(".")[:2])
        allowed = f">={major}.{minor},<{major}.{minor + 1}"
        settings = project.get("tool", {}).get("aiperf", {})
        wanted = settings.get("suite")
        if wanted is True:
            requires.append(f"{name}{allowed}")
        elif wanted:
            extras.setdefault(wanted, []).append(f"{name}{allowed}")
        for extra in settings.get("extras", ()):
            extras.setdefault(extra, []).append(f"{name}[{extra}]{allowed}")
        for file in path.glob("src/*/aiperf.yaml"):
            if path.parent.parent.name == "plugins":
                manifests.append((yaml.safe_load(file.read_text()), name))
                _take(*manifests[-1], plugins, flags)
    _take_lent(manifests, _lent(packages), flags)
    extras = dict(sorted(extras.items()))
    extras["all"] = [f"{NAME}[{','.join(extras)}]"]
    found = {"plugins": dict(sorted(plugins.items())), "flags": dict(sorted(flags.items()))}
    return {"requires": requires, "extras": extras, **found}


def _lent(packages: list[Path]) -> dict[str, Any]:
    """The option groups of libraries, which packages with plugins name."""
    found: dict[str, Any] = {}
    for path in packages:
        for file in path.glob("src/*/aiperf.yaml") if path.parent.name == "libraries" else ():
            found |= yaml.safe_load(file.read_text()).get("option_groups", {})
    return found


def _take_lent(manifests: list[tuple[dict[str, Any], str]], lent: dict[str, Any], flags: dict[str, str]) -> None:
    """Add the flags of libraries' option groups, each with the first package that has it."""
    for manifest, package in manifests:
        named = (name for row in manifest["plugins"] for name in row.get("option_groups", ()))
        for option in (option for name in named for option in lent.get(name, ())):
            for flag in option["flags"]:
                flags.setdefault(flag, package)


def _take(manifest: dict[str, Any], package: str, plugins: dict[str, str], flags: dict[str, str]) -> None:
    for row in manifest["plugins"]:
        for word in (row["name"], *row.get("aliases", ())):
            plugins[f"{row['category']}:{word}"] = package
    shared = manifest.get("option_groups", {}).values()
    own = (row.get("options", ()) for row in manifest["plugins"] if row["category"] != "commands")
    for options in (*own, *shared):
        for option in options:
            for flag in option["flags"]:
                flags.setdefault(flag, package)


def contents() -> dict[str, Any]:
    """As :func:`gathered`; of a source distribution, what it carries."""
    packages = folders()
    if packages:
        return gathered(packages)
    carried: dict[str, Any] = json.loads(CONTENTS.read_text())
    return carried


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ModuleNotFoundError:  # tests read the contents without building
    pass
else:

    class Requirements(MetadataHookInterface):
        def update(self, metadata: dict[str, Any]) -> None:
            made = contents()
            metadata["dependencies"], metadata["optional-dependencies"] = made["requires"], made["extras"]

    class Carried(BuildHookInterface[Any]):
        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            CONTENTS.write_text(json.dumps(contents(), indent=0) + "\n")
