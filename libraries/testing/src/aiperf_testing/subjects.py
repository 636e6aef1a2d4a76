"""The contract for any installed plugin: the contract of its manifest, else one made from the plugin alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from aiperf.errors import AiperfError, PluginError
from aiperf.registry.registry import Registry
from aiperf.registry.third_party import load
from aiperf.sdk.categories import singular
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.engine import SiteEngine
from aiperf.sdk.exporter import BatchExporter, StudyExporter, SummaryExporter, Target
from aiperf.sdk.metric import Analysis, MetricFamily, Needs, RunMetric

import aiperf_testing
from aiperf_testing.arrivals import ArrivalsContract
from aiperf_testing.configurations import ConfigurationContract
from aiperf_testing.datasets import DatasetContract
from aiperf_testing.endpoints import EndpointContract
from aiperf_testing.engines import ShardEngineContract, SiteEngineContract
from aiperf_testing.exporters import BatchExporterContract, DatasetExporterContract
from aiperf_testing.graders import GraderContract
from aiperf_testing.hooks import HooksContract
from aiperf_testing.manifests import check_row
from aiperf_testing.metrics import AnalysisContract, MetricContract, MetricFamilyContract, RunMetricContract
from aiperf_testing.pipeline import cycle_message
from aiperf_testing.scenarios import ScenarioContract
from aiperf_testing.schedules import ScheduleContract
from aiperf_testing.studies import StudyExporterContract, sample_study
from aiperf_testing.summaries import SummaryExporterContract, sample_summary
from aiperf_testing.tables import TablesContract
from aiperf_testing.telemetry import TelemetryContract
from aiperf_testing.tokenizers import TokenizerContract
from aiperf_testing.transports import HttpTransportContract, TransportContract
from aiperf_testing.trials import Subjects
from aiperf_testing.url_strategies import UrlStrategyContract
from aiperf_testing.verdicts import VerdictContract

WANTING = "only its author has: "

Made = tuple[type[Any], dict[str, Any]]
"""A contract class, and the attributes of its subclass."""


class Material:
    """Test material that only the plugin's author has: a check that reads it is skipped and reported."""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name.lstrip("_")

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        pytest.skip(WANTING + self._name)


class ManifestContract:
    """The contract of plugins of any category."""

    category: str
    plugin: Any

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row(self.category, type(self).plugin)


class Subject:
    """A plugin under test, with all installed plugins."""

    def __init__(self, one: Descriptor, registry: Registry) -> None:
        self.one, self.registry = one, registry
        self.plugin = registry.load(one.category, one.name)

    def options(self) -> Any:
        """The default options; *Material* where an option has no default."""
        model = self.registry.load_options_model(self.one)
        try:
            return None if model is None else model()
        except ValueError:
            return Material()

    def metric(self, tag: str, *above: str) -> list[Any]:
        """The metrics that the metric needs, followed by it.  *above*: the tags that need it.

        Raises:
            LookupError: A metric is not installed.
            PluginError: The metric needs itself.
        """
        if tag in above:
            raise PluginError(cycle_message([*above[above.index(tag) :], tag]))
        if not self.installs(tag):
            raise LookupError(tag)
        needed = Subject(self.registry.descriptor("metrics", tag), self.registry)
        made = needed.made_metric()
        return [*(metric for need in made.needs for metric in self.metric(need, *above, tag)), made]

    def installs(self, tag: str) -> bool:
        """Whether a metric of this tag is installed; else it may be a number of answers."""
        return self.registry.find("metrics", tag) is not None

    def made_metric(self) -> Any:
        options = self.options()
        return self.plugin() if options is None else self.plugin(options)


def case(subjects: str, index: int) -> type[Any]:
    """The tests of plugin *index* in a file of :class:`Subjects`; one failing test where the plugin can't be constructed."""
    known, tried = _read(subjects)
    try:
        return _contract(tried[index], known)
    except Exception as error:  # noqa: BLE001  # third-party code
        why = error.message if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"

        def fail(self: object) -> None:
            pytest.fail(why, pytrace=False)

        return type("Unmade", (), {"test_it_can_be_made": fail})


def _contract(one: Descriptor, known: Registry) -> type[Any]:
    if one.broken is not None:
        raise PluginError(one.broken)
    if one.contract is not None:
        contract: type[Any] = load(PluginRef("", "", one.contract, "", ""))
        return type(contract.__name__, (contract,), {})
    subject = Subject(one, known)
    base, own = _MAKERS.get(one.category, _any)(subject)
    return type(one.key, (base,), own)


@cache
def _read(subjects: str) -> tuple[Registry, tuple[Descriptor, ...]]:
    told = msgspec.json.decode(Path(subjects).read_bytes(), type=Subjects)
    return Registry(told.known, kernel_options=()), told.tried


def _any(subject: Subject) -> Made:
    """The contract in the module of the category's name, which calls the plugin by the category's singular.

    Where there is none, that of manifests alone.
    """
    category = subject.one.category
    listed = (name for name, module in aiperf_testing.MODULES.items() if module == category)
    name = next((name for name in listed if name.endswith("Contract")), None)
    if name is None:
        return ManifestContract, {"category": category, "plugin": subject.plugin}
    contract: type[Any] = vars(import_module(f"{aiperf_testing.__name__}.{category}"))[name]
    own = {singular(category).replace(" ", "_"): subject.plugin}
    return contract, own | ({"options": subject.options()} if "options" in dir(contract) else {})


def _endpoint(subject: Subject) -> Made:
    options = subject.options()
    endpoint = options if isinstance(options, Material) else subject.plugin(options)
    return EndpointContract, {"endpoint": endpoint, "transcript": Material(), "answer": Material()}


def _dataset(subject: Subject) -> Made:
    return DatasetContract, {"dataset": subject.plugin, "make": Material()}


def _exporter(subject: Subject) -> Made:
    own = {"exporter": subject.plugin, "options": subject.options()}
    if issubclass(subject.plugin, SummaryExporter):
        return SummaryExporterContract, own | {"writes": _writes(subject.plugin, own["options"])}
    if issubclass(subject.plugin, StudyExporter):
        return StudyExporterContract, own | {"writes": _writes_of_a_study(subject.plugin, own["options"])}
    return BatchExporterContract if issubclass(subject.plugin, BatchExporter) else DatasetExporterContract, own


def _writes(exporter: type[SummaryExporter], options: Any) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        try:
            return bool(exporter(Target(Path(directory)), options).export(sample_summary()))
        except Exception:  # noqa: BLE001  # third-party code; the contract repeats the error
            return True


def _writes_of_a_study(exporter: type[StudyExporter], options: Any) -> bool:
    with tempfile.TemporaryDirectory() as directory:
        try:
            return bool(exporter(Target(Path(directory)), options).export_study(sample_study(Path(directory))))
        except Exception:  # noqa: BLE001  # third-party code; the contract repeats the error
            return True


def _metric(subject: Subject) -> Made:
    if issubclass(subject.plugin, MetricFamily):
        return MetricFamilyContract, {"family": subject.made_metric()}
    made = subject.made_metric()
    if isinstance(made, RunMetric):
        return RunMetricContract, {"metric": made}
    try:
        installed = [tag for tag in made.needs if Needs.NUMBERS not in made.requires or subject.installs(tag)]
        needed: Any = tuple(metric for tag in installed for metric in subject.metric(tag, made.tag))
    except LookupError:
        needed = Material()
    return AnalysisContract if isinstance(made, Analysis) else MetricContract, {"metric": made, "needed": needed}


def _telemetry(subject: Subject) -> Made:
    own = {"source": subject.plugin, "options": subject.options()}
    return TelemetryContract, own | ({} if _starts(subject.plugin, own["options"]) else {"_started": Material()})


def _starts(source: Any, options: Any) -> bool:
    """Whether the source finds something to sample here."""
    if isinstance(options, Material):
        return False
    try:
        made = source(options, TelemetryContract.context)
        made.start()
        made.stop()
    except Exception:  # noqa: BLE001  # third-party code; most likely there is nothing to sample
        return False
    return True


def _engine(subject: Subject) -> Made:
    own = {"engine": subject.plugin, "options": subject.options()}
    if not issubclass(subject.plugin, SiteEngine):
        return ShardEngineContract, own
    return SiteEngineContract, own if _has_sites(subject.plugin, own["options"]) else own | {"options": Material()}


def _has_sites(engine: type[SiteEngine], options: Any) -> bool:
    """Whether the engine has sites by default; most need options that name them."""
    if isinstance(options, Material):
        return False
    try:
        return bool(engine(options).names())
    except AiperfError:
        return False


def _schedule(subject: Subject) -> Made:
    return ScheduleContract, {"schedule": subject.plugin}


def _grader(subject: Subject) -> Made:
    return GraderContract, {"grader": subject.plugin, "options": subject.options(), "cases": Material()}


def _verdict(subject: Subject) -> Made:
    return VerdictContract, {"verdict": subject.plugin, "options": subject.options(), "cases": Material()}


def _tables(subject: Subject) -> Made:
    return TablesContract, {"tables": subject.plugin, "options": subject.options(), "cases": Material()}


def _scenario(subject: Subject) -> Made:
    author = {name: Material() for name in ("plans", "cases")}
    return ScenarioContract, {"scenario": subject.plugin, "options": subject.options(), **author}


def _configuration(subject: Subject) -> Made:
    author: dict[str, Any] = {name: Material() for name in ("example", "sets", "mistake")}
    return ConfigurationContract, {"configuration": subject.plugin, **author}


def _transport(subject: Subject) -> Made:
    if set(subject.one.capabilities.get("schemes", ("http", "https"))) <= {"http", "https"}:
        return HttpTransportContract, {"transport": subject.plugin}
    return TransportContract, {"transport": subject.plugin, "serve": Material()}


def _tokenizer(subject: Subject) -> Made:
    return TokenizerContract, {"source": subject.plugin, "tokenizer": Material()}


def _as(contract: type[Any], field: str) -> Callable[[Subject], Made]:
    return lambda subject: (contract, {field: subject.plugin})


_MAKERS: Mapping[str, Callable[[Subject], Made]] = MappingProxyType(
    {
        "endpoints": _endpoint,
        "datasets": _dataset,
        "exporters": _exporter,
        "metrics": _metric,
        "graders": _grader,
        "telemetry": _telemetry,
        "tokenizers": _tokenizer,
        "engines": _engine,
        "schedules": _schedule,
        "arrivals": _as(ArrivalsContract, "gaps"),
        "url_strategies": _as(UrlStrategyContract, "strategy"),
        "transports": _transport,
        "verdicts": _verdict,
        "tables": _tables,
        "scenarios": _scenario,
        "configurations": _configuration,
        "hooks": _as(HooksContract, "hooks"),
    }
)
