from __future__ import annotations

import random

import pytest
from aiperf import BadDataset, ConfigError
from aiperf_traces.agents import FLAT, MAIN, SUBAGENT, Origin, crew_of
from aiperf_traces.blocks import common, packed
from aiperf_traces.layout import ASSISTANT, SYSTEM, USER, Beginning, PromptPart, prompts
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent
from aiperf_traces.settings import WorkerRules, settings

RULES = WorkerRules(sidecar_requests=0, summary_output=0)
"""Every worker is an agent."""


def asked(
    at_s: float, blocks: list[int], tokens: int = 0, output: int = 100, model: str = "m", took_s: float = 1.0
) -> RecordedRequest:
    return RecordedRequest(at_s, tokens or 64 * len(blocks), output, blocks, model, took_s)


def session(*requests: RecordedRequest | Subagent) -> RecordedSession:
    return RecordedSession("t", 64, list(requests))


def agents(recorded: RecordedSession, rules: WorkerRules = RULES) -> dict[str, list[float]]:
    return {agent.id: [one.at_s for one in agent.requests] for agent in crew_of(recorded, rules).agents}


@pytest.mark.parametrize(("one", "other", "length"), [
    ([], [1], 0), ([1, 2], [1, 2, 3], 2), ([1, 2, 3], [1, 2, 4], 2), ([5], [6], 0), (list(range(999)), [*range(700), 0], 700),
])  # fmt: skip
def test_common_beginnings_of_blocks(one, other, length):
    assert common(packed(one), packed(other)) == common(packed(other), packed(one)) == length


def test_interleaved_agents_are_told_apart():
    main = asked(0, [1, 2]), asked(2, [1, 2, 3]), asked(6, [1, 2, 3, 4]), asked(10, [1, 2, 3, 4, 5])
    recorded = session(*main, asked(4, [7, 8]), asked(8, [7, 8, 9]))
    assert agents(recorded) == {"t": [0, 2, 6, 10], "t::fa:000": [4, 8]}


def test_a_cut_context_is_the_same_agent():
    assert agents(session(asked(0, [1, 2, 3, 4]), asked(2, [1, 2, 9]), asked(4, [1, 2, 9, 10]))) == {"t": [0, 2, 4]}


def test_a_context_that_is_taken_up_again_was_left_by_another_agent():
    recorded = session(asked(0, [1, 2, 3, 4]), asked(2, [1, 2, 9]), asked(4, [1, 2, 3, 4, 5]))
    assert agents(recorded) == {"t": [0, 4], "t::fa:000": [2]}
    crew = crew_of(recorded, RULES)
    assert (crew.agents[1].origin, crew.agents[1].kind) == (Origin(0, 0), FLAT)


def test_a_later_session_with_the_same_beginning_is_another_agent():
    recorded = session(asked(0, [1, 2, 3, 4, 5]), asked(9000, [1, 2, 9]))
    assert agents(recorded) == {"t": [0], "t::fa:000": [9000]}


def test_a_chain_goes_on_with_one_model_and_behind_its_answer():
    assert agents(session(asked(0, [1]), asked(2, [1, 2], model="n"))) == {"t": [0], "t::fa:000": [2]}
    assert agents(session(asked(0, [1], took_s=9), asked(2, [1, 2]), asked(20, [1, 3]))) == {"t": [0, 20], "t::fa:000": [2]}


@pytest.mark.parametrize(
    ("worker", "name"),
    [
        (asked(2, [7], 500), "aux:000"),
        (asked(2, [7], 20_000, output=900), "aux:000"),
        (asked(2, [7], 20_000, output=2000), "fa:000"),
        (asked(2, [7], 20_000, output=5000, model="n"), "aux:000"),
    ],
)
def test_names_of_workers(worker, name):
    main = asked(0, [1, 2], 40_000), asked(3, [1, 2, 3], 40_000)
    assert list(agents(session(*main, worker), WorkerRules())) == ["t", f"t::{name}"]


def test_a_group_has_split_off_from_one_request_at_one_time():
    workers = [asked(2 + at / 10, [1, 2, 10 + at], took_s=5) for at in range(4)]
    later = asked(50, [1, 2, 20], took_s=20), asked(60, [1, 2, 3])
    found = crew_of(session(asked(0, [1, 2], took_s=10), *workers, *later, asked(61, [1, 2, 3, 4])), RULES)
    group = [f"wg:000_00{at}" for at in range(3)]
    assert [agent.id.removeprefix("t::") for agent in found.agents] == ["t", "fa:000", *group, "fa:004"]


def test_a_call_for_a_title_comes_before_the_conversation():
    recorded = session(asked(0, [50], output=10), asked(1, [1, 2]), asked(3, [1, 2, 3]))
    assert agents(recorded) == {"t": [0, 1, 3]}


def test_subagents_join_the_first_turn_behind_their_end():
    recorded = session(
        asked(0, [1]), Subagent("a", 1, [asked(1, [20])], 3000), Subagent("b", 1.5, [asked(1.7, [30])], 7500), asked(5, [1, 2]),
        asked(9, [1, 2, 3]), Subagent("c", 9.5, [asked(9.5, [40])], 100),
    )  # fmt: skip
    crew = crew_of(recorded, RULES)
    assert [(start.agents, start.after, start.joins, start.at_s) for start in crew.starts] == [
        ([1], 0, 1, 1), ([2], 0, 2, 1.5), ([3], 2, None, 9.5),
    ]  # fmt: skip
    assert [agent.kind for agent in crew.agents] == [MAIN, SUBAGENT, SUBAGENT, SUBAGENT]


def test_a_subagent_that_nothing_stands_before_is_dropped():
    crew = crew_of(session(Subagent("a", 0, [asked(0, [9])]), asked(1, [1])), RULES)
    assert (crew.dropped, len(crew.agents)) == (["a"], 1)


def test_two_subagents_with_one_id_are_refused():
    twice = Subagent("a", 1, [asked(1, [9])])
    with pytest.raises(BadDataset, match="session 't' has two subagents 'a'"):
        crew_of(session(asked(0, [1]), twice, twice), RULES)


def test_a_prompt_goes_on_with_an_answer_and_what_the_user_says():
    first, second = prompts([asked(0, [1, 2], output=70), asked(5, [1, 2, 3, 4, 5])], 64)
    assert first.parts == (PromptPart(USER, 0, 2),)
    assert second == ((PromptPart(USER, 0, 2), PromptPart(ASSISTANT, 2, 2), PromptPart(USER, 4, 1)), 1)


def test_the_last_block_is_the_users():
    second = prompts([asked(0, [1], output=900), asked(5, [1, 2, 3])], 64)[1]
    assert second.parts[1:] == (PromptPart(ASSISTANT, 1, 1), PromptPart(USER, 2, 1))


def test_tools_and_the_system_prompt_are_a_message_of_their_own():
    (prompt,) = prompts([asked(0, [1, 2, 3], 200)], 64, head_tokens=65)
    assert prompt.parts == (PromptPart(SYSTEM, 0, 2), PromptPart(USER, 2, 1, 8))
    with pytest.raises(BadDataset, match="200 tokens of tools and system prompt, 4 blocks of 64, and has 2 hash_ids"):
        prompts([asked(0, [1, 2])], 64, head_tokens=200)


def test_a_child_keeps_the_messages_that_it_shares():
    origin = Beginning((PromptPart(USER, 0, 2), PromptPart(ASSISTANT, 2, 2), PromptPart(USER, 4, 1, 9)), [1, 2, 3, 4, 5])
    kept = prompts([asked(0, [1, 2, 3, 8, 9])], 64, origin=origin)[0].parts
    assert kept == (PromptPart(USER, 0, 2), PromptPart(ASSISTANT, 2, 1), PromptPart(USER, 3, 2))
    assert prompts([asked(0, [1, 2, 8])], 64, origin=origin)[0].parts == (PromptPart(USER, 0, 3),)
    assert prompts([asked(0, [1, 2, 3])], 64, origin=origin)[0].parts == (PromptPart(USER, 0, 3),)


def test_every_prompt_has_its_tokens_and_ends_with_the_user():
    dice = random.Random(3)
    for _ in range(300):
        requests, blocks = [], list(range(dice.randint(1, 5)))
        for turn in range(8):
            blocks = blocks[: dice.randint(1, len(blocks))] if dice.random() < 0.3 else blocks
            blocks = blocks + [1000 * turn + at for at in range(dice.randint(0, 4))]
            requests.append(asked(turn, list(blocks), 64 * len(blocks) + dice.choice((0, 0, 17, 300)), dice.randint(0, 300)))
        for request, before, prompt in zip(requests, [None, *requests], prompts(requests, 64), strict=False):
            assert sum(64 * part.blocks + part.tail for part in prompt.parts) == request.input_tokens
            assert [part.first for part in prompt.parts] == [
                sum(one.blocks for one in prompt.parts[:at]) for at in range(len(prompt.parts))
            ]
            assert prompt.parts[-1].role == USER or before is not None
            assert not any(part.tail for part in prompt.parts[: prompt.kept])


def test_settings_are_read_and_refused(monkeypatch):
    monkeypatch.setenv("AIPERF_DATASET_WEKA_SPLIT_FLATTENED_AGENTS", "false")
    monkeypatch.setenv("AIPERF_DATASET_WEKA_AUX_ISL_FLOOR", "100")
    assert (settings().workers.split, settings().workers.sidecar_tokens) == (False, 100)
    monkeypatch.setenv("AIPERF_DATASET_WEKA_TOOL_SHAPED_MESSAGES", "maybe")
    with pytest.raises(ConfigError, match="it must be true or false"):
        settings()
