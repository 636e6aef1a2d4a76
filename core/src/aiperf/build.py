"""What is built before load: the encoded data set, what data set exporters write, and due times.

Runs in a process of its own, streams, and depends on nothing but the plan: the same plan gives the same bytes, however many
workers will send them.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from msgspec.structs import replace

from aiperf import pairs
from aiperf.artifacts import dataset_exporters, target_for
from aiperf.dataset import Dataset, DatasetContext
from aiperf.descriptor import PluginRef
from aiperf.due import with_due_times
from aiperf.endpoint import Endpoint, encoded
from aiperf.errors import AiperfError, BadDataset, BadTokenizer, ConfigError, PluginError
from aiperf.exporter import DatasetExporter
from aiperf.limits import with_limits
from aiperf.model import LENGTH_FIELDS, Conversation, HttpRequest, names
from aiperf.pipeline import catalogue
from aiperf.plan import PhasePlan, Plan
from aiperf.rundir import RunClock
from aiperf.store import Store, StoreWriter
from aiperf.strangers import failure, made, who, why
from aiperf.strangers import load as load
from aiperf.tokenizer import Tokenizer

log = logging.getLogger(__name__)

def build(plan: Plan) -> Plan:
    """Write the data set and the due times below ``plan.journal``; the plan comes back with what is known now.

    That is: each phase's entries, its files of due times, sessions and limits, the number of entries and their order.

    Raises:
        BadTokenizer, BadDataset, PluginError, ConfigError: With the sentence for the user.
    """
    catalogue(plan, load(plan.endpoint).capabilities)  # metrics that can't be as their options say refuse the run here
    if plan.grader is not None:
        made(plan.grader, plan.plugin_options(plan.grader))  # one that lacks something says so here
    tokenizer = open_tokenizer(plan)
    try:
        plan = _with_dataset(plan, tokenizer)
        plan = replace(plan, phases=_fitted(plan))
        store = Store(Path(plan.journal))
        _say_reuse(plan, store)
        phases = tuple(with_limits(plan, with_due_times(plan, phase, store)) for phase in plan.phases)
        return replace(plan, phases=phases)
    except OSError as error:
        raise ConfigError(
            f"the data set can't be written to {plan.journal}: {error.strerror or error}", "choose another --artifact-dir"
        ) from error


def open_tokenizer(plan: Plan) -> Tokenizer | None:
    """The run's tokenizer; None where nothing is tokenized.

    Raises:
        BadTokenizer: It can't be had.
    """
    if plan.tokenizer is None or plan.tokenizer_name is None:
        return None
    try:
        tokenizer: Tokenizer = load(plan.tokenizer)(plan.plugin_options(plan.tokenizer)).open(plan.tokenizer_name)
    except AiperfError:
        raise
    except Exception as error:  # a stranger's code; without it there is no run
        raise BadTokenizer(
            f"the tokenizer {plan.tokenizer_name!r} can't be had: {why(error)}",
            "--tokenizer builtin counts without any download",
        ) from error
    return tokenizer


def _with_dataset(plan: Plan, tokenizer: Tokenizer | None) -> Plan:
    """Write the data set; the plan with its order and the number of entries there are."""
    endpoint: Endpoint = made(plan.endpoint, plan.plugin_options(plan.endpoint))
    source = None if plan.source is None else Path(plan.source)
    context = DatasetContext(plan.entries, plan.seed, plan.seeded, tokenizer, endpoint.capabilities, source)
    dataset: Dataset = made(plan.dataset, plan.plugin_options(plan.dataset), context)
    order = plan.sampling or dataset.preferred_sampling
    if order not in plan.samplers:
        raise PluginError(f"{who(plan.dataset)} prefers the order {order!r}; there are {names(sorted(plan.samplers))}")
    encoder = _Encoder(plan, endpoint, tokenizer)
    free = False
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(StoreWriter(Path(plan.journal), len(plan.models)))
        exports = [stack.enter_context(_Export(ref, exporter)) for ref, exporter in _exporters(plan)]
        for authored in islice(_conversations(plan.dataset, dataset), plan.first):
            conversation = _paused(authored, plan.delay_ratio)
            requests = encoder.requests(conversation)
            free = free or encoder.leaves_free(conversation)
            tokens = [encoder.input_tokens(conversation, index) for index in range(len(conversation.turns))]
            # With the models in turn and the entries in order, this is the body that is sent first.
            model = store.entries % len(plan.models) if plan.model_strategy == "round_robin" else 0
            store.add(conversation, requests, tokens)
            for export in exports:
                export.entry(conversation, [by_model[model].body for by_model in requests])
        if store.entries == 0:
            raise BadDataset("the data set is empty: there is nothing to send")
        if plan.grader is not None and not store.graded:
            raise BadDataset(
                f"--accuracy-grader {plan.grader.name} has nothing to grade: the data set {plan.dataset.name!r} says of no turn"
                " what answer is expected",
                "drop it, or use a data set with expected answers",
            )
        for export in exports:
            export.finish()
        entries = store.entries
    if free:
        log.warning(
            "answers may be shorter than the length asked for: a model ends where it will; where the server knows it,"
            " --extra-inputs ignore_eos:true keeps it going"
        )
    config = {**plan.config}
    if config.get("datasets"):
        first, *others = config["datasets"]
        config["datasets"] = [{**first, "entries": entries, "sampling": order}, *others]
    return replace(plan, sampling=order, entries=entries, config=config)


def _conversations(ref: PluginRef, dataset: Dataset) -> Iterator[Conversation]:
    """What the data set gives; what it raises becomes a sentence."""
    given = 0
    try:
        for conversation in dataset:
            if not isinstance(conversation, Conversation):
                raise TypeError(f"it gives {type(conversation).__name__}, not Conversation")
            yield conversation
            given += 1
    except AiperfError:
        raise
    except Exception as error:  # strangers' code
        raise failure(who(ref), f"failed after {given} conversations", error) from error


def _paused(conversation: Conversation, ratio: float) -> Conversation:
    """With every think time times *ratio*; 0 leaves none."""
    if ratio == 1.0:
        return conversation
    turns = (replace(turn, delay_ms=turn.delay_ms * ratio) if turn.delay_ms else turn for turn in conversation.turns)
    return replace(conversation, turns=tuple(turns))


class _Encoder:
    """Conversations to what is sent, each turn by itself."""

    def __init__(self, plan: Plan, endpoint: Endpoint, tokenizer: Tokenizer | None) -> None:
        self._plan, self._endpoint = plan, endpoint
        self._can = endpoint.capabilities
        self._counts = tokenizer if self._can.tokenizes_input and not plan.use_server_token_count else None

    def requests(self, conversation: Conversation) -> list[list[HttpRequest]]:
        """Per turn, per model.

        Raises:
            BadDataset: The endpoint can't take it.
        """
        self._check(conversation)
        return [self._requests(conversation, index) for index in range(len(conversation.turns))]

    def leaves_free(self, conversation: Conversation) -> bool:
        """Whether a length is asked for that nothing keeps the model to."""
        if not self._can.produces_tokens or LENGTH_FIELDS & self._plan.extra.keys():
            return False
        return any(
            turn.max_tokens is not None and turn.payload is None and not LENGTH_FIELDS & turn.extra.keys()
            for turn in conversation.turns
        )

    def _requests(self, conversation: Conversation, index: int) -> list[HttpRequest]:
        plan, authored = self._plan, conversation.turns[index]
        turn = replace(
            authored,
            stream=plan.streaming,
            per_chunk_usage=plan.per_chunk_usage,
            # Earlier turns come with their live answers, which only the run will know.
            history=conversation.prelude if index == 0 or conversation.alone else (),
            extra={**plan.extra, **authored.extra},
        )
        if authored.model:
            return [self._encoded(conversation, index, turn)] * len(plan.models)
        return [self._encoded(conversation, index, replace(turn, model=model)) for model in plan.models]

    def _encoded(self, conversation: Conversation, index: int, turn: Any) -> HttpRequest:
        try:
            request = encoded(self._endpoint, turn)
        except AiperfError:
            raise
        except Exception as error:  # strangers' code
            what = f"can't encode turn {index} of conversation {conversation.id!r}"
            raise failure(who(self._plan.endpoint), what, error) from error
        return replace(request, headers=pairs.merged(request.headers, turn.headers)) if turn.headers else request

    def _check(self, conversation: Conversation) -> None:
        what, kind = f"conversation {conversation.id!r}", self._plan.endpoint.name
        if not conversation.turns:
            raise BadDataset(f"{what} has no turns")
        if len(conversation.turns) > 1 and not conversation.alone and not self._can.multi_turn:
            raise BadDataset(
                f"{what} has {len(conversation.turns)} turns, and the endpoint type {kind!r} sends single turns only",
                "use an endpoint type with a history (chat), or data with one turn a conversation",
            )
        for index, turn in enumerate(conversation.turns):
            for media in turn.media:
                if media.kind not in self._can.media_in:
                    takes = f"takes {names(self._can.media_in)}" if self._can.media_in else "takes text alone"
                    raise BadDataset(f"turn {index} of {what} has {media.kind}, and the endpoint type {kind!r} {takes}")
            for name, value in turn.headers.items():
                try:
                    pairs.check_header_name(name)
                    pairs.check_header_value(name, value)
                except ConfigError as error:
                    raise BadDataset(f"turn {index} of {what}: {error.message}", *error.hints) from error

    def input_tokens(self, conversation: Conversation, index: int) -> int | None:
        """Tokens of all text parts of the turn's payload joined with one space (spec: metrics §5); None where nobody counts,
        or where live answers stand before it, which only the run will know."""
        turn = conversation.turns[index]
        if self._counts is None or (index > 0 and not conversation.alone):
            return None
        parts = [*(text for message in conversation.prelude for text in message.texts), *turn.texts]
        if turn.input_tokens is not None and len(parts) == len(turn.texts) <= 1:
            return turn.input_tokens
        return self._counts.count(" ".join(parts))


def _say_reuse(plan: Plan, store: Store) -> None:
    """Tell how often entries come again: what a server has seen it may answer from its cache."""
    for phase in plan.phases:
        sessions = phase.session_count
        if sessions is None and phase.request_count is not None:
            entries = range(phase.first_entry, phase.first_entry + phase.entries)
            sessions = -(-phase.request_count * phase.entries // max(1, sum(map(store.turns, entries))))
        if phase.kind == "profiling" and sessions is not None and sessions > phase.entries:
            log.info(
                "%d sessions use %d data set entries, each about %.3g times: a server may have them in its cache",
                sessions, phase.entries, sessions / phase.entries,
            )  # fmt: skip


def _exporters(plan: Plan) -> Sequence[tuple[PluginRef, DatasetExporter]]:
    return dataset_exporters(plan, target_for(plan, RunClock(0, 0)))  # time zero is of no use to them


class _Export:
    """A data set exporter's file: written beside its place, moved there when whole.

    An exporter that fails is reported and leaves no file; the run goes on without it.
    """

    def __init__(self, ref: PluginRef, exporter: DatasetExporter) -> None:
        self._ref, self._exporter = ref, exporter
        self._path = exporter.target.file(exporter.kind)
        self._draft = self._path.with_name(f".{self._path.name}.draft")
        self._file: BinaryIO | None = None
        self._first = True

    def __enter__(self) -> _Export:
        self._draft.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._draft.open("wb")
        with self._isolated():
            self._file.write(self._exporter.header())
        return self

    def entry(self, conversation: Conversation, bodies: Sequence[bytes]) -> None:
        if self._file is not None:
            with self._isolated():
                self._file.write(self._exporter.entry(conversation, bodies, first=self._first))
            self._first = False

    def finish(self) -> None:
        """Put the file into its place."""
        if self._file is not None:
            with self._isolated():
                self._file.write(self._exporter.footer())
        if self._file is not None:
            self._file.close()
            self._draft.replace(self._path)

    @contextlib.contextmanager
    def _isolated(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # the disk, not the exporter
            raise
        except Exception as error:  # strangers' code
            log.error("%s failed, and %s is not written: %s", who(self._ref), self._path.name, why(error))
            log.debug("the traceback:", exc_info=error)
            self._drop()

    def _drop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._draft.unlink(missing_ok=True)

    def __exit__(self, *_: object) -> None:
        self._drop()


def _fitted(plan: Plan) -> tuple[PhasePlan, ...]:
    """The phases' parts of the entries there really are: a source may give fewer than were asked for, or more.

    Profiling begins at the first entry and warmup takes the last ones, so that they share none where there are enough.  A
    trace is replayed whole, and a warmup before it shares its entries.
    """
    asked = sum(phase.entries for phase in plan.phases)
    there = plan.entries
    whole = any(phase.replay is not None for phase in plan.phases)
    if there == asked and not whole:
        return plan.phases
    warmups = [min(phase.entries, there) for phase in plan.phases if phase.kind == "warmup"]
    apart = there > 2 * sum(warmups) and not whole
    if warmups and not apart:
        log.warning("the data set has %d entries: warmup and profiling use the same ones", there)
    fitted = []
    for phase in plan.phases:
        if phase.kind == "warmup":
            entries = min(phase.entries, there)
            fitted.append(replace(phase, first_entry=there - entries, entries=entries))
        else:
            fitted.append(replace(phase, first_entry=0, entries=there - sum(warmups) if apart else there))
    return tuple(fitted)
