"""What the run and the process of a source say to each other, a line of JSON each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import msgspec
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.snapshot import LiveSeries
from aiperf.sdk.telemetry import TelemetryContext
from msgspec import Struct
from msgspec.structs import replace

BEGIN, END = "begin", "end"


class SourceStart(Struct, frozen=True, tag=True):
    """The first message: the source with its options, the file of samples, and the hooks plugins with their options.

    slices: the phase that has time slices, and their length in ns; None without them.
    series: the plugin that folds the samples; None without one.  secrets: what stands in no line of the log.
    flush_s: longest time behind the last phase until two samples have the same counters.
    named: the user gave an option of the source.  tables: plugins that know which series are the server's queue.
    """

    ref: PluginRef
    options: EncodedOptions | None
    context: TelemetryContext
    path: str
    hooks: tuple[tuple[PluginRef, EncodedOptions | None], ...] = ()
    slices: tuple[int, int] | None = None
    series: tuple[PluginRef, EncodedOptions | None] | None = None
    secrets: tuple[str, ...] = ()
    flush_s: float = 0.5
    named: bool = False
    tables: tuple[PluginRef, ...] = ()

    def same(self, other: SourceStart) -> bool:
        """Whether a source that was started by *other* serves this plan, too."""
        return replace(self, path="", slices=None) == replace(other, path="", slices=None)


class Edge(Struct, frozen=True, tag=True):
    """A phase is about to begin, or has ended at the monotonic instant *at_ns*.  *edge*: BEGIN or END; *last*: of all phases.
    *requests*: how many have ended in the phase; 0 where that isn't known.

    The process returns it when the samples at that edge are on disk, have failed, or don't come in time.
    """

    phase: int
    edge: str
    at_ns: int = 0
    last: bool = False
    requests: int = 0


class Begun(Struct, frozen=True, tag=True):
    """The phase begins at the monotonic instant *at_ns*."""

    phase: int
    at_ns: int


class Rest(Struct, frozen=True, tag=True):
    """The plan is over: write what there is, and wait for another start, with the same source."""


class AskQueue(Struct, frozen=True, tag=True):
    """Between two plans: how many requests do the targets have?  *fresh*: by new samples, not by the latest ones."""

    fresh: bool


class AskLatest(Struct, frozen=True, tag=True):
    """What are the last values?"""


Message: TypeAlias = SourceStart | Edge | Begun | Rest | AskQueue | AskLatest


class SourceTrouble(Struct, frozen=True, tag=True):
    """A message for the report; *absent*: for the log only."""

    message: str
    absent: bool = False


class Ready(Struct, frozen=True, tag=True):
    """Each target has been sampled once, or is absent, or there is none."""


class Gone(Struct, frozen=True, tag=True):
    """There is nothing to sample, or nothing can be written, and the process ends; why, was said before."""


class Folding(Struct, frozen=True, tag=True):
    """The plan is over, no target is sampled any more, and the last folds are made."""


class Folded(Struct, frozen=True, tag=True):
    """All files are written; the source may still release what it holds."""


class Queue(Struct, frozen=True, tag=True):
    """Requests that the targets have in work or waiting, by their latest samples; None where none tells."""

    requests: float | None


class Latest(Struct, frozen=True, tag=True):
    """The answer to AskLatest.  further: series that it leaves out."""

    series: list[LiveSeries]
    further: int = 0


Reply: TypeAlias = Latest | Edge | SourceTrouble | Ready | Gone | Folding | Folded | Queue


@cache
def message_decoder() -> Callable[[bytes], Message]:
    """For the process of a source."""
    return msgspec.json.Decoder(Message).decode


@cache
def reply_decoder() -> Callable[[bytes], Reply]:
    """For the run."""
    return msgspec.json.Decoder(Reply).decode
