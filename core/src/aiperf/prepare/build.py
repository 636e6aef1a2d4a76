"""Builds everything that must exist before load: the encoded data set, files of data set exporters, and due times.

It runs in its own process, streams the data set, and depends on the plan alone: the same plan gives the same bytes for any
number of workers.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from aiperf.errors import AiperfError, BadDataset, BadTokenizer, ConfigError, PluginError
from aiperf.prepare.due_times import with_due_times, with_limits
from aiperf.prepare.templates import Templates
from aiperf.registry.hooks import Hooks
from aiperf.registry.third_party import blamed, failure, isolated, load, made, why
from aiperf.rundir.artifacts import exporters, target_for
from aiperf.rundir.journal import RunClock
from aiperf.rundir.store import Store, StoreWriter
from aiperf.sdk.dataset import Dataset, DatasetContext
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.endpoint import Endpoint, completed, encoded, prompt
from aiperf.sdk.exporter import DatasetExporter
from aiperf.sdk.framing import framing_of
from aiperf.sdk.headers import check_header_name, check_header_value
from aiperf.sdk.model import LENGTH_FIELDS, Answers, Conversation, HttpRequest, Message, Turn, names
from aiperf.sdk.plan import ModelStrategy, PhasePlan, Plan
from aiperf.sdk.tokenizer import Tokenizer
from aiperf.statistics.catalogue import catalogue

log = logging.getLogger(__name__)

_READ_AHEAD = 16
"""Conversations whose media are read at once."""
_KNOWN_ANSWERS = tuple(Answers)
_ANSWERS = f"the answers in a history are {names(_KNOWN_ANSWERS)}"


def build(plan: Plan) -> Plan:
    """Write the data set and the due times below ``plan.output.journal``.

    Returns:
        The plan with the number of entries, their order, and the entries, due times, sessions and limits of each phase.

    Raises:
        BadTokenizer, BadDataset, PluginError, ConfigError: With a message for the user.
    """
    plugins, data, run = plan.plugins, plan.data, plan.run
    endpoint: Endpoint = made(plugins.endpoint, plugins.options_of(plugins.endpoint))
    with blamed(plugins.endpoint, "can't be used"):
        framing_of(endpoint)
    catalogue(plan, endpoint)  # refuses metrics whose options contradict each other
    if plugins.grader is not None:
        made(plugins.grader, plugins.options_of(plugins.grader))  # refuses a grader that lacks a dependency
    tokenizer = open_tokenizer(plan)
    source = None if data.source is None else Path(data.source)
    context = DatasetContext(data.entries, run.seed, run.seeded, tokenizer, endpoint.capabilities, source, data.name, data.row)
    try:
        with blamed(plugins.dataset, "can't be used"):
            dataset: Dataset = load(plugins.dataset)(plugins.options_of(plugins.dataset), context)
        order = data.sampling or dataset.preferred_sampling
        if order not in plugins.samplers:
            raise PluginError(f"{plugins.dataset} prefers the order {order!r}; there are {names(sorted(plugins.samplers))}")
        entries = _write(plan, dataset, Encoder(plan, endpoint, tokenizer))
        config = {**run.config}
        if config.get("datasets"):
            first, *plugin_options = config["datasets"]
            config["datasets"] = [{**first, "entries": entries, "sampling": order}, *plugin_options]
        plan = plan.replacing(sampling=order, entries=entries, config=config)
        plan = plan.replacing(phases=_fitted(plan, entries))
        store = Store(Path(plan.output.journal))
        _log_reuse(plan.load.phases, store)
        hooks = Hooks.load(plugins.hooked("aiperf_make_schedule"))
        phases = tuple(with_limits(plan, with_due_times(plan, phase, store, hooks)) for phase in plan.load.phases)
        return plan.replacing(phases=phases)
    except OSError as error:
        raise ConfigError(
            f"the data set can't be written to {plan.output.journal}: {error.strerror or error}",
            "choose another --artifact-dir",
        ) from error


def open_tokenizer(plan: Plan) -> Tokenizer | None:
    """The run's tokenizer; None where nothing is tokenized.

    Raises:
        BadTokenizer: The tokenizer can't be opened.
    """
    ref, name = plan.plugins.tokenizer, plan.data.tokenizer_name
    if ref is None or name is None:
        return None
    try:
        tokenizer: Tokenizer = load(ref)(plan.plugins.options_of(ref)).open(name)
    except AiperfError:
        raise
    except Exception as error:  # third-party code; no run is possible without it
        raise BadTokenizer(
            f"the tokenizer {name!r} can't be opened: {why(error)}",
            "use --tokenizer builtin, which needs no download",
        ) from error
    return tokenizer


def _write(plan: Plan, dataset: Dataset, encoder: Encoder) -> int:
    """Write the conversations to the store and to the exporters' files; the number of entries."""
    unenforced_length = useless_length = False
    models, end = len(plan.target.models), object()
    chosen = exporters(plan, target_for(plan, RunClock(0, 0)), DatasetExporter)  # these exporters use no time
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(StoreWriter(Path(plan.output.journal), models))
        exports = [stack.enter_context(DatasetExport(ref, exporter)) for ref, exporter in chosen]
        with blamed(plan.plugins.dataset, "failed after 0 conversations"):
            conversations: Iterator[Conversation] = islice(dataset, plan.data.first)
            if encoder.capabilities.inline_media:
                conversations = with_inlined_media(conversations, plan.data.source)
        while True:
            try:
                conversation = next(conversations, end)
                if conversation is end:
                    break
                if not isinstance(conversation, Conversation):
                    raise TypeError(f"it gives {type(conversation).__name__}, not Conversation")
            except AiperfError:
                raise
            except (Exception, SystemExit) as error:  # as blamed(), which costs more than the data set
                raise failure(plan.plugins.dataset, f"failed after {store.entries} conversations", error) from error
            if plan.data.delay_ratio != 1.0:
                ratio, turns = plan.data.delay_ratio, conversation.turns
                turns = tuple(replace(turn, delay_ms=turn.delay_ms * ratio) if turn.delay_ms else turn for turn in turns)
                conversation = replace(conversation, turns=turns)
            conversation = without_silent_turns(conversation)
            requests = encoder.requests(conversation)
            unenforced_length = unenforced_length or encoder.unenforced_length(conversation)
            useless_length = useless_length or encoder.useless_length(conversation)
            # With models in turn and entries in order, this is the body that is sent first.
            model = store.entries % models if plan.target.model_strategy == ModelStrategy.ROUND_ROBIN else 0
            store.add(conversation, requests, [encoder.input_tokens(conversation, i, by[0]) for i, by in enumerate(requests)])
            for export in exports:
                export.entry(conversation, [by_model[model].body for by_model in requests])
        if store.entries == 0:
            raise BadDataset("the data set is empty: there is nothing to send")
        grader = plan.plugins.grader
        if grader is not None and not store.graded:
            raise BadDataset(
                f"--accuracy-grader {grader.name} has nothing to grade: the data set {plan.plugins.dataset.name!r}"
                " has no expected answers",
                f"remove --accuracy-grader {grader.name}, or use a data set with expected answers",
            )
        for export in exports:
            export.finish()
    if unenforced_length:
        log.warning(
            "answers may be shorter than the length asked for, because a model may stop early; where the server supports it,"
            " --extra-inputs ignore_eos:true prevents that"
        )
    if useless_length:
        log.warning("the endpoint type %r makes no tokens: output lengths are not sent", plan.plugins.endpoint.name)
    return store.entries


class DatasetExport:
    """The file of one data set exporter: a draft beside the final path, which replaces it when the file is whole.

    An exporter that fails is reported and leaves no file; the run continues without it.
    """

    def __init__(self, ref: PluginRef, exporter: DatasetExporter) -> None:
        self._ref, self._exporter = ref, exporter
        self._path = exporter.target.file(exporter.kind)
        self._draft = self._path.with_name(f".{self._path.name}.draft")
        self._file: BinaryIO | None = None
        self._first = True

    def __enter__(self) -> DatasetExport:
        self._draft.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._draft.open("wb")
        self._write(self._exporter.header)
        return self

    def entry(self, conversation: Conversation, bodies: Sequence[bytes]) -> None:
        """Write one conversation.  *bodies*: request bodies by turn."""
        self._write(partial(self._exporter.entry, conversation, bodies, first=self._first))
        self._first = False

    def finish(self) -> None:
        """Write the end and move the draft to the final path."""
        self._write(self._exporter.footer)
        if self._file is not None:
            self._file.close()
            self._draft.replace(self._path)

    def _write(self, piece: Callable[[], bytes]) -> None:
        if self._file is not None:
            # An OSError is a fault of the disk, not of the exporter.
            with isolated(self._ref, self._failed, f"failed, and {self._path.name} is not written", passing=OSError):
                self._file.write(piece())

    def _failed(self, message: str) -> None:
        log.error("%s", message)
        self.__exit__()

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._draft.unlink(missing_ok=True)


class Encoder:
    """Encodes each turn on its own.  *tokenizer*: None where nothing is tokenized."""

    def __init__(self, plan: Plan, endpoint: Endpoint, tokenizer: Tokenizer | None) -> None:
        self._plan, self._endpoint = plan, endpoint
        self.capabilities = endpoint.capabilities
        counts = self.capabilities.tokenizes_input and not plan.target.use_server_token_count
        self._tokenizer = tokenizer if counts else None
        self._plain_prompts = endpoint.plain_prompts or type(endpoint).prompt_of is Endpoint.prompt_of
        self._templates = Templates(plan.plugins.endpoint) if endpoint.splices_text else None

    def requests(self, conversation: Conversation) -> list[list[HttpRequest]]:
        """The requests by turn, and for each turn by model.

        Raises:
            BadDataset: The endpoint doesn't accept the conversation.
            PluginError: The endpoint failed, or broke a promise.
        """
        if self._templates is None:
            return self._encoded(conversation)
        kind, template = self._templates.of(conversation)
        if kind is None:
            return self._encoded(conversation)
        if template is None:
            requests = self._encoded(conversation)
            other = self._encoded(self._templates.other(conversation))
            self._templates.learn(kind, conversation.turns[0].text, requests[0], other[0])
            return requests
        try:
            filled = template.filled(conversation.turns[0].text)
        except UnicodeError:  # the endpoint has the word
            return self._encoded(conversation)
        if template.uses & (template.uses - 1) == 0:
            self._templates.check(filled, self._encoded(conversation)[0])
        return [filled]

    def _encoded(self, conversation: Conversation) -> list[list[HttpRequest]]:
        self._check(conversation)
        target, requests, later = self._plan.target, [], conversation
        if len(conversation.turns) > 1 and not conversation.alone:
            # Workers add the messages before a later turn, because live answers exist only in the run.
            later = replace(conversation, system=None, context=None, opening=())
        for index, authored in enumerate(conversation.turns):
            shown = later if index else conversation
            by_model = []
            for model in (authored.model,) if authored.model else target.models:
                turn = completed(shown, index, target, model)
                with blamed(self._plan.plugins.endpoint, f"can't encode turn {index} of conversation {conversation.id!r}"):
                    by_model.append(encoded(self._endpoint, turn, target.given_path))
            requests.append(by_model * (len(target.models) // len(by_model)))
        return requests

    def input_tokens(self, conversation: Conversation, index: int, request: HttpRequest) -> int | None:
        """Tokens of what counts as the prompt of the turn's request (spec: metrics §5).

        None where the server counts, and behind an answer, which only the run knows.
        """
        if self._tokenizer is None or (index > 0 and not conversation.alone):
            return None
        turn = conversation.turns[index]
        by_itself = self._plain_prompts and turn.tools is None and turn.items is None and len(turn.texts) <= 1
        history = (*conversation.prelude, *turn.before)
        if turn.input_tokens is not None and by_itself and not history:
            return turn.input_tokens
        turn = replace(turn, history=history)
        with blamed(self._plan.plugins.endpoint, f"can't read the prompt of turn {index} of conversation {conversation.id!r}"):
            counted = prompt(self._endpoint, turn, request)
        return self._tokenizer.count(" ".join(counted.texts)) + len(counted.ids)

    def unenforced_length(self, conversation: Conversation) -> bool:
        """Whether a turn asks for an output length without a field that makes the server keep to it."""
        if not self.capabilities.produces_tokens or LENGTH_FIELDS & self._plan.target.extra.keys():
            return False
        return any(
            turn.max_tokens is not None and turn.payload is None and not LENGTH_FIELDS & turn.extra.keys()
            for turn in conversation.turns
        )

    def useless_length(self, conversation: Conversation) -> bool:
        """Whether a turn asks for an output length, and the endpoint makes no tokens."""
        return not self.capabilities.produces_tokens and any(turn.max_tokens is not None for turn in conversation.turns)

    def _check(self, conversation: Conversation) -> None:
        where, kind = f"conversation {conversation.id!r}", self._plan.plugins.endpoint.name
        if not conversation.turns:
            raise BadDataset(f"{where} has no turns that send a request")
        if not self.capabilities.verbatim and _has_items(conversation):
            raise BadDataset(
                f"{where} has tools or verbatim messages, and the endpoint type {kind!r} can't send them",
                "use an endpoint type with the capability verbatim (chat)",
            )
        earlier = conversation.opening or any(turn.before for turn in conversation.turns)
        if earlier and not self.capabilities.multi_turn:
            raise BadDataset(
                f"{where} has earlier messages, and the endpoint type {kind!r} takes no history", "use --endpoint-type chat"
            )
        if len(conversation.turns) > 1 and not conversation.alone and not self.capabilities.multi_turn:
            raise BadDataset(
                f"{where} has {len(conversation.turns)} turns, and the endpoint type {kind!r} sends single turns only",
                "use an endpoint type with a history (chat), or a data set with one turn per conversation",
            )
        accepted = self.capabilities.media_in
        for index, turn in enumerate(conversation.turns):
            for media in turn.media:
                if media.kind not in accepted:
                    takes = f"takes {names(accepted)}" if accepted else "takes text alone"
                    raise BadDataset(f"turn {index} of {where} has {media.kind}, and the endpoint type {kind!r} {takes}")
            for name, value in turn.headers.items():
                try:
                    check_header_name(name)
                    check_header_value(name, value)
                except ConfigError as error:
                    raise BadDataset(f"turn {index} of {where}: {error.message}", *error.hints) from error


def with_inlined_media(conversations: Iterator[Conversation], source: str | None) -> Iterator[Conversation]:
    """The conversations with their media as ``data:`` URIs; those of several are read at once.

    *source*: the input file; paths may be relative to its folder.

    Raises:
        BadDataset: A medium can't be read.
    """
    from aiperf.sdk.media import MediaReader  # threads, only for such an endpoint

    reader = MediaReader(None if source is None else Path(source).parent)

    def inlined(message: Message) -> Message:
        return replace(message, media=reader.inlined(message.media)) if message.media else message

    while some := list(islice(conversations, _READ_AHEAD)):
        reader.inlined([media for one in some if isinstance(one, Conversation) for turn in one.turns for media in turn.media])
        for one in some:
            if not isinstance(one, Conversation):
                yield one
                continue
            turns = tuple(
                replace(turn, media=reader.inlined(turn.media), before=tuple(map(inlined, turn.before))) for turn in one.turns
            )
            yield replace(one, turns=turns, opening=tuple(map(inlined, one.opening)))


def _has_items(conversation: Conversation) -> bool:
    """Whether a request of the conversation has tools or verbatim messages; a payload replaces both."""
    for turn in conversation.turns:
        messages = (*conversation.opening, *turn.before, *(turn.items or ()))
        if turn.payload is None and (turn.tools or any(message.item is not None for message in messages)):
            return True
    return False


def without_silent_turns(conversation: Conversation) -> Conversation:
    """The turns that send requests; the messages of a silent turn, its delay and tools join the next one.

    Raises:
        BadDataset: The conversation contradicts itself.
    """
    if conversation.answers not in _KNOWN_ANSWERS:
        raise BadDataset(f"the answers of conversation {conversation.id!r} are {conversation.answers!r}", _ANSWERS)
    for turn in conversation.turns:  # half the time of any()
        if turn.silent:
            break
    else:
        return conversation
    if conversation.alone:
        raise BadDataset(f"conversation {conversation.id!r} has silent turns, and its turns are sent without history")
    turns: list[Turn] = []
    waiting = Turn()
    for turn in conversation.turns:
        if turn.silent and turn.role == "assistant" and turn.items is None and conversation.answers != Answers.AUTHORED:
            continue
        before = (*(() if turn.reset else waiting.before), *turn.before)
        delay_ms = (waiting.delay_ms or 0) + (turn.delay_ms or 0) or turn.delay_ms
        tools, reset = waiting.tools if turn.tools is None else turn.tools, waiting.reset or turn.reset
        if turn.silent:
            waiting = Turn(before=(*before, *turn.own), delay_ms=delay_ms, tools=tools, reset=reset)
        else:
            turns.append(replace(turn, before=before, delay_ms=delay_ms, tools=tools, reset=reset))
            waiting = Turn()
    return replace(conversation, turns=tuple(turns))


def _log_reuse(phases: Sequence[PhasePlan], store: Store) -> None:
    """Log how often the run repeats each entry: a server may answer repeated entries from its cache."""
    for phase in phases:
        sessions = phase.session_count
        if sessions is None and phase.request_count is not None:
            entries = range(phase.first_entry, phase.first_entry + phase.entries)
            sessions = -(-phase.request_count * phase.entries // max(1, sum(map(store.turns, entries))))
        if phase.kind == "profiling" and sessions is not None and sessions > phase.entries:
            log.info(
                "%d sessions use %d data set entries, each about %.3g times: a server may have them in its cache",
                sessions, phase.entries, sessions / phase.entries,
            )  # fmt: skip


def _fitted(plan: Plan, entries: int) -> tuple[PhasePlan, ...]:
    """The phases with their parts of the real entries: a data set may give fewer or more than requested.

    Profiling begins at the first entry and warmup takes the last ones, so that they share none where there are enough.  A
    trace, or a data set whose entries are used once, is used whole, and a warmup before it shares its entries.

    Raises:
        ConfigError: A count would use an entry of such a data set twice.
    """
    phases = tuple(_once(plan, phase, entries) if plan.data.once else phase for phase in plan.load.phases)
    whole = plan.data.once or any(phase.replay is not None for phase in phases)
    if entries == sum(phase.entries for phase in phases) and not whole:
        return phases
    warmups = [min(phase.entries, entries) for phase in phases if phase.kind == "warmup"]
    separate = entries > 2 * sum(warmups) and not whole
    if warmups and not separate:
        log.warning("the data set has %d entries: warmup and profiling use the same ones", entries)
    rest = entries - sum(warmups) if separate else entries
    return tuple(
        replace(phase, first_entry=max(0, entries - phase.entries), entries=min(phase.entries, entries))
        if phase.kind == "warmup"
        else replace(phase, first_entry=0, entries=rest)
        for phase in phases
    )


def _once(plan: Plan, phase: PhasePlan, entries: int) -> PhasePlan:
    """The phase; profiling ends with the last entry.  A trace that is replayed does so by itself."""
    if phase.kind == "warmup" or phase.replay is not None:
        return phase
    for flag, count in (("--request-count", phase.request_count), ("--num-sessions", phase.session_count)):
        if count is not None and count > entries:
            raise ConfigError(
                f"{flag} {count}: {plan.data.name or plan.plugins.dataset.name} has {entries} entries, and each is used once",
                f"write {flag} {entries} or less, or drop it to use every entry",
            )
    return phase if phase.request_count is not None else replace(phase, session_count=phase.session_count or entries)
