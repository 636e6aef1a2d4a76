"""What is built before load: the encoded data set, ``inputs.json`` and due times.

Runs in a process of its own, streams, and depends on nothing but the plan: the same plan gives the same bytes, however many
workers will send them.
"""

from __future__ import annotations

import contextlib
import logging
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from aiperf.artifacts import dataset_exporters, target_for
from aiperf.dataset import Dataset, DatasetContext
from aiperf.endpoint import Endpoint
from aiperf.errors import AiperfError, BadDataset, BadTokenizer, PluginError
from aiperf.exporter import DatasetExporter
from aiperf.model import Conversation, HttpRequest, Turn
from aiperf.plan import PhasePlan, Plan
from aiperf.rundir import RunClock
from aiperf.schedule import BLOCK, Schedule, ScheduleContext
from aiperf.store import StoreWriter
from aiperf.tokenizer import Tokenizer

log = logging.getLogger(__name__)


def build(plan: Plan) -> Plan:
    """Write the data set and the due times below ``plan.journal``; the plan comes back with its phases filled in.

    Raises:
        BadTokenizer, BadDataset, PluginError: With the sentence for the user.
    """
    tokenizer = open_tokenizer(plan)
    written = _write_dataset(plan, tokenizer)
    phases = tuple(_with_due_times(plan, _fitted(phase, written, plan)) for phase in plan.phases)
    return msgspec.structs.replace(plan, phases=phases)


def open_tokenizer(plan: Plan) -> Tokenizer | None:
    """The run's tokenizer; None where nothing is tokenized.

    Raises:
        BadTokenizer: It can't be had.
    """
    if plan.tokenizer is None or plan.tokenizer_name is None:
        return None
    source = load(plan.tokenizer)(plan.plugin_options(plan.tokenizer))
    try:
        tokenizer: Tokenizer = source.open(plan.tokenizer_name)
    except AiperfError:
        raise
    except Exception as error:  # a stranger's code; without it there is no run
        raise BadTokenizer(
            f"the tokenizer {plan.tokenizer_name!r} can't be had: {type(error).__name__}: {error}",
            "'--tokenizer builtin' needs no download",
        ) from error
    return tokenizer


def load(ref: Any) -> Any:
    """Import a plugin the plan names.

    Raises:
        PluginError: It doesn't import; names package and version.
    """
    try:
        return ref.load()
    except (ImportError, AttributeError) as error:
        raise PluginError(
            f"the plugin {ref.category}:{ref.name} of {ref.distribution} {ref.version} can't be loaded: {error}"
        ) from error


def _write_dataset(plan: Plan, tokenizer: Tokenizer | None) -> int:
    """Entries written."""
    endpoint: Endpoint = load(plan.endpoint)(plan.plugin_options(plan.endpoint))
    context = DatasetContext(plan.entries, plan.seed, plan.seeded, tokenizer, endpoint.capabilities)
    dataset: Dataset = load(plan.dataset)(plan.plugin_options(plan.dataset), context)
    counts = tokenizer if endpoint.capabilities.tokenizes_input and not plan.use_server_token_count else None
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(StoreWriter(Path(plan.journal), len(plan.models)))
        exports = [stack.enter_context(_Export(exporter)) for exporter in _exporters(plan)]
        for conversation in dataset:
            _check(conversation, endpoint, plan)
            requests = [_encoded(endpoint, plan, conversation, turn) for turn in conversation.turns]
            tokens = [_input_tokens(conversation, index, counts) for index in range(len(conversation.turns))]
            store.add(conversation, requests, tokens)
            for export in exports:
                export.entry(conversation, [by_model[0].body for by_model in requests])
        if store.entries == 0:
            raise BadDataset("the data set is empty: there is nothing to send")
        for export in exports:
            export.finish()
        return store.entries


def _check(conversation: Conversation, endpoint: Endpoint, plan: Plan) -> None:
    if not conversation.turns:
        raise BadDataset(f"conversation {conversation.id!r} has no turns")
    if len(conversation.turns) > 1 and not endpoint.capabilities.multi_turn:
        raise BadDataset(
            f"conversation {conversation.id!r} has {len(conversation.turns)} turns, and the endpoint type"
            f" {plan.endpoint.name!r} sends single turns only",
            "use an endpoint type with a history (chat), or data with one turn a conversation",
        )


def _encoded(endpoint: Endpoint, plan: Plan, conversation: Conversation, turn: Turn) -> list[HttpRequest]:
    """The turn by itself, for every model."""
    return [
        endpoint.encode(
            msgspec.structs.replace(
                turn,
                model=turn.model or model,
                stream=plan.streaming,
                history=conversation.prelude,
                extra={**plan.extra, **turn.extra},
            )
        )
        for model in plan.models
    ]


def _input_tokens(conversation: Conversation, index: int, tokenizer: Tokenizer | None) -> int | None:
    """Tokens of all text parts of the turn's payload joined with one space; None where nobody counts, or where live
    answers stand before it, which only the run will know."""
    turn = conversation.turns[index]
    if tokenizer is None or index > 0:
        return None
    if turn.input_tokens is not None:
        return turn.input_tokens
    parts = [text for message in conversation.prelude for text in message.texts]
    return tokenizer.count(" ".join((*parts, *turn.texts)))


def _exporters(plan: Plan) -> Iterator[DatasetExporter]:
    for _, exporter in dataset_exporters(plan, target_for(plan, RunClock(0, 0))):
        yield exporter


class _Export:
    """A data set exporter's file: written beside its place, moved there when whole."""

    def __init__(self, exporter: DatasetExporter) -> None:
        self._exporter = exporter
        self._path = exporter.target.file(exporter.kind)
        self._draft = self._path.with_name(self._path.name + ".draft")
        self._first = True
        self._file: BinaryIO

    def __enter__(self) -> _Export:
        self._file = self._draft.open("wb")
        self._file.write(self._exporter.header())
        return self

    def entry(self, conversation: Conversation, bodies: list[bytes]) -> None:
        self._file.write(self._exporter.entry(conversation, bodies, first=self._first))
        self._first = False

    def finish(self) -> None:
        self._file.write(self._exporter.footer())
        self._file.close()
        self._draft.replace(self._path)

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._draft.unlink(missing_ok=True)


def _fitted(phase: PhasePlan, written: int, plan: Plan) -> PhasePlan:
    """The phase's part of the entries there really are: a source may give fewer than were asked for."""
    first = phase.first_entry if phase.first_entry < written else 0
    return msgspec.structs.replace(phase, first_entry=first, entries=min(phase.entries or written, written - first))


def _with_due_times(plan: Plan, phase: PhasePlan) -> PhasePlan:
    """Due times of a paced phase, in a file that workers map: arrivals below the request count and the duration.

    With a session count alone how many turns will need a tick is known only from the data: the longest conversation bounds
    it.
    """
    schedule = make_schedule(plan, phase)
    if not schedule.paced:
        return phase
    limit = phase.request_count
    if limit is None and phase.session_count is not None:
        from aiperf.store import Store

        limit = phase.session_count * Store(Path(plan.journal)).max_turns
    path = Path(plan.journal) / f"due-{phase.index}.bin"
    planned = 0
    with path.open("wb") as file:
        while limit is None or planned < limit:
            count = BLOCK if limit is None else min(BLOCK, limit - planned)
            due = schedule.due_block(planned, count)
            if phase.duration_ns is not None:
                due = due[due < phase.duration_ns]
            file.write(array("q", due.tolist()).tobytes())
            planned += len(due)
            if len(due) < count:
                break
    return msgspec.structs.replace(phase, planned=planned, due_file=str(path))


def make_schedule(plan: Plan, phase: PhasePlan) -> Schedule:
    """The schedule the phase names: a hook's, else the plugin of that name."""
    gaps = load(plan.arrivals[phase.pattern]) if phase.pattern is not None else None
    schedule: Schedule = load(plan.schedules[phase.schedule])(ScheduleContext(plan.seed, phase, gaps))
    return schedule
