"""Pages about the server: health, models, metrics, and the truth of its requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from aiperf_command_simulate.answer import Choice
from aiperf_command_simulate.engine import Engine
from aiperf_command_simulate.http1 import Connection, Request
from aiperf_command_simulate.prometheus import CONTENT_TYPE, Meters, exposition
from aiperf_command_simulate.scenario import Scenario
from aiperf_command_simulate.truth import Truth

ANY_MODEL = "simulated"
"""The model that is listed where every name is served."""


class Pages:
    """What is answered without the engine.  *meters*: by model.  *created_s*: when the models were, by the wall clock."""

    def __init__(
        self, scenario: Scenario, engine: Engine[Choice], truth: Truth, meters: dict[str, Meters], created_s: int
    ) -> None:
        self._scenario, self._engine, self._truth, self._meters = scenario, engine, truth, meters
        self._created_s = created_s

    @property
    def by_path(self) -> dict[str, Callable[[Connection, Request], None]]:
        return {"/health": self.health, "/v1/models": self.models, "/metrics": self.metrics, "/truth": self.whole_truth}

    def health(self, connection: Connection, request: Request) -> None:
        connection.respond(200, b"", kind="text/plain")

    def models(self, connection: Connection, request: Request) -> None:
        rows = [
            {"id": name, "object": "model", "created": self._created_s, "owned_by": "aiperf",
             "max_model_len": self._scenario.max_context}
            for name in self._meters
        ]  # fmt: skip
        connection.respond(200, msgspec.json.encode({"object": "list", "data": rows}))

    def metrics(self, connection: Connection, request: Request) -> None:
        def name(choice: Choice) -> str:
            return choice.answer.record.model if self._scenario.models else ANY_MODEL

        running = Counter(name(sequence.owner) for sequence in self._engine.running)
        waiting = Counter(name(sequence.owner) for sequence in self._engine.waiting())
        cache = self._engine.cache
        usage = len(cache) / cache.capacity if cache.capacity else 0.0
        text = exposition(self._meters, running, waiting, usage)
        connection.respond(200, text.encode(), kind=CONTENT_TYPE)

    def whole_truth(self, connection: Connection, request: Request) -> None:
        summary_only = request.query.get("summary", ["0"])[0] not in ("", "0", "false")
        last = request.query.get("last", [""])[0]
        if last and not last.isdecimal():
            message = f"last is {last!r}; a number of rows is needed"
            connection.respond(400, msgspec.json.encode({"error": {"message": message}}))
            return
        engine = self._engine
        body = self._truth.written(
            engine={
                "steps": engine.steps, "running": len(engine.running), "running_max": engine.running_max,
                "waiting": engine.waiting_count, "waiting_max": engine.waiting_max, "cache_blocks": len(engine.cache),
            },
            summary_only=summary_only, last=int(last) if last else None,
        )  # fmt: skip
        connection.respond(200, body)
