"""Pages about the server: health, models, metrics, and the truth of its requests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from aiperf_command_simulate.engine import Engine, Sequence
from aiperf_command_simulate.engines import EngineState, ModelState, engine_page
from aiperf_command_simulate.families import OPENMETRICS, TEXT, exposition
from aiperf_command_simulate.gpus import Gpus
from aiperf_command_simulate.http1 import Request, Responder
from aiperf_command_simulate.meters import Meters
from aiperf_command_simulate.scenario import ServerScenario
from aiperf_command_simulate.tenant import Tenant
from aiperf_command_simulate.truth import Truth

ANY_MODEL = "simulated"
"""The model that is listed where every name is served."""


class Pages:
    """What is answered without the engine.  *meters*: by model.  *created_s*: when the models were, by the wall clock."""

    def __init__(
        self, scenario: ServerScenario, engine: Engine[Any], truth: Truth, meters: dict[str, Meters], created_s: int,
        gpus: Gpus, tenant: Tenant,
    ) -> None:  # fmt: skip
        self._scenario, self._engine, self._truth, self._meters = scenario, engine, truth, meters
        self._created_s, self._gpus, self._tenant = created_s, gpus, tenant
        self._engine_page = engine_page(scenario.metrics)

    @property
    def by_path(self) -> dict[str, Callable[[Responder, Request], None]]:
        pages = {"/health": self.health, "/v1/models": self.models, "/truth": self.whole_truth}
        other = {} if self._engine_page.other is None else {"/metrics": self.other_metrics}
        gpus = {"/dcgm/metrics": self.gpus} if self._scenario.gpus.count else {}
        return {**pages, **gpus, **other, self._engine_page.path: self.metrics}

    def health(self, connection: Responder, request: Request) -> None:
        connection.respond(200, b"", kind="text/plain")

    def models(self, connection: Responder, request: Request) -> None:
        rows = [
            {"id": name, "object": "model", "created": self._created_s, "owned_by": "aiperf",
             "max_model_len": self._scenario.max_context}
            for name in self._meters
        ]  # fmt: skip
        connection.respond(200, msgspec.json.encode({"object": "list", "data": rows}))

    def metrics(self, connection: Responder, request: Request) -> None:
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        text = exposition(self._engine_page.families(self._state()), openmetrics=openmetrics)
        connection.respond(200, text.encode(), kind=OPENMETRICS if openmetrics else TEXT)

    def gpus(self, connection: Responder, request: Request) -> None:
        families = self._gpus.families(time.monotonic_ns(), len(self._engine.running))
        connection.respond(200, exposition(families, openmetrics=False).encode(), kind=TEXT)

    def other_metrics(self, connection: Responder, request: Request) -> None:
        assert self._engine_page.other is not None
        connection.respond(200, msgspec.json.encode(self._engine_page.other(self._state())))

    def _state(self) -> EngineState:
        def name(sequence: Sequence[Any]) -> str:
            return str(sequence.owner.model) if self._scenario.models else ANY_MODEL

        running = Counter(map(name, self._engine.running))
        waiting = Counter(map(name, self._engine.waiting()))
        for meters in self._meters.values():
            meters.settle()
        models = [ModelState(model, meters, running[model], waiting[model]) for model, meters in self._meters.items()]
        cache, scenario = self._engine.cache, self._scenario
        return EngineState(models, len(cache), cache.capacity, scenario.engine.block_size, scenario.drafts is not None)

    def whole_truth(self, connection: Responder, request: Request) -> None:
        summary_only = request.query.get("summary", ["0"])[0] not in ("", "0", "false")
        last = request.query.get("last", [""])[0]
        if last and not last.isdecimal():
            message = f"last is {last!r}; a number of rows is needed"
            connection.respond(400, msgspec.json.encode({"error": {"message": message}}))
            return
        instants = request.query.get("energy_until", [""])[0]
        if any(not each.isdecimal() for each in instants.split(",") if instants):
            message = f"energy_until is {instants!r}; instants of CLOCK_MONOTONIC in ns are needed, with commas"
            connection.respond(400, msgspec.json.encode({"error": {"message": message}}))
            return
        engine, now_ns = self._engine, time.monotonic_ns()
        gpus = self._gpus.truth([int(each) for each in instants.split(",")] if instants else [now_ns])
        beside = {"gpus": gpus, "tenant": self._tenant.truth(), "slow": self._engine.slow()}
        body = self._truth.written(
            engine={
                "steps": engine.steps, "running": len(engine.running), "running_max": engine.running_max,
                "waiting": engine.waiting_count, "waiting_max": engine.waiting_max, "cache_blocks": len(engine.cache),
                "cache_evicted": engine.cache.evicted,
            } | {name: value for name, value in beside.items() if value},
            summary_only=summary_only, last=int(last) if last else None,
        )  # fmt: skip
        connection.respond(200, body)
