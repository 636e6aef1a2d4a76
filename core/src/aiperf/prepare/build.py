"""Builds everything that must exist before load: the encoded data set, files of data set exporters, and due times.

It runs in its own process, streams the data set, and depends on the plan alone: the same plan gives the same bytes for any
number of workers.  Entries, their encoding and what may begin before they are whole stand in one module: it is one pass over
the data set.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice, tee
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from aiperf.errors import AiperfError, BadDataset, BadTokenizer, ConfigError, PluginError
from aiperf.prepare import pace
from aiperf.prepare.conversations import (
    DatasetExport,
    check_tools,
    has_items,
    with_delays,
    with_inlined_media,
    without_silent_turns,
)
from aiperf.prepare.due_times import StoredTurns, with_due_times
from aiperf.prepare.first_use import FirstUse, Promised, first_use
from aiperf.prepare.shares import fitted, log_reuse
from aiperf.prepare.templates import Template, Templates
from aiperf.prepare.tokenizers import ChatCounter, open_tokenizer
from aiperf.registry.guides import where_is
from aiperf.registry.hooks import Hooks
from aiperf.registry.third_party import blamed, failure, load, made
from aiperf.rundir.artifacts import exporters, target_for
from aiperf.rundir.journal import RunClock
from aiperf.rundir.store import Store, StoreWriter
from aiperf.sdk.cache_bust import CacheBust, marked, marker_tokens
from aiperf.sdk.dataset import Dataset, DatasetContext, Promise
from aiperf.sdk.endpoint import Endpoint, completed, encoded, prompt
from aiperf.sdk.exporter import DatasetExporter
from aiperf.sdk.framing import framing_of
from aiperf.sdk.headers import check_header_name, check_header_value
from aiperf.sdk.model import LENGTH_FIELDS, Conversation, HttpRequest, asks_several, names, speaks
from aiperf.sdk.plan import ModelStrategy, PhasePlan, Plan
from aiperf.sdk.tokenizer import Tokenizer, adds_up, chat_template

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

log = logging.getLogger(__name__)

_HEAD_S, _CHECK_S = 0.25, 2.0
"""What can be made in the first time is whole before the load; a file that can be read in the second is checked whole."""
_GLANCE_S, _FAR = 0.05, 4
"""After that time it is enough to know that all would take so many times longer than these."""
_YIELD = 10
"""How much nicer the builder is where workers and reducers have every core."""


def build(plan: Plan, publish: Callable[[Plan], Callable[[], bool]] | None = None) -> Plan:
    """Write the data set and the due times below ``plan.output.journal``.

    publish: called with the plan where sending may begin before the data set is whole; what it returns says whether to stop.
    None makes the data set whole.

    Returns:
        The plan with the number of entries, their order, and the entries, due times, sessions and limits of each phase.

    Raises:
        BadTokenizer, BadDataset, PluginError, ConfigError: With a message for the user.
    """
    plugins, data, run = plan.plugins, plan.data, plan.run
    endpoint: Endpoint = made(plugins.endpoint, plugins.options_of(plugins.endpoint))
    with blamed(plugins.endpoint, "can't be used"):
        framing_of(endpoint)
    if plugins.grader is not None:
        made(plugins.grader, plugins.options_of(plugins.grader))  # refuses a grader that lacks a dependency
    tokenizer = open_tokenizer(plan)
    source = None if data.source is None else Path(data.source)
    context = DatasetContext(
        data.entries, run.seed, run.seeded, tokenizer, endpoint.capabilities, source, data.name, data.row,
        marker_tokens(data.cache_bust, tokenizer), data.cache_bust.in_system,
        any(phase.replay is not None for phase in plan.load.phases),
        chat_template(tokenizer) if data.chat_template and tokenizer is not None else None,
    )  # fmt: skip
    try:
        with blamed(plugins.dataset, "can't be used"):
            dataset: Dataset = load(plugins.dataset)(plugins.options_of(plugins.dataset), context)
        order = data.sampling or dataset.preferred_sampling
        if order not in plugins.samplers:
            orders = names(sorted(plugins.samplers))
            message = f"{plugins.dataset} prefers the order {order!r}; there are {orders}"
            raise PluginError(message, *where_is("samplers", order))
        promise = None if publish is None else _promise(plan, dataset)
        encoder = Encoder(plan, endpoint, tokenizer)
        with Entries(plan, dataset, encoder, promise) as entries:
            store = entries.promised or entries.whole()
            total = entries.whole().entries if promise is None else promise.count
            with blamed(plugins.dataset, "can't tell of its source"):
                facts = dataset.source_facts() if promise is None else {}
            plan = _with_entries(plan, order, total).replacing(facts=facts)
            _check_encoding(plan, store.max_turns)
            if promise is None or promise.turns is not None:
                log_reuse(plan.load.phases, store)
            hooks = Hooks.load(plugins.hooked("aiperf_make_schedule"))
            phases = tuple(_timed(plan, phase, store, hooks) for phase in plan.load.phases)
            use = None if promise is None else first_use(plan.replacing(phases=phases), promise)
            whole = use is None or entries.head(use)
            plan = plan.replacing(phases=phases, several_answers=encoder.several_answers)
            if publish is not None and use is not None and not whole:
                entries.publish(store.max_turns)
                if use.due_ns is None:
                    pace.tell(entries.pace, total)
                entries.rest(publish(plan))
            elif promise is not None and promise.turns is None:
                log_reuse(phases, entries.whole())
        return plan
    except OSError as error:
        raise ConfigError(
            f"the data set can't be written to {plan.output.journal}: {error.strerror or error}",
            "choose another --artifact-dir",
        ) from error


def _timed(plan: Plan, phase: PhasePlan, store: StoredTurns, hooks: Hooks) -> PhasePlan:
    """The phase with its due times and its rising limits."""
    phase = with_due_times(plan, phase, store, hooks)
    if not phase.concurrency_ramp_ns and not phase.prefill_ramp_ns:
        return phase
    from aiperf.prepare.ramped_limits import with_limits  # numpy

    return with_limits(plan, phase)


def _promise(plan: Plan, dataset: Dataset) -> Promise | None:
    """What the data set promises; None where it must be whole before the load: an engine's workers may be elsewhere."""
    engine = plan.plugins.engine
    if plan.data.whole or not (engine is None or load(engine).shares_memory):
        return None
    with blamed(plan.plugins.dataset, "can't be used"):
        promise = dataset.promise()
    if promise is None or promise.count < 1:
        return None
    return replace(promise, count=min(promise.count, plan.data.first or promise.count))


def _check_encoding(plan: Plan, turns: int) -> None:
    """
    Raises:
        ConfigError: Workers, which don't decompress, would have to read encoded answers beside the load.
    """
    prefills = any(phase.prefill_concurrency is not None for phase in plan.load.phases)
    if plan.target.accept_encoding in ("", "identity") or (turns == 1 and not prefills):
        return
    what = "repeated in later turns" if turns > 1 else "watched for their first token (--prefill-concurrency)"
    raise ConfigError(
        f"answers that are encoded (Accept-Encoding: {plan.target.accept_encoding}) can't be {what}",
        "drop that header, or use single turns without a limit of prefills",
    )


def _with_entries(plan: Plan, order: str, entries: int) -> Plan:
    """The plan with the order and the number of entries, and the parts that its phases have of them."""
    config = {**plan.run.config}
    if config.get("datasets"):
        first, *plugin_options = config["datasets"]
        config["datasets"] = [{**first, "entries": entries, "sampling": order}, *plugin_options]
    plan = plan.replacing(sampling=order, entries=entries, config=config)
    return plan.replacing(phases=fitted(plan, entries))


class Entries:
    """Writes the conversations of *dataset*; use as a context manager.  promise: of the data set, None for none."""

    def __init__(self, plan: Plan, dataset: Dataset, encoder: Encoder, promise: Promise | None) -> None:
        self._plan, self._dataset, self._encoder, self._promise = plan, dataset, encoder, promise
        self._count, self._shuffled = promise.count if promise is not None else 0, False
        self.promised = None if promise is None else Promised(promise, self.whole)
        self._stack = contextlib.ExitStack()
        self._whole: Store | None = None
        self.pace = pace.Pace()
        self._unenforced_length = self._useless_length = self._warned = False

    def __enter__(self) -> Entries:
        plan = self._plan
        chosen = exporters(plan, target_for(plan, RunClock(0, 0)), DatasetExporter)  # these exporters use no time
        with contextlib.ExitStack() as stack:
            journal, target = Path(plan.output.journal), plan.target
            self._store = stack.enter_context(StoreWriter(journal, len(target.models), target.given_path))
            self._exports = [stack.enter_context(DatasetExport(ref, exporter)) for ref, exporter in chosen]
            self._conversations = self._numbered(count(), islice(self._dataset, plan.data.first))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, trace)

    def whole(self) -> Store:
        """The store, once it has all entries.

        Raises:
            BadDataset, PluginError: With a message for the user.
        """
        if self._whole is None:
            self._write(lambda: False)
            self._finish()
            self._whole = Store(Path(self._plan.output.journal))
        return self._whole

    def head(self, use: FirstUse) -> bool:
        """Write the first entries in their order of use, at least its wave: for a moment, or all of a file that is read soon.

        Returns:
            Whether that is all.
        """
        if self._whole is not None:
            return True
        began_s, store, plan, promised = monotonic(), self._store, self._plan, self._count
        source, graded = plan.data.source, plan.plugins.grader is not None
        if use.numbers is not None:
            self._shuffled = True
            store.out_of_order(promised)
            numbers, asked = tee(use.numbers())
            self._conversations = self._numbered(numbers, self._dataset.chosen(asked))

        soon_s = _HEAD_S if source is None else _CHECK_S

        def enough() -> bool:
            self.pace.note(store.entries)
            passed_s = monotonic() - began_s
            # The last entry can't be read yet, and a grader is refused where no answer is expected.
            if store.entries <= use.wave or passed_s < min(_GLANCE_S, _HEAD_S) or graded > store.graded:
                return False
            whole_s = passed_s + (promised - store.entries) / self.pace.rate if self.pace.rate else 0.0
            return passed_s > soon_s or whole_s > (soon_s if passed_s > _HEAD_S else _FAR * soon_s)

        if not self._write(enough) and not self._ahead(use.due_ns):
            self._warn_of_lengths()
            if source is not None:
                log.warning(
                    "%s is not checked whole: sending begins while it is read, and a bad row ends the run; --check-data"
                    " checks it before", source
                )  # fmt: skip
            return False
        self.whole()
        return True

    def _ahead(self, due_ns: Ints | None) -> bool:
        """Write as many entries as it takes for the others to be there when they are due; True if that is all."""
        if due_ns is None:
            return False
        enough = pace.ahead(self.pace, due_ns, self._count, lambda: self.pace.note(self._store.entries))
        return enough is not None and self._write(enough)

    def rest(self, stop: Callable[[], bool]) -> None:
        """Write the other entries, while others read; *stop* ends it early.

        Raises:
            BadDataset, PluginError: With a message for the user.
        """
        plan, several = self._plan, self._encoder.several_answers
        if len(os.sched_getaffinity(0)) <= plan.run.workers + plan.run.reducers:
            os.nice(_YIELD)
        whole = self._write(lambda: stop() or self._encoder.several_answers != several)
        if self._encoder.several_answers != several:  # its metrics were chosen for one answer to a request
            raise BadDataset(
                f"{plan.data.source or plan.plugins.dataset}: conversation {self._store.entries} asks for several answers (n,"
                " or several prompts) behind the begin of the load", "--check-data reads all of it before"
            )  # fmt: skip
        if not whole:
            log.info("the load has ended: %d of %d entries of the data set were made", self._store.entries, self._count)
        self._finish(whole=whole)

    def publish(self, max_turns: int) -> None:
        """Let readers see the entries from now on.  max_turns: promised, of the longest conversation."""
        self._store.max_turns = max(self._store.max_turns, max_turns)
        self._store.publish()

    def _numbered(self, numbers: Iterable[int], conversations: Iterable[Conversation]) -> Iterator[tuple[Conversation, int]]:
        if self._encoder.capabilities.inline_media:
            conversations = with_inlined_media(iter(conversations), self._plan.data.source)
        try:
            for conversation, number in zip(conversations, numbers, strict=False):
                if not isinstance(conversation, Conversation):
                    raise TypeError(f"it gives {type(conversation).__name__}, not Conversation")
                yield conversation, number
        except AiperfError:
            raise
        except (Exception, SystemExit) as error:
            raise failure(self._plan.plugins.dataset, f"failed after {self._store.entries} conversations", error) from error

    def _write(self, enough: Callable[[], bool]) -> bool:
        """Write entries until *enough*, asked behind each; whether there are no more."""
        source, ratio = self._plan.data.source, self._plan.data.delay_ratio
        for conversation, number in self._conversations:
            try:
                self._take(conversation if ratio == 1.0 else with_delays(conversation, ratio), number)
            except AiperfError as error:
                if source is not None:  # a file's conversations often have no ids but those made here
                    error.message = f"{source}, entry {number + 1}: {error.message}"
                raise
            if enough():
                return False
        return True

    def _take(self, conversation: Conversation, number: int) -> None:
        """Check, store and export an entry."""
        promised = self.promised
        usual = promised is None or (promised.recorded_ms is None and len(conversation.turns) == promised.promise.turns)
        if usual and self._repeated(conversation, number):
            return
        conversation = without_silent_turns(conversation)
        if promised is not None and (promised.recorded_ms is not None or len(conversation.turns) != promised.promise.turns):
            self._check_promise(promised, number, conversation)
        self._add(conversation, number)

    def _repeated(self, conversation: Conversation, number: int) -> bool:
        """Store and export an entry of a kind that was checked before; False where it is of another kind."""
        repeated = self._encoder.repeated(conversation)
        if repeated is None:
            return False
        template, tokens = repeated
        try:
            bodies = template.bodies(conversation.turns[0].text)
        except UnicodeError:  # the endpoint has the word
            return False
        self._store.add_like(template.row, conversation, bodies, tokens, number)
        if not self._shuffled:
            body = bodies[self._exported_model(number)]
            for export in self._exports:
                export.entry(conversation, (body,))
        return True

    def _add(self, conversation: Conversation, number: int) -> None:
        """Encode, count and store an entry, and export it where entries come in order."""
        plan, store, encoder = self._plan, self._store, self._encoder
        if plan.data.cache_bust is not CacheBust.NONE:
            marked(conversation, plan.data.cache_bust, "")  # refuses one without a place for the marker
        requests = encoder.requests(conversation)
        if len(conversation.turns) > 1:
            store.counts_add_up = encoder.counts_add_up
        self._unenforced_length = self._unenforced_length or encoder.unenforced_length(conversation)
        self._useless_length = self._useless_length or encoder.useless_length(conversation)
        encoder.note_answers(conversation)
        tokens = [encoder.input_tokens(conversation, i, by[0]) for i, by in enumerate(requests)]
        row = store.add(conversation, requests, tokens, number)
        encoder.stored(conversation, row)
        if not self._shuffled:
            model = self._exported_model(number)
            for export in self._exports:
                export.entry(conversation, [by_model[model].body for by_model in requests])

    def _exported_model(self, number: int) -> int:
        """With models in turn and entries in order, the entry's first body has this one."""
        target = self._plan.target
        return number % len(target.models) if target.model_strategy == ModelStrategy.ROUND_ROBIN else 0

    def _check_promise(self, promised: Promised, number: int, conversation: Conversation) -> None:
        turns, at_ms, given = promised.promise.turns, promised.recorded_ms, conversation.turns
        expected = turns if turns is None or isinstance(turns, int) else turns(number) if promised.asked_turns else None
        if expected not in (None, len(given)):
            raise self._broken(f"{_turns(expected)} in conversation {conversation.id!r}", _turns(len(given)))
        for index, turn in enumerate(given):
            if at_ms is not None and (time_ms := at_ms(number, index)) != turn.timestamp_ms:
                raise self._broken(f"the time {time_ms} ms", f"{turn.timestamp_ms} in {conversation.id!r}")

    def _finish(self, *, whole: bool = True) -> None:
        plan, store, grader, promise = self._plan, self._store, self._plan.plugins.grader, self._promise
        if whole and promise is not None and store.entries != promise.count:
            raise self._broken(f"{promise.count} conversations", f"{store.entries}")
        if store.entries == 0:
            raise BadDataset("the data set is empty: there is nothing to send")
        if grader is not None and not store.graded:
            raise BadDataset(
                f"--accuracy-grader {grader.name} has nothing to grade: the data set {plan.plugins.dataset.name!r}"
                " has no expected answers",
                f"remove --accuracy-grader {grader.name}, or use a data set with expected answers",
            )
        store.close()
        if self._shuffled:  # the files have the entries by their numbers
            stored = Store(Path(plan.output.journal))
            for number in stored.readable() if self._exports else ():
                turns, model = range(stored.turns(number)), self._exported_model(number)
                for export in self._exports:
                    export.entry(stored.conversation(number), [stored.body(number, turn, model) for turn in turns])
        for export in self._exports:
            export.finish()
        self._warn_of_lengths()

    def _warn_of_lengths(self) -> None:
        """Warn once, ahead of the load where the first entries show it."""
        if self._warned:
            return
        self._warned = self._unenforced_length or self._useless_length or self._encoder.several_answers
        if self._encoder.several_answers:
            log.warning(
                "a request asks for several answers (n, or several prompts): the output length sums them, the first token is"
                " the first of any, and inter-token latency and throughput per user are left out"
            )
        if self._useless_length:
            log.warning("the endpoint type %r makes no tokens: output lengths are not sent", self._plan.plugins.endpoint.name)
        if self._unenforced_length:
            log.warning(
                "answers may be shorter than the length asked for, because a model may stop early; where the server supports"
                " it, --extra-inputs ignore_eos:true prevents that"
            )

    def _broken(self, promised: str, given: str) -> PluginError:
        return PluginError(f"{self._plan.plugins.dataset} promised {promised}, and gave {given}")


def _turns(count: int | None) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


class Encoder:
    """Encodes each turn on its own.  *tokenizer*: None where nothing is tokenized."""

    def __init__(self, plan: Plan, endpoint: Endpoint, tokenizer: Tokenizer | None) -> None:
        self._plan, self._endpoint = plan, endpoint
        self.capabilities = endpoint.capabilities
        counts = self.capabilities.tokenizes_input and not plan.target.use_server_token_count
        self._tokenizer = tokenizer if counts else None
        self._chats = ChatCounter(endpoint, tokenizer) if plan.data.chat_template and counts and tokenizer is not None else None
        self._speaks = speaks(plan.target.extra)
        self._plain_prompts = endpoint.plain_prompts or type(endpoint).prompt_of is Endpoint.prompt_of
        self._templates = Templates(plan.plugins.endpoint) if endpoint.splices_text else None
        self._latest: Template | None = None
        self.several_answers = self.capabilities.produces_tokens and asks_several(plan.target.extra)

    @property
    def counts_add_up(self) -> bool:
        return self._tokenizer is not None and adds_up(self._tokenizer)

    def requests(self, conversation: Conversation) -> list[list[HttpRequest]]:
        """The requests by turn, and for each turn by model.

        Raises:
            BadDataset: The endpoint doesn't accept the conversation.
            PluginError: The endpoint failed, or broke a promise.
        """
        self._latest = None
        if self._templates is None:
            return self._encoded(conversation)
        kind, template = self._templates.of(conversation)
        if kind is None:
            return self._encoded(conversation)
        if template is None:
            requests = self._encoded(conversation)
            other = self._encoded(self._templates.other(conversation))
            self._latest = self._templates.learn(kind, conversation.turns[0].text, requests[0], other[0])
            return requests
        self._latest = template
        try:
            filled = template.filled(conversation.turns[0].text)
        except UnicodeError:  # the endpoint has the word
            return self._encoded(conversation)
        if template.uses & (template.uses - 1) == 0:
            self._templates.check(filled, self._encoded(conversation)[0])
        return [filled]

    def stored(self, conversation: Conversation, row: tuple[int, ...]) -> None:
        """Note the row in the store of the conversation that was encoded last: others of its kind differ from it in tokens."""
        if self._latest is not None and (self._tokenizer is None or self._known_tokens(conversation, 0) is not None):
            self._latest.row = row

    def repeated(self, conversation: Conversation) -> tuple[Template, int | None] | None:
        """The template of a conversation of a kind that was stored before, and its tokens; None for other conversations."""
        template = None if self._templates is None else self._templates.of(conversation)[1]
        # At powers of two the endpoint encodes it as well, as a check of its promise.
        if template is None or not template.row or (template.uses + 1) & template.uses == 0:
            return None
        if self._tokenizer is None:
            return template, None
        tokens = conversation.turns[0].input_tokens
        return None if tokens is None else (template, tokens)

    def _known_tokens(self, conversation: Conversation, index: int) -> int | None:
        """What the data set says, where the texts of the turn are all of its prompt; None where the request must be counted."""
        turn = conversation.turns[index]
        by_itself = self._plain_prompts and turn.tools is None and turn.items is None and len(turn.texts) <= 1
        by_itself = by_itself and self._chats is None and not (self._speaks or speaks(turn.extra))
        return turn.input_tokens if by_itself and not (conversation.prelude or turn.before) else None

    def _encoded(self, conversation: Conversation) -> list[list[HttpRequest]]:
        self._check(conversation)
        target, requests, later = self._plan.target, [], conversation
        if len(conversation.turns) > 1 and not conversation.alone:
            # Workers add the messages before a later turn, because live answers exist only in the run.
            later = replace(conversation, system=None, context=None, opening=())
        tools = None
        for index, authored in enumerate(conversation.turns):
            shown, by_model = conversation, []
            tools = authored.tools if conversation.alone or authored.tools is not None else tools
            if index:  # by itself: a look back for the tools would cost the square of the turns
                shown = replace(later, turns=(replace(authored, tools=tools),))
            for model in (authored.model,) if authored.model else target.models:
                turn = completed(shown, 0, target, model)
                with blamed(self._plan.plugins.endpoint, f"can't encode turn {index} of conversation {conversation.id!r}"):
                    by_model.append(encoded(self._endpoint, turn, target.given_path))
            requests.append(by_model * (len(target.models) // len(by_model)))
        return requests

    def input_tokens(self, conversation: Conversation, index: int, request: HttpRequest) -> int | None:
        """Tokens of what counts as the prompt of the turn's request (spec: metrics §5).

        None where the server counts, and behind an answer, which only the run knows.

        Raises:
            BadDataset: The chat template refuses the messages.
        """
        if self._tokenizer is None or (index > 0 and not conversation.alone):
            return None
        if self._chats is not None:
            try:
                return self._chats.tokens(request.body)
            except BadTokenizer as error:
                raise BadDataset(f"turn {index} of conversation {conversation.id!r}: {error.message}", *error.hints) from error
        known = self._known_tokens(conversation, index)
        if known is not None:
            return known
        turn = conversation.turns[index]
        turn = replace(turn, history=(*conversation.prelude, *turn.before), extra={**self._plan.target.extra, **turn.extra})
        with blamed(self._plan.plugins.endpoint, f"can't read the prompt of turn {index} of conversation {conversation.id!r}"):
            counted = prompt(self._endpoint, turn, request)
        return self._tokenizer.count(" ".join(counted.texts)) + len(counted.ids)

    def note_answers(self, conversation: Conversation) -> None:
        """Keep in mind that a turn asks for several answers."""
        if not self.several_answers and self.capabilities.produces_tokens:
            for turn in conversation.turns:
                texts = len(turn.texts) > 1 and self._endpoint.answers_each_text and turn.payload is None
                if texts or ((turn.extra or turn.payload) and (asks_several(turn.extra) or asks_several(turn.payload))):
                    self.several_answers = True

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
        if not self.capabilities.verbatim and has_items(conversation):
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
                    raise BadDataset(
                        f"turn {index} of {where} has {media.kind}, and the endpoint type {kind!r} {takes}",
                        f"drop the row, or use an endpoint type that takes {media.kind} (aiperf plugins endpoints NAME)",
                    )
            if "tools" in turn.extra and self.capabilities.verbatim:
                check_tools(turn.extra["tools"], f"turn {index} of {where}")
            for name, value in turn.headers.items():
                try:
                    check_header_name(name)
                    check_header_value(name, value)
                except ConfigError as error:
                    raise BadDataset(f"turn {index} of {where}: {error.message}", *error.hints) from error
