"""A scenario for tests: streamed answers, at least a minute, and no list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aiperf.sdk.plan import Plan
from aiperf.sdk.scenario import AskedSettings, BenchmarkScenario, Conflict, Filling


class Rules(BenchmarkScenario[None]):
    title = "the rules"

    @classmethod
    def fill(cls, asked: AskedSettings) -> Mapping[str, Filling]:
        moved: dict[str, Filling] = {}
        if (grace := asked.given("--warmup-grace-period")) is not None:
            moved = {"--benchmark-grace-period": grace.text, "--warmup-grace-period": None}
        return {"--streaming": True, "--benchmark-duration": "60", "--extra-inputs": ["calm:true"], **moved}

    def conflicts(self, plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
        if not plan.target.streaming:
            yield Conflict(asked.flag("--no-streaming"), "", "streamed answers", "it counts tokens")
        if (plan.load.phases[-1].duration_ns or 0) < 60 * 10**9:
            duration = asked.given("--benchmark-duration")
            yield Conflict(asked.flag("--benchmark-duration"), duration.text if duration else "", "60 or more", "it takes time")
        if plan.data.sampling == "random":
            flag = asked.flag("--dataset-sampling-strategy")
            yield Conflict(flag, "random", "any other order", "each entry comes once", final=True)
        if asked.lists:
            yield Conflict(asked.lists[0], "with several values", "one value", "runs are alike")


class Unknown(Rules):
    """Fills in what nobody has."""

    @classmethod
    def fill(cls, asked: AskedSettings) -> Mapping[str, Filling]:
        return {"--no-such-thing": "5"}


class Broken(Rules):
    """Fails wherever it is asked."""

    def conflicts(self, plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
        raise ValueError("it is Monday")
        yield
