"""The page: head, policy, sections, script.  It needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from string import Template

from aiperf_report_page.evidence import measurement, phases, tables, telemetry
from aiperf_report_page.markup import escaped, section
from aiperf_report_page.numbers import all_numbers, key_numbers, tiles
from aiperf_report_page.opening import ReportedRun
from aiperf_report_page.sections import failures, settings, verdict, workload

log = logging.getLogger(__name__)
MARK = "<!doctype html>\n<!-- a report of aiperf -->\n"
"""How a page begins."""
_STYLES = (("aiperf_pages", "style.css"), ("aiperf_plot_site", "plots.css"), (str(__package__), "report.css"))
_SCRIPTS = (
    ("aiperf_pages", "elements.js"), ("aiperf_plot_site", "figure.js"), ("aiperf_plot_site", "view.js"),
    (str(__package__), "report.js"),
)  # fmt: skip
_PAGE = Template("""$mark<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$policy">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>$title – aiperf</title>
<link rel="icon" href="data:,">
<style>$style</style>
</head>
<body>
<a class="skip" href="#main">To the report</a>
<header class="top"><h1>$title</h1><span class="grow"></span></header>
<nav aria-label="Sections"><ul>$links</ul></nav>
<main id="main" tabindex="-1">
$body</main>
<footer class="soft"><p>$footer</p></footer>
<script>$script</script>
</body>
</html>
""")
_POLICY = Template(
    "default-src 'none'; script-src 'sha256-$script'; style-src 'sha256-$style'; img-src data:; base-uri 'none';"
    " form-action 'none'"
)
"""The page's one script and its one style sheet run, and nothing else."""
_NAMED = re.compile(r'<section class="panel" id="([\w-]+)" aria-labelledby="[\w-]+"><h2 id="[\w-]+">([^<]*)</h2>')
_OTHER_FORM = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a summary of another form, whatever it holds, may raise."""
_TITLED = 3
"""Runs that the title names."""


def page(runs: Sequence[ReportedRun], drawn: str, version: str, *, baseline_named: bool) -> tuple[str, list[str]]:
    """The page of *runs*, the first of which is the baseline, and a sentence on each section that can't be made.

    drawn: the section of figures.  version: of this program.
    """
    parts: dict[str, Callable[[], str]] = {
        "Verdict": lambda: verdict(runs, baseline_named), "Key numbers": lambda: _key_numbers(runs),
        "Workload": lambda: workload(runs), "Figures": lambda: drawn,
        "All metrics": lambda: section("metrics", "All metrics", all_numbers(runs)),
        "Failures": lambda: failures(runs), "Measurement": lambda: measurement(runs),
        "Phases and slices": lambda: phases(runs), "Telemetry": lambda: telemetry(runs),
        "Tables and groups": lambda: tables(runs), "Configuration": lambda: settings(runs),
    }  # fmt: skip
    unmade: list[str] = []
    body = "".join(_made(name, make, unmade) for name, make in parts.items())
    style, script = _read(_STYLES), _read(_SCRIPTS)
    names = [run.label for run in runs[:_TITLED]]
    more = f" and {len(runs) - _TITLED} others" if len(runs) > _TITLED else ""
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in _NAMED.findall(body))
    footer = escaped(f"Made by aiperf {version}; the file needs no network.")
    text = _PAGE.substitute(
        mark=MARK, title=escaped(" · ".join(names) + more), style=style, script=script, body=body, links=links, footer=footer,
        policy=_POLICY.substitute(style=_hash(style), script=_hash(script)),
    )  # fmt: skip
    return text, unmade


def _key_numbers(runs: Sequence[ReportedRun]) -> str:
    return section("key-numbers", "Key numbers", tiles(runs[0]) if len(runs) == 1 else key_numbers(runs))


def _made(name: str, make: Callable[[], str], unmade: list[str]) -> str:
    """A section, or a sentence in its place."""
    try:
        return make()
    except _OTHER_FORM as error:
        log.debug("%s", name, exc_info=True)
        unmade.append(
            f"the section {name} can't be made: a summary is not in the form that this program and the reference write"
            f" ({type(error).__name__}: {error})"
        )
        return section(name.lower().replace(" ", "-"), name, f'<p class="bad">{escaped(unmade[-1])}</p>\n')


@cache
def _read(names: tuple[tuple[str, str], ...]) -> str:
    return "\n".join((files(package) / "static" / name).read_text(encoding="utf-8") for package, name in names)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


__all__ = ["MARK", "page"]
