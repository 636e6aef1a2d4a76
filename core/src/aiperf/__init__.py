"""aiperf: the public door.  What stands in ``__all__`` is what a plugin may import; nothing else is promised.

Names are loaded when first used, so that ``import aiperf`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "errors": ("AiperfError", "BadDataset", "BadResponse", "BadTokenizer", "ConfigError", "PluginError", "UsageError"),
    "model": ("Conversation", "Delta", "ErrorDetails", "HttpRequest", "Media", "Message", "Turn"),
    "endpoint": ("Capabilities", "Endpoint", "in_band_error", "unreadable"),
    "dataset": ("Dataset", "DatasetContext"),
    "rowfile": ("rows",),
    "tokenizer": ("Tokenizer", "TokenizerSource"),
    "grader": ("Grade", "Grader"),
    "telemetry": ("Absent", "Histogram", "Point", "SeriesKind", "TelemetryContext", "TelemetrySource"),
    "ui": ("Ui",),
    "progress": ("Snapshot",),
    "metric": (
        "Analysis", "Declared", "Fold", "Metric", "MetricFamily", "Needs", "Over", "PerRequestMetric", "RequestView",
        "RunMetric", "Totals", "Unit",
    ),
    "kept": ("Kept",),
    "columns": ("Column", "Ragged", "RecordBatch", "integers", "ragged"),
    "exporter": (
        "Artifact", "BatchExporter", "DatasetExporter", "Exporter", "Scored", "SummaryExporter", "Target", "atomic",
    ),
    "summary": ("Measurement", "Result", "Summary"),
    "draws": ("normal", "uniform", "uniforms"),
    "schedule": ("Schedule", "ScheduleContext", "SessionStarts"),
    "shards": ("Shard", "ShardEngine", "ShardStart"),
    "plan": ("PhasePlan", "Plan"),
    "options": ("Options", "option"),
    "hooks": ("hookimpl", "hookspec"),
    "command": ("Command",),
    "definition": ("Definition", "Readings"),
    "balance": ("UrlStrategy",),
    "plot": ("Axis", "Figure", "Plot", "PlotRun", "Series"),
    "local": ("LocalProcess",),
    "engine.contract": ("Exchange", "Shape", "Sink", "Transport", "TransportSettings", "tls_context"),
    "engine.transport": ("KernelTransport",),
    "journal": ("NO_STAMP", "RECONNECTED", "REUSED", "STREAMED"),
}
_MODULES = {name: module for module, listed in _WHERE.items() for name in listed}

# Literal, for type checkers; a test holds it to _WHERE.
__all__ = [
    "NO_STAMP", "RECONNECTED", "REUSED", "STREAMED", "Absent", "AiperfError", "Analysis", "Artifact", "Axis", "BadDataset",
    "BadResponse", "BadTokenizer", "BatchExporter", "Capabilities", "Column", "Command", "ConfigError", "Conversation",
    "Dataset", "DatasetContext", "DatasetExporter", "Declared", "Definition", "Delta", "Endpoint", "ErrorDetails",
    "Exchange", "Exporter", "Figure", "Fold", "Grade", "Grader", "Histogram", "HttpRequest", "Kept", "KernelTransport",
    "LocalProcess", "Measurement", "Media", "Message", "Metric", "MetricFamily", "Needs", "Options", "Over",
    "PerRequestMetric", "PhasePlan", "Plan", "Plot", "PlotRun", "PluginError", "Point", "Ragged", "Readings", "RecordBatch",
    "RequestView", "Result", "RunMetric", "Schedule", "ScheduleContext", "Scored", "Series", "SeriesKind", "SessionStarts",
    "Shape", "Shard", "ShardEngine", "ShardStart", "Sink", "Snapshot", "Summary", "SummaryExporter", "Target",
    "TelemetryContext", "TelemetrySource", "Tokenizer", "TokenizerSource", "Totals", "Transport", "TransportSettings",
    "Turn", "Ui", "Unit", "UrlStrategy", "UsageError", "__version__", "atomic", "hookimpl", "hookspec", "in_band_error",
    "integers", "normal", "option", "ragged", "rows", "tls_context", "uniform", "uniforms", "unreadable",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'aiperf' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"aiperf.{module}"), name)
    globals()[name] = value
    return value


if TYPE_CHECKING:
    from aiperf.balance import UrlStrategy
    from aiperf.columns import Column, Ragged, RecordBatch, integers, ragged
    from aiperf.command import Command
    from aiperf.dataset import Dataset, DatasetContext
    from aiperf.definition import Definition, Readings
    from aiperf.draws import normal, uniform, uniforms
    from aiperf.endpoint import Capabilities, Endpoint, in_band_error, unreadable
    from aiperf.engine.contract import Exchange, Shape, Sink, Transport, TransportSettings, tls_context
    from aiperf.engine.transport import KernelTransport
    from aiperf.errors import AiperfError, BadDataset, BadResponse, BadTokenizer, ConfigError, PluginError, UsageError
    from aiperf.exporter import Artifact, BatchExporter, DatasetExporter, Exporter, Scored, SummaryExporter, Target, atomic
    from aiperf.grader import Grade, Grader
    from aiperf.hooks import hookimpl, hookspec
    from aiperf.journal import NO_STAMP, RECONNECTED, REUSED, STREAMED
    from aiperf.kept import Kept
    from aiperf.local import LocalProcess
    from aiperf.metric import (
        Analysis,
        Declared,
        Fold,
        Metric,
        MetricFamily,
        Needs,
        Over,
        PerRequestMetric,
        RequestView,
        RunMetric,
        Totals,
        Unit,
    )
    from aiperf.model import Conversation, Delta, ErrorDetails, HttpRequest, Media, Message, Turn
    from aiperf.options import Options, option
    from aiperf.plan import PhasePlan, Plan
    from aiperf.plot import Axis, Figure, Plot, PlotRun, Series
    from aiperf.progress import Snapshot
    from aiperf.rowfile import rows
    from aiperf.schedule import Schedule, ScheduleContext, SessionStarts
    from aiperf.shards import Shard, ShardEngine, ShardStart
    from aiperf.summary import Measurement, Result, Summary
    from aiperf.telemetry import Absent, Histogram, Point, SeriesKind, TelemetryContext, TelemetrySource
    from aiperf.tokenizer import Tokenizer, TokenizerSource
    from aiperf.ui import Ui
