"""Markers against a server's prefix cache: where they stand, and that no two sessions share one."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from aiperf.errors import BadDataset
from aiperf.sdk.cache_bust import CacheBust, marked, marker, marker_tokens
from aiperf.sdk.model import Conversation, Message, Turn
from aiperf.sdk.plan import PhasePlan
from aiperf_testing.plans import sample_plan
from worker_fakes import SPOKEN, make_engine, make_plan

PHASES = (PhasePlan("warmup", "warmup", 0, "burst"), PhasePlan("profiling", "profiling", 1, "burst"))
PARTS = [{"type": "image_url"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


def chat(system: str, user: Any) -> Conversation:
    """A turn of two verbatim messages."""
    contents = {"system": system, "user": user}
    return Conversation("c", (Turn(items=tuple(Message.of({"role": role, "content": contents[role]}) for role in contents)),))


def said(conversation: Conversation) -> list[Any]:
    """What the conversation says, in order: texts, and contents of verbatim messages."""
    messages = [*conversation.prelude, *(each for turn in conversation.turns for each in (*turn.before, *turn.own))]
    return [message.texts if message.item is None else message.item["content"] for message in messages]


@pytest.mark.parametrize(
    ("where", "conversation", "expected"),
    [
        ("system_prefix", Conversation("c", (Turn(("a",)),), system="s"), [("<M>s",), ("a",)]),
        ("system_suffix", Conversation("c", (Turn(("a",)),), system="s"), [("s<M>",), ("a",)]),
        ("system_prefix", Conversation("c", (Turn(("a",)), Turn(("b",)))), [("<M>a",), ("b",)]),
        ("system_suffix", Conversation("c", (Turn(("a",)),)), [("a<M>",)]),
        ("system_prefix", Conversation("c", (Turn(("a",)),), opening=(Message("system", ("o",)),)), [("<M>o",), ("a",)]),
        ("first_turn_prefix", Conversation("c", (Turn(("a",)),), system="s", context="k"), [("s",), ("k",), ("<M>a",)]),
        ("first_turn_suffix", Conversation("c", (Turn(("a", "b")),)), [("a", "b<M>")]),
        ("first_turn_prefix", Conversation("c", (Turn(()), Turn(("b",)))), [("<M>",), ("b",)]),
        ("first_turn_prefix", Conversation("c", (Turn(("a",)), Turn(("b",), reset=True))), [("<M>a",), ("<M>b",)]),
        ("first_turn_prefix", Conversation("c", (Turn(("a",)), Turn(("b",))), alone=True), [("<M>a",), ("<M>b",)]),
        ("first_turn_prefix", Conversation("c", (Turn(("a",), before=(Message("user", ("p",)),)),)), [("<M>p",), ("a",)]),
        (
            "first_turn_prefix",
            chat("s", PARTS),
            ["s", [PARTS[0], {"type": "text", "text": "<M>a"}, PARTS[2]]],
        ),
        (
            "system_suffix",
            chat("s", "u"),
            ["s<M>", "u"],
        ),
        ("warmup_isolation_system", Conversation("c", (Turn(("a",)),), system="s"), [("<M>s",), ("a",)]),
    ],
)  # fmt: skip
def test_a_marker_stands_where_a_prompt_begins(where: str, conversation: Conversation, expected: list[Any]) -> None:
    assert said(marked(conversation, CacheBust(where), "<M>")) == expected


@pytest.mark.parametrize(("given", "expected"), [
    ("s", "<M>s"), ([{"type": "text", "text": "s"}], [{"type": "text", "text": "<M>s"}]), (7, 7),
])  # fmt: skip
def test_the_system_message_of_a_row_is_marked(given: Any, expected: Any) -> None:
    conversation = Conversation("c", (Turn(("a",), extra={"system": given, "top_p": 1}),))
    (turn,) = marked(conversation, CacheBust.SYSTEM_PREFIX, "<M>").turns
    assert turn.extra == {"system": expected, "top_p": 1}
    assert turn.texts == ("a",)


@pytest.mark.parametrize(("where", "turn", "message"), [
    ("first_turn_prefix", Turn(payload={"messages": []}), "has a payload"),
    ("first_turn_prefix", Turn(items=(Message.of({"role": "user", "content": None}),)), "no user message with a text"),
    ("first_turn_prefix", Turn(items=()), "no user message"),
    ("warmup_isolation_system", Turn(("a",)), "no system message with a text for --cache-bust warmup_isolation_system"),
])  # fmt: skip
def test_a_conversation_without_a_place_is_refused(where: str, turn: Turn, message: str) -> None:
    with pytest.raises(BadDataset, match=message):
        marked(Conversation("c", (turn,)), CacheBust(where), "<M>")


def test_each_session_has_a_marker_of_its_own(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path, phases=PHASES, cache_bust=CacheBust.FIRST_TURN_SUFFIX)
    digits = hashlib.sha256(f"{plan.run.run_id}:1:3:c".encode()).hexdigest()[:12]
    assert marker(plan, 1, 3, "c") == f"\n\n[rid:{digits}]"
    found = {marker(plan, phase, session, name) for phase in (0, 1) for session in (0, 1) for name in "cd"}
    assert len(found) == 8
    other = sample_plan(tmp_path, phases=PHASES, cache_bust=CacheBust.SYSTEM_PREFIX, run_id="ba9876543210")
    assert marker(other, 1, 3, "c") not in found
    assert marker(other, 1, 3, "c").endswith("]\n\n")


def test_an_isolated_warmup_has_one_marker_and_profiling_none(tmp_path: Path) -> None:
    plan = sample_plan(tmp_path, phases=PHASES, cache_bust=CacheBust.WARMUP_ISOLATION_FIRST_TURN)
    assert [marker(plan, phase, 3, "c") for phase in (0, 1)] == ["[warmup]\n\n", ""]


class _Letters:
    def count(self, text: str) -> int:
        return len(text)


def test_the_room_that_a_marker_takes_is_counted_with_the_tokenizer() -> None:
    letters: Any = _Letters()
    lengths = [marker_tokens(CacheBust(where), letters) for where in CacheBust]
    assert lengths == [0, 20, 20, 20, 20, 0, 0]
    assert marker_tokens(CacheBust.SYSTEM_PREFIX, None) == 0


@pytest.mark.parametrize(("where", "live"), [
    ("first_turn_prefix", True), ("warmup_isolation_first_turn", False), ("none", False),
])  # fmt: skip
def test_a_worker_encodes_marked_turns_alone(tmp_path: Path, where: str, live: bool) -> None:
    async def check() -> None:
        plan = make_plan(tmp_path, endpoint=SPOKEN, cache_bust=CacheBust(where))
        engine: Any = make_engine(plan, asyncio.get_running_loop())
        engine.driver.begin(1)
        stored = [f"entry {number} turn 0 model 0" for number in (0, 1)]
        encoded = [f"{marker(plan, 0, number, f'c{number}')}t0" for number in (0, 1)]
        assert [exchange.body.decode() for exchange in engine.transport.sent] == (encoded if live else stored)
        engine.logbook.close()

    asyncio.run(check())
