"""Write the kernel's ``packages.json``, names of all plugins and options of this repository, from manifests: ``make names``."""

from __future__ import annotations

import json
import sys
import tomllib
from itertools import chain
from typing import Any

import yaml
from requirements import ROOT

PATH = ROOT / "core" / "src" / "aiperf" / "registry" / "packages.json"


def written() -> str:
    plugins: dict[str, str] = {}
    flags: dict[str, str] = {}
    for project in sorted(ROOT.glob("plugins/*/*/pyproject.toml")):
        name = tomllib.loads(project.read_text())["project"]["name"]
        (path,) = project.parent.glob("src/*/aiperf.yaml")
        manifest: dict[str, Any] = yaml.safe_load(path.read_text())
        for row in manifest["plugins"]:
            for word in (row["name"], *row.get("aliases", ())):
                plugins[f"{row['category']}:{word}"] = name
            for option in row.get("options", ()) if row["category"] != "commands" else ():
                for flag in option["flags"]:
                    flags.setdefault(flag, name)
        for option in chain.from_iterable(manifest.get("option_groups", {}).values()):  # of several plugins
            for flag in option["flags"]:
                flags.setdefault(flag, name)
    return json.dumps({"plugins": dict(sorted(plugins.items())), "flags": dict(sorted(flags.items()))}, indent=0) + "\n"


if __name__ == "__main__":
    PATH.write_text(written())
    sys.exit(0)
