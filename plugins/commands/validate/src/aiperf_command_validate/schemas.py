"""The JSON Schemas that installed exporters ship of their files."""

from __future__ import annotations

import importlib.resources
import json
import logging
from collections.abc import Callable
from typing import Any

import fastjsonschema
from aiperf.sdk.registry import InstalledPlugins

log = logging.getLogger(__name__)

Check = Callable[[Any], str | None]
"""What is wrong with a document, None if nothing is."""


def schemas(registry: InstalledPlugins) -> dict[str, Check]:
    """By kind of artifact.  An exporter's manifest says ``capabilities: {schemas: {KIND: FILE}}``, FILE in its package."""
    checks: dict[str, Check] = {}
    for exporter in registry.all("exporters"):
        for kind, file in dict(exporter.capabilities.get("schemas", {})).items():
            try:
                package = importlib.resources.files(exporter.value.partition(":")[0].partition(".")[0])
                checks[kind] = _check(json.loads(package.joinpath(file).read_bytes()))
            except (OSError, ImportError, ValueError, TypeError, fastjsonschema.JsonSchemaDefinitionException) as error:
                log.warning("the schema %s of %s %s can't be used: %s", file, exporter.distribution, exporter.version, error)
    return checks


def _check(schema: dict[str, Any]) -> Check:
    validate = fastjsonschema.compile(schema, use_default=False)

    def check(document: Any) -> str | None:
        try:
            validate(document)
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message).replace("data.", "", 1) if str(error.message).startswith("data.") else str(error.message)
        return None

    return check
