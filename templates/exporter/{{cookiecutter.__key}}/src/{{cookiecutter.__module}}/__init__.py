"""The {{ cookiecutter.name }} exporter: the run's results as a Markdown table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from aiperf import Artifact, Summary, SummaryExporter, atomic

_COLUMNS = ("avg", "p50", "p99")


class {{ cookiecutter.__class }}(SummaryExporter):
    """``{{ cookiecutter.__key }}.md``."""

    files: ClassVar[dict[str, str]] = {"{{ cookiecutter.__key }}.md": "{prefix_}{{ cookiecutter.__key }}.md"}

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path = self.target.file("{{ cookiecutter.__key }}.md")
        with atomic(path) as draft:
            draft.write_text("\n".join(lines(summary)) + "\n", encoding="utf-8")
        return [Artifact("{{ cookiecutter.__title }} Export", path)]


def lines(summary: Summary) -> Iterator[str]:
    """The file, line by line: metrics in the order of their tags, an empty cell for a statistic that a metric doesn't have."""
    yield f"# Run {summary.run_id}: {summary.measurement.verdict}"
    yield ""
    yield f"| Metric | Unit | {' | '.join(_COLUMNS)} |"
    yield "|---|---|" + "---:|" * len(_COLUMNS)
    for tag in sorted(summary.results):
        result = summary.results[tag]
        cells = [f"{result.stats[key]:.2f}" if key in result.stats else "" for key in _COLUMNS]
        yield f"| {result.title.replace('|', '&#124;')} | {result.unit} | {' | '.join(cells)} |"
