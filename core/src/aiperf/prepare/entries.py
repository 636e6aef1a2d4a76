"""One pass over the data set: which entries are made now, and what each goes through."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice, tee
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from aiperf import environment
from aiperf.errors import AiperfError, BadDataset, PluginError
from aiperf.prepare import pace
from aiperf.prepare.asked_answers import AskedAnswers
from aiperf.prepare.conversations import with_delays, with_inlined_media, without_silent_turns
from aiperf.prepare.encoder import Encoder
from aiperf.prepare.exports import DatasetExports
from aiperf.prepare.first_use import FirstUse, Promised
from aiperf.prepare.lead import Lead
from aiperf.registry.third_party import blamed, failure
from aiperf.rundir.ahead import write_ahead
from aiperf.rundir.store import Store
from aiperf.rundir.store_writer import StoreWriter
from aiperf.rundir.uses import Uses
from aiperf.sdk.cache_bust import CacheBust, marked
from aiperf.sdk.dataset import Dataset, Promise
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.grader import Grader
from aiperf.sdk.model import Conversation
from aiperf.sdk.plan import Plan

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints

log = logging.getLogger(__name__)

_HEAD_S, _CHECK_S = 0.25, 2.0
"""What can be made in the first time is whole before the load; a file that can be read in the second is checked whole."""
_GLANCE_S, _FAR = 0.05, 4
"""After that time it is enough to know that all would take so many times longer than these."""
_LOOK_S = 0.02
"""From one look at how far the load is to the next."""
_YIELD = 10
"""How much nicer the builder is where workers and reducers have every core."""


class EntryWriter:
    """Checks, stores and exports entries.  answers: what they ask of their answers."""

    def __init__(
        self, plan: Plan, endpoint: Endpoint, encoder: Encoder, store: StoreWriter, exports: DatasetExports,
        grader: Grader | None,
    ) -> None:  # fmt: skip
        self._plan, self._encoder, self._store, self._exports = plan, encoder, store, exports
        self._marks = plan.data.cache_bust is not CacheBust.NONE
        self.answers = AskedAnswers(plan, endpoint, grader)

    def take(self, conversation: Conversation, number: int, promised: Promised | None) -> None:
        """Check, store and export an entry."""
        usual = promised is None or (promised.recorded_ms is None and len(conversation.turns) == promised.promise.turns)
        if usual and self._repeated(conversation, number):
            return
        conversation = without_silent_turns(conversation)
        if promised is not None and (conversation.streams or promised.trees):
            self._check_tree(promised.promise, number, conversation)
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
        if self._exports.live:
            self._exports.entry(conversation, (bodies[self._exports.model(number)],))
        return True

    def _add(self, conversation: Conversation, number: int) -> None:
        """Encode, count and store an entry, and export it where entries come in order."""
        store, encoder = self._store, self._encoder
        if self._marks:
            marked(conversation, self._plan.data.cache_bust, "")  # refuses one without a place for the marker
        conversation = encoder.completed(conversation)
        requests = encoder.requests(conversation)
        if len(conversation.turns) > 1:
            store.counts_add_up = encoder.tokens.add_up
        self.answers.note(conversation)
        tokens = [encoder.tokens.of(conversation, i, by[0]) for i, by in enumerate(requests)]
        row = store.add(conversation, requests, tokens, number)
        encoder.stored(conversation, row)
        if self._exports.live:
            model = self._exports.model(number)
            self._exports.entry(conversation, [by_model[model].body for by_model in requests])

    def _check_tree(self, promise: Promise, number: int, conversation: Conversation) -> None:
        if promise.outline is None or not promise.trees:
            raise _broken(self._plan, "no conversations that start others", f"{conversation.id!r}, which does")
        outline = promise.outline(number)
        if (outline.id, outline.streams) != (conversation.id, conversation.streams):
            raise _broken(self._plan, f"the tree of {outline.id!r}", f"another one as {conversation.id!r}")

    def _check_promise(self, promised: Promised, number: int, conversation: Conversation) -> None:
        turns, at_ms, given = promised.promise.turns, promised.recorded_ms, conversation.turns
        expected = turns if turns is None or isinstance(turns, int) else turns(number) if promised.asked_turns else None
        if expected not in (None, len(given)):
            raise _broken(self._plan, f"{_turns(expected)} in conversation {conversation.id!r}", _turns(len(given)))
        for index, turn in enumerate(given):
            if at_ms is not None and (time_ms := at_ms(number, index)) != turn.timestamp_ms:
                raise _broken(self._plan, f"the time {time_ms} ms", f"{turn.timestamp_ms} in {conversation.id!r}")

    def finish(self, *, whole: bool) -> None:
        """Complete the files, of the store and of exporters.  *whole*: all entries are in."""
        store, grader = self._store, self._plan.plugins.grader
        if store.entries == 0:
            raise BadDataset("the data set is empty: there is nothing to send")
        if grader is not None and not store.graded:
            raise BadDataset(
                f"--accuracy-grader {grader.name} has nothing to grade: the data set {self._plan.plugins.dataset.name!r}"
                " has no expected answers",
                f"remove --accuracy-grader {grader.name}, or use a data set with expected answers",
            )
        store.close(whole=whole)
        self._exports.finish()
        self.answers.warn()


class Entries:
    """The conversations of *dataset* as they are made.  promise: of the data set, None for none.

    pace: how fast they are made.  promised: the store as far as the promise goes, None without one.
    """

    def __init__(
        self, plan: Plan, dataset: Dataset, endpoint: Endpoint, encoder: Encoder, store: StoreWriter, exports: DatasetExports,
        promise: Promise | None, grader: Grader | None = None,
    ) -> None:  # fmt: skip
        self._plan, self._dataset, self._store, self._exports = plan, dataset, store, exports
        self._writer = EntryWriter(plan, endpoint, encoder, store, exports, grader)
        self._inlines_media, self._keeps_urls = endpoint.capabilities.inline_media, endpoint.capabilities.keeps_urls
        self.promised = None if promise is None else Promised(promise, self.whole)
        self.pace = pace.Pace()
        self._whole: Store | None = None
        self._lead: Lead | None = None
        self._uses: Uses | None = None
        with blamed(plan.plugins.dataset, "failed"):
            chosen = islice(dataset, plan.data.first)
        self._conversations = self._numbered(count(), chosen)

    @property
    def several_answers(self) -> bool:
        """Whether a request that was made by now asks for several answers."""
        return self._writer.answers.several

    @property
    def _read(self) -> bool:
        """Whether the data set has read its source to the end: it knows all its trees, or makes of what it has read."""
        promise = None if self.promised is None else self.promised.promise
        return promise is not None and (promise.outline is not None or promise.sparing)

    @property
    def _promised_count(self) -> int:
        return 0 if self.promised is None else self.promised.promise.count

    def whole(self) -> Store:
        """The store, once it has all entries.

        Raises:
            BadDataset, PluginError: With a message for the user.
        """
        if self._whole is None:
            self._write(lambda: False)
            self._finish(whole=True)
            self._whole = Store(Path(self._plan.output.journal))
        return self._whole

    def head(self, use: FirstUse) -> bool:
        """Write the first entries in their order of use, at least its wave: for a moment, or all of a file that is read soon.

        Returns:
            Whether that is all.
        """
        if self._whole is not None:
            return True
        began_s, store, promised = monotonic(), self._store, self._promised_count
        source, graded = self._plan.data.source, self._plan.plugins.grader is not None
        if use.numbers is not None:
            self._exports.out_of_order()
            store.out_of_order(promised)
            numbers, asked = tee(use.numbers())
            with blamed(self._plan.plugins.dataset, "failed"):
                chosen = self._dataset.chosen(asked)
            self._conversations = self._numbered(numbers, chosen)

        soon_s = _HEAD_S if source is None else _CHECK_S
        if self.promised is not None and self.promised.promise.sparing:
            self._lead = Lead(use.wave, use.due_ns, promised, self.pace)

        def enough() -> bool:
            self.pace.note(store.entries)
            passed_s = monotonic() - began_s
            # The last entry can't be read yet, and a grader is refused where no answer is expected.
            if store.entries <= use.wave or graded > store.graded:
                return False
            if self._lead is not None:
                return passed_s > _HEAD_S or self._lead.far_enough(0)
            if passed_s < min(_GLANCE_S, _HEAD_S):
                return False
            whole_s = passed_s + (promised - store.entries) / self.pace.rate if self.pace.rate else 0.0
            return passed_s > soon_s or whole_s > (soon_s if passed_s > _HEAD_S else _FAR * soon_s)

        if not self._write(enough) and not self._ahead(use.due_ns):
            self._writer.answers.warn()
            if source is not None and not self._read:
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
        enough = pace.ahead(self.pace, due_ns, self._promised_count, lambda: self.pace.note(self._store.entries))
        return enough is not None and self._write(enough)

    def rest(self, stop: Callable[[], bool]) -> bool:
        """Write the other entries, while others read; *stop* ends it early.  Whether there are no more.

        Raises:
            BadDataset, PluginError: With a message for the user.
        """
        plan, several = self._plan, self.several_answers
        if environment.cpus() <= plan.run.workers + plan.run.reducers:
            os.nice(_YIELD)
        whole = self._write(lambda: self._rests_until(stop) or self.several_answers != several)
        if self.several_answers != several:  # its metrics were chosen for one answer to a request
            raise BadDataset(
                f"{plan.data.source or plan.plugins.dataset}: conversation {self._store.entries} asks for several answers (n,"
                " or several prompts) behind the begin of the load", "--check-data reads all of it before"
            )  # fmt: skip
        if not whole:
            made, promised = self._store.entries, self._promised_count
            log.info("the load has ended: %d of %d entries of the data set were made", made, promised)
        self._finish(whole=whole)
        return whole

    def _rests_until(self, stop: Callable[[], bool]) -> bool:
        """Wait while enough is made ahead of the load; whether to stop."""
        lead, uses = self._lead, self._uses
        if lead is None or uses is None:
            return stop()
        if lead.may_rest(uses.reached):
            self._store.publish()
        while not (stopped := stop()) and lead.may_rest(uses.reached) and not uses.waited_for:
            sleep(_LOOK_S)
        return stopped

    def publish(self, max_turns: int) -> None:
        """Let readers see the entries from now on.  max_turns: promised, of the longest conversation."""
        store, promise = self._store, None if self.promised is None else self.promised.promise
        store.max_turns = max(store.max_turns, max_turns)
        if promise is not None and promise.outline is not None and promise.trees:
            write_ahead(Path(self._plan.output.journal), promise.count, promise.outline, self._plan.data.delay_ratio)
            store.trees = True
        if promise is not None and promise.sparing:
            self._uses = Uses(Path(self._plan.output.journal), self._plan.run.workers)
        store.publish()

    def _numbered(self, numbers: Iterable[int], conversations: Iterable[Conversation]) -> Iterator[tuple[Conversation, int]]:
        if self._inlines_media:
            conversations = with_inlined_media(
                iter(conversations), self._plan.data.source, keeps_urls=self._keeps_urls
            )
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
        take, promised = self._writer.take, self.promised
        for conversation, number in self._conversations:
            try:
                take(conversation if ratio == 1.0 else with_delays(conversation, ratio), number, promised)
            except AiperfError as error:
                if source is not None:  # a file's conversations often have no ids but those made here
                    error.message = f"{source}, entry {number + 1}: {error.message}"
                raise
            if self._lead is not None:
                self._lead.note(self._store.written_bytes)
            if enough():
                return False
        return True

    def _finish(self, *, whole: bool) -> None:
        if whole and self.promised is not None and self._store.entries != self._promised_count:
            raise _broken(self._plan, f"{self._promised_count} conversations", f"{self._store.entries}")
        self._writer.finish(whole=whole)


def _broken(plan: Plan, promised: str, given: str) -> PluginError:
    return PluginError(f"{plan.plugins.dataset} promised {promised}, and gave {given}")


def _turns(count: int | None) -> str:
    return "1 turn" if count == 1 else f"{count} turns"
