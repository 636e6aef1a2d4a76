"""A look at the servers behind a load that failed: who is asked, and what is kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiperf.registry.registry import Registry
from aiperf.run import look
from aiperf.run.look import looked
from aiperf.sdk.descriptor import Descriptor, OptionSpec
from aiperf.sdk.fetch import FetchError, Servers
from aiperf.sdk.plan import TargetPlan
from aiperf.sdk.verdict import Look, Verdict
from aiperf_testing.journals import plan_for
from aiperf_testing.plans import sample_ref
from aiperf_testing.server import Expect, Scripted, Send, answer


class Silent(Verdict[None]):
    """Has nothing to ask."""


class Asking(Verdict[None]):
    def look(self, look: Look) -> dict[str, str]:
        types = [endpoint.name for endpoint in look.endpoints]
        return {"saw": f"{look.causes} {types} {look.servers.urls}"}


class Failing(Verdict[None]):
    def look(self, look: Look) -> dict[str, str]:
        raise ValueError("no eyes")


class Endless(Verdict[None]):
    ended = threading.Event()

    def look(self, look: Look) -> dict[str, str]:
        self.ended.wait(60)
        return {"late": "x"}


def asked(*verdicts: type[Verdict[None]], wait: Callable[[float], bool] = lambda s: True) -> tuple[dict[str, str], list[str]]:
    refs = tuple(sample_ref("verdicts", f"{__name__}:{each.__name__}") for each in verdicts)
    plan = plan_for(Path(), urls=("http://h",), verdicts=refs)
    rows = [Descriptor("endpoints", name, "acme:Nothing", "acme", "1") for name in ("beta", "alpha", "usual")]
    registry = Registry(rows, kernel_options=(OptionSpec("endpoint_type", ("--endpoint-type",), "", default="usual"),))
    failures: list[str] = []
    return looked(plan, ("gone",), Servers(plan.target, {}, wait), registry, failures.append), failures


def test_each_verdict_with_a_question_is_asked_and_a_failing_one_is_blamed() -> None:
    found, failures = asked(Silent, Failing, Asking)
    assert found == {"saw": "('gone',) ['usual', 'alpha', 'beta'] ('http://h',)"}
    assert len(failures) == 1 and failures[0].endswith("ValueError: no eyes")


@pytest.mark.parametrize("wait", [lambda s: True, lambda s: False], ids=["the time is up", "a signal"])
def test_nobody_waits_for_a_verdict_without_an_end(wait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look, "_LOOK_S", 0.2)
    Endless.ended.clear()
    assert asked(Endless, wait=wait) == ({}, [])
    Endless.ended.set()


def test_a_page_of_the_runs_servers_is_asked_for_with_their_key_and_of_no_other_host() -> None:
    async def go() -> list[str]:
        async with Scripted([Expect(), Send(answer(b"here"))]) as server:
            target = TargetPlan(("m",), (f"{server.url}/api/v1?team=a",), "/v1/chat/completions", False, 1)
            servers = Servers(target, {"Authorization": "Bearer hunter2"})
            page = await asyncio.to_thread(servers.get, servers.urls[0], "/v1/models", 5)
            assert page.body == b"here"
            for other in ("http://elsewhere.invalid", server.url.replace("http", "https"), "http://127.0.0.1:9"):
                with pytest.raises(FetchError, match="none of the run's servers"):
                    servers.get(other, "/v1/models", 5)
            return [f"{got.target} {got.header('authorization')}" for got in server.requests]

    assert asyncio.run(go()) == ["/api/v1/models?team=a Bearer hunter2"]


def test_the_causes_are_those_of_a_load_at_whose_end_all_failed() -> None:
    from aiperf.run.failing import Failing as Follows
    from aiperf.sdk.reducer import Ended

    def causes(text: str) -> tuple[str, ...]:
        follows = Follows()
        follows.follow([Ended(n, 0, None if each == "." else (each, each)) for n, each in enumerate(text)])
        return follows.causes()

    assert [causes(text) for text in ("", ".", "abb", "ab.", "." * 9 + "a" * 100)] == [(), (), ("b", "a"), (), ("a",)]


