"""The reference of metrics as Markdown, from the classes themselves."""

from __future__ import annotations

import inspect
from typing import cast

from aiperf import Aggregation, Analysis, Metric, MetricDeclaration, MetricFamily, Needs
from aiperf.sdk.registry import InstalledPlugins

_HEAD = """\
# Metrics

Generated from the classes of the installed packages by `aiperf plugins metrics --markdown`. *Formula* is the first sentence of
a class's docstring. A metric is absent, not zero, where what stands under *needs* is missing; *of* says which requests it looks
at.
"""
_COLUMNS = "| tag | title | unit | formula | when absent, and more | needs | of | fold |\n|---|---|---|---|---|---|---|---|"
_FAMILIES = "\n## Decided by options, or several results at once\n"
_FAMILY_COLUMNS = "| name | what it gives |\n|---|---|"
_MISSING = {
    Needs.STREAMING: "streaming",
    Needs.TOKENS_OUT: "output tokens",
    Needs.TOKENS_IN: "input tokens",
    Needs.CLIENT_TOKENS: "counting by the client",
    Needs.PACED: "due times",
    Needs.REPLAYED: "a fixed schedule",
    Needs.EXPERIMENTAL: "the experimental switch",
    Needs.ONE_ANSWER: "one answer a request",
    Needs.GRADED: "a grader",
    Needs.LENGTHS: "no grader",
    Needs.NUMBERS: "numbers of answers",
}


def page(registry: InstalledPlugins) -> str:
    """The whole page; every installed metric has its row."""
    rows, families = _rows(registry, [descriptor.name for descriptor in registry.all("metrics")])
    return "\n".join([_HEAD, _COLUMNS, *rows, _FAMILIES, _FAMILY_COLUMNS, *families])


def section(registry: InstalledPlugins, names: list[str]) -> list[str]:
    """The lines of some metrics in the README of their package; none without metrics.

    Raises:
        PluginError: One isn't installed, or can't be imported.
    """
    rows, families = _rows(registry, names)
    lines = ["", "## Metrics"] if names else []
    lines += ["", _COLUMNS, *rows] if rows else []
    return lines + (["", _FAMILY_COLUMNS, *families] if families else [])


def _rows(registry: InstalledPlugins, names: list[str]) -> tuple[list[str], list[str]]:
    """Rows of metrics by their tags, and of those that give several results."""
    rows, families = [], []
    for descriptor in (registry.descriptor("metrics", name) for name in names):
        loaded = registry.load("metrics", descriptor.name)
        kind = loaded if inspect.isclass(loaded) else type(loaded)
        if issubclass(kind, MetricFamily | Analysis):
            families.append(_row(f"`{descriptor.name}`", " ".join((inspect.getdoc(kind) or descriptor.summary).split())))
        else:
            metric = cast(MetricDeclaration, loaded() if inspect.isclass(loaded) else loaded)
            rows.append((metric.tag, _metric(metric, inspect.getdoc(kind) or descriptor.summary)))
    return [row for _, row in sorted(rows)], families


def _metric(metric: MetricDeclaration, text: str) -> str:
    formula, _, more = " ".join(text.split()).partition(". ")
    unit = metric.unit if metric.display is None else metric.display
    needs = [word for need, word in _MISSING.items() if need in metric.requires] + [f"`{tag}`" for tag in metric.needs]
    over, fold = "run", "derived"
    if isinstance(metric, Metric):
        over, fold = metric.over.value, metric.fold.value if isinstance(metric.fold, Aggregation) else metric.fold.__name__
    return _row(f"`{metric.tag}`", metric.title, unit.value, formula.rstrip("."), more, ", ".join(needs), over, fold)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
