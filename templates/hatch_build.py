"""Puts every template of this folder into the wheel, inside the package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class TemplatesHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install (*version* ``editable``) finds the templates where they are."""
        if version == "standard":
            folders = [path.parent for path in Path(self.root).glob("*/cookiecutter.json")]
            build_data["force_include"] |= {str(folder): f"aiperf_templates/{folder.name}" for folder in folders}
