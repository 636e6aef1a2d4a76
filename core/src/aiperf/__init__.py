"""aiperf: the public door, with the names that most plugins need.

A plugin may import what stands in the ``__all__`` of ``aiperf``, of the modules of ``aiperf.sdk`` (one per category), of
``aiperf.results`` and of ``aiperf.testing``; nothing else is promised.  Names are loaded when they are first used, so that
``import aiperf`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__version__ = "0.1.0"

_WHERE = {
    "errors": "AiperfError BadDataset BadResponse BadTokenizer ConfigError PluginError UsageError",
    "sdk.model": "Conversation Delta ErrorDetails HttpRequest Media Message Part Turn",
    "sdk.endpoint": "Capabilities Endpoint in_band_error unreadable", "sdk.dataset": "Dataset DatasetContext",
    "sdk.tokenizer": "Tokenizer TokenizerSource", "sdk.grader": "Case Grade Grader",
    "sdk.telemetry": "Absent Digest Histogram Point Reading SeriesDeclaration SeriesKind SeriesTable TelemetryContext"
    " TelemetrySource TelemetryTarget",
    "sdk.fetch": "FetchError Fetched", "sdk.ui": "Ui",
    "sdk.live": "LiveEnd LiveFeed LiveRun LiveView Step", "sdk.snapshot": "LogLine Snapshot",
    "sdk.metric": "Analysis MetricDeclaration Aggregation Metric MetricFamily Needs Over"
    " PerRequestMetric RequestView RunMetric Totals Unit",
    "sdk.raw_values": "RawValues", "sdk.columns": "Column Ragged RecordBatch integers ragged",
    "sdk.exporter": "Artifact BatchExporter DatasetExporter Exporter SummaryExporter Target atomic",
    "sdk.summary": "Measurement Result Summary", "sdk.draws": "normal uniform uniforms",
    "sdk.schedule": "Schedule ScheduleContext SessionStarts", "sdk.driver": "Driver DriverContext Session",
    "sdk.engine": "Shard ShardEngine ShardStart SiteEngine SiteStart", "sdk.plan": "PhasePlan Plan",
    "sdk.options": "Options option",
    "sdk.hooks": "hookimpl hookspec", "sdk.command": "Command", "sdk.definition": "Definition Readings",
    "sdk.url_strategy": "UrlStrategy", "sdk.plot": "Axis Figure Plot PlotRun PlotSeries",
    "sdk.verdict": "Evidence Finding FindingLevel Verdict", "processes.local": "LocalProcess", "cli.from_code": "Run profile",
    "cli.sweep_from_code": "sweep",
    "sdk.transport": "NO_STAMP RECONNECTED RESENT REUSED STREAMED Exchange Shape Sink TlsPlan Transport TransportSettings"
    " tls_context",
}  # fmt: skip
"""The public names, by module below ``aiperf``."""

# Literal, for type checkers; a test holds it to _WHERE.
__all__ = [
    "NO_STAMP", "RECONNECTED", "RESENT", "REUSED", "STREAMED", "Absent", "Aggregation", "AiperfError", "Analysis", "Artifact",
    "Axis", "BadDataset", "BadResponse", "BadTokenizer", "BatchExporter", "Capabilities", "Case", "Column", "Command",
    "ConfigError", "Conversation", "Dataset", "DatasetContext", "DatasetExporter", "Definition", "Delta", "Digest", "Driver",
    "DriverContext", "Endpoint", "ErrorDetails", "Evidence", "Exchange", "Exporter", "FetchError", "Fetched", "Figure",
    "Finding", "FindingLevel", "Grade", "Grader", "Histogram", "HttpRequest", "LiveEnd", "LiveFeed", "LiveRun", "LiveView",
    "LocalProcess", "LogLine", "Measurement", "Media", "Message", "Metric",
    "MetricDeclaration", "MetricFamily", "Needs", "Options", "Over", "Part", "PerRequestMetric", "PhasePlan",
    "Plan", "Plot", "PlotRun", "PlotSeries", "PluginError", "Point", "Ragged", "RawValues", "Reading", "Readings",
    "RecordBatch", "RequestView", "Result", "Run", "RunMetric", "Schedule", "ScheduleContext", "SeriesDeclaration",
    "SeriesKind", "SeriesTable", "Session", "SessionStarts", "Shape", "Shard", "ShardEngine", "ShardStart", "Sink",
    "SiteEngine", "SiteStart", "Snapshot", "Step", "Summary", "SummaryExporter", "Target", "TelemetryContext",
    "TelemetrySource", "TelemetryTarget", "TlsPlan", "Tokenizer", "TokenizerSource", "Totals", "Transport",
    "TransportSettings", "Turn", "Ui", "Unit", "UrlStrategy",
    "UsageError", "Verdict", "__version__", "atomic", "hookimpl", "hookspec", "in_band_error", "integers", "normal", "option",
    "profile", "ragged", "sweep", "tls_context", "uniform", "uniforms", "unreadable",
]  # fmt: skip


__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.cli.from_code import Run, profile
    from aiperf.cli.sweep_from_code import sweep
    from aiperf.errors import AiperfError, BadDataset, BadResponse, BadTokenizer, ConfigError, PluginError, UsageError
    from aiperf.processes.local import LocalProcess
    from aiperf.sdk.columns import Column, Ragged, RecordBatch, integers, ragged
    from aiperf.sdk.command import Command
    from aiperf.sdk.dataset import Dataset, DatasetContext
    from aiperf.sdk.definition import Definition, Readings
    from aiperf.sdk.draws import normal, uniform, uniforms
    from aiperf.sdk.driver import Driver, DriverContext, Session
    from aiperf.sdk.endpoint import Capabilities, Endpoint, in_band_error, unreadable
    from aiperf.sdk.engine import Shard, ShardEngine, ShardStart, SiteEngine, SiteStart
    from aiperf.sdk.exporter import Artifact, BatchExporter, DatasetExporter, Exporter, SummaryExporter, Target, atomic
    from aiperf.sdk.fetch import Fetched, FetchError
    from aiperf.sdk.grader import Case, Grade, Grader
    from aiperf.sdk.hooks import hookimpl, hookspec
    from aiperf.sdk.live import LiveEnd, LiveFeed, LiveRun, LiveView, Step
    from aiperf.sdk.metric import (  # isort: skip
        Aggregation, Analysis, Metric, MetricDeclaration, MetricFamily, Needs, Over, PerRequestMetric, RequestView, RunMetric,
        Totals, Unit,
    )  # fmt: skip
    from aiperf.sdk.model import Conversation, Delta, ErrorDetails, HttpRequest, Media, Message, Part, Turn
    from aiperf.sdk.options import Options, option
    from aiperf.sdk.plan import PhasePlan, Plan
    from aiperf.sdk.plot import Axis, Figure, Plot, PlotRun, PlotSeries
    from aiperf.sdk.raw_values import RawValues
    from aiperf.sdk.schedule import Schedule, ScheduleContext, SessionStarts
    from aiperf.sdk.snapshot import LogLine, Snapshot
    from aiperf.sdk.summary import Measurement, Result, Summary
    from aiperf.sdk.telemetry import (  # isort: skip
        Absent, Digest, Histogram, Point, Reading, SeriesDeclaration, SeriesKind, SeriesTable, TelemetryContext,
        TelemetrySource, TelemetryTarget,
    )  # fmt: skip
    from aiperf.sdk.tokenizer import Tokenizer, TokenizerSource
    from aiperf.sdk.transport import (  # isort: skip
        NO_STAMP, RECONNECTED, RESENT, REUSED, STREAMED, Exchange, Shape, Sink, TlsPlan, Transport, TransportSettings,
        tls_context,
    )  # fmt: skip
    from aiperf.sdk.ui import Ui
    from aiperf.sdk.url_strategy import UrlStrategy
    from aiperf.sdk.verdict import Evidence, Finding, FindingLevel, Verdict
