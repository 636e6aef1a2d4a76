"""The categories of plugins.  A new category is one entry of this table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from aiperf.sdk.descriptor import canonical


class Category(Struct, frozen=True):
    """One category; its entry-point group is ``aiperf.<name>``.

    singular: the name in sentences.  summary: what its plugins are.
    chosen_by: flags of the kernel that take the name of a plugin.
    base: ``module:Class`` that a plugin derives from; None where the contract is a function or a protocol.
    every: every installed plugin takes part in a run; else the run uses a plugin by name.
    """

    name: str
    singular: str
    summary: str
    chosen_by: tuple[str, ...] = ()
    base: str | None = None
    every: bool = False


_TABLE = (
    Category("endpoints", "endpoint", "API dialects: bytes out, meaning back. Chosen by --endpoint-type.",
        chosen_by=("--endpoint-type",), base="aiperf.sdk.endpoint:Endpoint"),
    Category("datasets", "dataset", "Sources of conversations.", base="aiperf.sdk.dataset:Dataset"),
    Category("exporters", "exporter", "Readers of results: files, tables, uploads.", base="aiperf.sdk.exporter:Exporter",
        every=True),
    Category("metrics", "metric", "What a request, or a run, is worth.", every=True),
    Category("graders", "grader", "Accuracy graders. Chosen by --accuracy-grader.", base="aiperf.sdk.grader:Grader"),
    Category("telemetry", "telemetry", "Sources of samples beside the load: GPUs, server metrics.",
        base="aiperf.sdk.telemetry:TelemetrySource", every=True),
    Category("reducers", "reducer", "What becomes of the journal: columns, statistics, the summary.",
        base="aiperf.sdk.reducer:Reducer"),
    Category("series", "series", "What becomes of the samples of telemetry sources.", base="aiperf.sdk.series:Series"),
    Category("tokenizers", "tokenizer", "Text to tokens. Chosen by --tokenizer."),
    Category("schedules", "schedule", "Scheduling modes: which arrival is due when. Chosen by --scheduling-mode.",
        chosen_by=("--scheduling-mode",)),
    Category("arrivals", "arrival", "Distributions of the time between arrivals. Chosen by --arrival-pattern.",
        chosen_by=("--arrival-pattern", "--warmup-arrival-pattern")),
    Category("drivers", "driver", "How a phase is driven: burst, paced, sessions.", base="aiperf.sdk.driver:Driver",
        every=True),
    Category("ramps", "ramp", "How a limit or rate grows.", chosen_by=("--ramp",)),
    Category("samplers", "sampler", "Order in which data set entries are used.", chosen_by=("--dataset-sampling-strategy",)),
    Category("url_strategies", "url strategy", "Which base URL a session uses.", chosen_by=("--url-strategy",)),
    Category("transports", "transport", "Ways to move bytes. Chosen by --transport.", chosen_by=("--transport",)),
    Category("engines", "engine", "Where shards run.", base="aiperf.sdk.engine:RunEngine"),
    Category("companions", "companion", "What works beside the load: sampling, waiting for a server.",
        base="aiperf.sdk.companion:Companion", every=True),
    Category("uis", "ui", "Live displays. Chosen by --ui-type.", base="aiperf.sdk.ui:Ui"),
    Category("live", "live", "What watches runs while they go on, in a process of its own, and may end them.",
        base="aiperf.sdk.live:LiveView", every=True),
    Category("plots", "plot", "Pictures of results. Drawn by aiperf plot."),
    Category("definitions", "definition", "What tools mean by latency and throughput. Shown by aiperf report --definitions.",
        base="aiperf.sdk.definition:Definition"),
    Category("verdicts", "verdict", "Judges of finished runs: whether numbers can be trusted, and what may mislead.",
        base="aiperf.sdk.verdict:Verdict", every=True),
    Category("tables", "table", "Tables of finished runs, in the summary and in the report.", base="aiperf.sdk.table:Tables",
        every=True),
    Category("configurations", "configuration", "Formats of configuration files. Chosen by the suffix of --config.",
        base="aiperf.sdk.configuration:Configuration"),
    Category("scenarios", "scenario", "Rules of benchmarks: what they fill in and refuse. Chosen by --scenario.",
        chosen_by=("--scenario",), base="aiperf.sdk.scenario:BenchmarkScenario"),
    Category("planners", "planner", "Which runs a sweep has: listed cells or a search. Chosen by --sweep-type.",
        chosen_by=("--sweep-type",), base="aiperf.sdk.planner:Planner"),
    Category("commands", "command", "Subcommands of aiperf.", base="aiperf.sdk.command:Command"),
    Category("hooks", "hook", "Free pluggy plugins: any hook of the run's life cycle.", every=True),
)  # fmt: skip
CATEGORIES: Mapping[str, Category] = MappingProxyType({category.name: category for category in _TABLE})


def find_category(word: str) -> str | None:
    """The name of the category that a person means: its name or its singular, in any case; None for another word."""
    word = canonical(word)
    return next((name for name, each in CATEGORIES.items() if word in (name, each.singular.replace(" ", "_"))), None)


def singular(category: str) -> str:
    """``url_strategies`` to ``url strategy``."""
    return CATEGORIES[category].singular


def chosen_by(flags: tuple[str, ...]) -> str | None:
    """The category whose plugins an option with these flags names; None for other options."""
    return next((name for name, each in CATEGORIES.items() if set(flags) & set(each.chosen_by)), None)


__all__ = ["CATEGORIES", "Category", "find_category", "singular"]
