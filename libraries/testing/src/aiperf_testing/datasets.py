"""The contract of data sets: a seed determines the conversations, which stream."""

from __future__ import annotations

from itertools import islice
from typing import ClassVar

import msgspec
import pytest
from aiperf.prepare.conversations import without_silent_turns
from aiperf.prepare.first_use import recorded_ms
from aiperf.sdk.dataset import Dataset
from aiperf.sdk.model import Conversation, speaks
from aiperf.sdk.trees import faults

from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row

_MANY = 5_000_000
"""Entries, or conversations: more than could be made one by one in a test."""


class DatasetContract:
    """Subclass with a way to make the data set::

        class TestMineKeepsTheContract(DatasetContract):
            def make(self, entries, seed):
                return Mine(options, DatasetContext(entries=entries, seed=seed, …))

    dataset: the registered class, where ``make`` gives another one.
    drawn: the content depends on the seed.  endless: the data set gives any requested number of entries.
    """

    dataset: ClassVar[type[Dataset] | None] = None
    drawn: ClassVar[bool] = True
    endless: ClassVar[bool] = True

    def make(self, entries: int, seed: int) -> Dataset:
        """A new data set with *entries* requested conversations."""
        raise NotImplementedError(f"{type(self).__name__} must define make(entries, seed)")

    def _first(self, count: int, seed: int, entries: int | None = None) -> list[Conversation]:
        return list(islice(self.make(entries or count, seed), count))

    def test_its_manifest_says_what_it_is(self) -> None:
        made = self.make(1, 1)
        facts = check_row("datasets", self.dataset or type(made)).capabilities
        assert not (facts.get("once") and made.preferred_sampling == "random"), "random repeats entries that are used once"
        names = facts.get("names")
        if names:
            name, row = made.context.name, made.context.row
            assert name in names and row == names[name], "make it with a context whose name and row are some of its manifest's"

    def test_the_same_seed_gives_the_same_conversations(self) -> None:
        assert self._first(6, 11) == self._first(6, 11), (
            "two data sets of one seed differ: draw everything from the context's seed, nothing from the clock or a"
            " global generator"
        )

    def test_going_through_it_twice_gives_the_same_conversations(self) -> None:
        dataset = self.make(6, 11)
        assert list(dataset) == list(dataset), (
            "a second pass gives other conversations: keep no state in the object, and make generators in __iter__"
        )

    def test_another_seed_gives_others_where_anything_is_drawn(self) -> None:
        assert (self._first(6, 11) != self._first(6, 12)) is self.drawn, (
            f"another seed gives {'the same' if self.drawn else 'other'} conversations, and drawn is {self.drawn}: set"
            f" drawn, or use the seed"
        )

    def test_an_entry_does_not_depend_on_how_many_there_are(self) -> None:
        assert self._first(3, 11) == self._first(3, 11, entries=9)[: len(self._first(3, 11))], (
            "entry 1 to 3 of 9 differ from those of 3: draw each entry from the seed and its own number"
        )

    def test_it_streams(self) -> None:
        assert len(self._first(2, 11, entries=_MANY)) > 0, (
            "no conversation came of 5,000,000 requested: give each one as soon as it is made"
        )

    def test_as_many_come_as_are_asked_for(self) -> None:
        assert len(self._first(7, 11, entries=6)) <= 6, (
            "more conversations came than were asked for: stop behind context.entries"
        )
        if self.endless:
            assert len(self._first(6, 11)) == 6, (
                "fewer conversations came than were asked for: go on until context.entries, or set endless = False"
            )

    def test_its_promise_is_kept(self) -> None:
        self.check_promise(self.make(6, 11), self._first(_MANY, 11, entries=6))

    @staticmethod
    def check_promise(dataset: Dataset, conversations: list[Conversation]) -> None:
        """Fail unless *dataset*, a new one, promises what *conversations* are, or nothing, and then gives these."""
        promise = dataset.promise()
        if promise is None:
            return
        assert len(conversations) == promise.count, (
            unlike(promise.count, len(conversations), "promise the number of conversations that come")
        )
        at_ms = recorded_ms(promise)
        for number, conversation in enumerate(conversations):
            turns = without_silent_turns(conversation).turns
            promised = promise.turns(number) if callable(promise.turns) else promise.turns
            assert promised in (None, len(turns)), f"{conversation.id!r} has {len(turns)} turns, not {promised}"
            if promise.outline is not None:
                outline = promise.outline(number)
                assert (outline.id, outline.streams) == (conversation.id, conversation.streams), (
                    f"{conversation.id!r} has other streams than promised: make both of the same"
                )
                assert [*outline.delays_ms] == [turn.delay_ms for turn in turns], f"{conversation.id!r} has other delays"
                assert [*outline.recorded_ms] == [turn.recorded_ms for turn in turns], f"{conversation.id!r} has other times"
            if at_ms is not None:
                assert [turn.timestamp_ms for turn in turns] == [at_ms(number, index) for index in range(len(turns))], (
                    f"the turns of {conversation.id!r} have other times than promised: promise the times of its rows, or none"
                )
        if promise.any_order:
            assert list(dataset.chosen(reversed(range(promise.count)))) == conversations[::-1], (
                "chosen gives others than going through the data set: make entry n of chosen as entry n of __iter__"
            )
        else:
            assert list(dataset) == conversations, (
                "the data set gives others once it was asked for its promise: promise() must not consume anything"
            )

    def test_conversations_can_be_told_apart_and_have_turns(self) -> None:
        conversations = self._first(6, 11)
        assert conversations, "no conversation came: give at least one"
        told = {(conversation.id, *(turn.repeat for turn in conversation.turns[:1])) for conversation in conversations}
        assert len(told) == len(conversations), (
            "two conversations have one id: it is unique within the data set, but for repeats of a problem (Turn.repeat)"
        )
        assert all(conversation.turns for conversation in conversations), (
            "a conversation has no turns: leave it out, or give it one"
        )

    def test_conversations_send_requests_and_contradict_nothing(self) -> None:
        for conversation in self._first(3, 11):
            assert without_silent_turns(conversation).turns, f"every turn of {conversation.id!r} is silent"

    def test_streams_of_a_tree_fit_together(self) -> None:
        for conversation in self._first(6, 11):
            wrong = list(faults(conversation.streams, len(conversation.turns))) if conversation.streams else []
            assert not wrong, f"the streams of {conversation.id!r}: {'; '.join(wrong)}"
            silent = any(turn.silent for turn in conversation.turns)
            assert not (conversation.streams and silent), f"{conversation.id!r} has streams and silent turns: use Turn.before"

    def test_named_texts_are_among_the_texts(self) -> None:
        for conversation in self._first(3, 11):
            for turn in conversation.turns:
                named = [text for name in turn.named for text in turn.texts_of(name)]
                assert set(named) <= set(turn.texts), "endpoints without fields read Turn.texts, which lacks a named text"

    def test_verbatim_contents_are_json(self) -> None:
        for conversation in self._first(3, 11):
            for turn in conversation.turns:
                verbatim = [message.item for message in (*conversation.opening, *turn.before, *turn.own)]
                msgspec.json.encode([verbatim, turn.tools, None if isinstance(turn.payload, bytes) else turn.payload])

    def test_settings_leave_the_last_word_to_the_user(self) -> None:
        for conversation in self._first(3, 11):
            for turn in conversation.turns:
                msgspec.json.encode(dict(turn.settings))
                both = sorted(turn.settings.keys() & turn.extra.keys())
                assert not both, f"{both} stand in settings and in extra, which wins over --extra-inputs: keep them in settings"
                assert not speaks(turn.settings), "settings are no part of the prompt: give texts, items or tools"

    def test_a_benchmark_says_what_is_right(self) -> None:
        made = self.make(3, 11)
        try:
            facts = check_row("datasets", self.dataset or type(made)).capabilities
        except AssertionError:  # what is wrong with its row, another test says
            facts = {}
        if facts.get("selected_by") != "benchmark":
            pytest.skip("it is no benchmark")
        rows = facts.get("names") or {"": {}}
        unnamed = [name for name, row in rows.items() if not row.get("grader", facts.get("grader"))]
        assert not unnamed, f"the manifest names no grader{f' for {unnamed}' if any(unnamed) else ''}: add the capability"
        for conversation in islice(made, 3):
            expected = [turn.expected for turn in conversation.turns]
            assert any(text is not None for text in expected), f"no turn of {conversation.id!r} has an expected answer"

    def test_media_have_lengths_that_exist(self) -> None:
        for conversation in self._first(3, 11):
            for media in (media for turn in conversation.turns for media in turn.media):
                assert media.seconds is None or media.seconds >= 0, "Media.seconds is a length; None where it is unknown"

    def test_conversations_can_be_stored(self) -> None:
        for conversation in self._first(3, 11):
            assert msgspec.msgpack.decode(msgspec.msgpack.encode(conversation), type=Conversation) == conversation, (
                f"{conversation.id!r} is another when it was stored and read: use texts, numbers, lists and dicts alone"
            )
