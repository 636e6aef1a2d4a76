"""Write the lists of packages in the root ``pyproject.toml``, from each package's own: ``make packages``.

A package says in its ``pyproject.toml`` whether the meta-package needs it::

    [tool.aiperf]
    suite = true             # always; or the name of an extra: suite = "plots"
    extras = ["transformers"]  # extras of its own that the meta-package offers under the same name
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from requirements import ROOT

NAME = "aiperf-suite"


def packages() -> list[dict[str, Any]]:
    """The project files of every package of the repository, by name."""
    folders = [ROOT / "core", ROOT / "templates", *ROOT.glob("libraries/*"), *ROOT.glob("plugins/*/*")]
    files = [file for folder in folders if (file := folder / "pyproject.toml").is_file()]
    return sorted((tomllib.loads(file.read_text()) for file in files), key=lambda package: str(package["project"]["name"]))


def written(text: str) -> str:
    """The root project file *text* with its lists brought up to date."""
    needs: list[str] = []
    extras: dict[str, list[str]] = {}
    for package in packages():
        name, version = package["project"]["name"], package["project"]["version"]
        major, minor = map(int, version.split(".")[:2])
        allowed = f">={major}.{minor},<{major}.{minor + 1}"
        settings = package.get("tool", {}).get("aiperf", {})
        suite = settings.get("suite")
        if suite is True:
            needs.append(f"{name}{allowed}")
        elif suite:
            extras.setdefault(suite, []).append(f"{name}{allowed}")
        for extra in settings.get("extras", ()):
            extras.setdefault(extra, []).append(f"{name}[{extra}]{allowed}")
    extras = dict(sorted(extras.items()))
    extras["all"] = [f"{NAME}[{','.join(extras)}]"]
    lists = {
        r"^dependencies = \[\n.*?^\]\n": "dependencies = [\n" + "".join(f'    "{need}",\n' for need in needs) + "]\n",
        r"^\[project\.optional-dependencies\]\n.*?\n(?=\n)": "[project.optional-dependencies]\n"
        + "".join(f"{extra} = {json.dumps(wanted)}\n" for extra, wanted in extras.items()),
        r"^\[tool\.uv\.sources\]\n.*?\n(?=\n)": "[tool.uv.sources]\n"
        + "".join(f"{package['project']['name']} = {{ workspace = true }}\n" for package in packages()),
    }
    for pattern, replacement in lists.items():
        text, count = re.subn(pattern, lambda _, new=replacement: new, text, count=1, flags=re.MULTILINE | re.DOTALL)  # type: ignore[misc]
        if not count:
            raise SystemExit(f"pyproject.toml has no {pattern}")
    return text


def main() -> int:
    path: Path = ROOT / "pyproject.toml"
    path.write_text(written(path.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
