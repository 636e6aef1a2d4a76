"""A stand-in for Ray with the names that the engine uses: actors are objects of this process, each with a thread.

Environment: FAKE_RAY_REFUSES, the error of a connection; FAKE_RAY_FREE, free processors (default 100); FAKE_RAY_ACTOR, the
error of each call of an actor; FAKE_RAY_BREAKS, how many looks at a command find a broken connection.
"""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ray import exceptions, util

available_resources = cluster_resources = lambda: {"CPU": float(os.environ.get("FAKE_RAY_FREE", "100"))}


def nodes() -> list[dict[str, Any]]:
    return [{"Alive": True}, {"Alive": True}, {"Alive": False}]


_connected: list[str] = []


def is_initialized() -> bool:
    return bool(_connected)


def init(*, address: str, log_to_driver: bool, logging_level: str) -> None:
    assert not _connected, "Ray refuses a second connection"
    if said := os.environ.get("FAKE_RAY_REFUSES"):
        raise RuntimeError(said)
    _connected.append(address)


def get(ref: Future[Any]) -> Any:
    return ref.result()


class _Method:
    def __init__(self, actor: "_Actor", name: str) -> None:
        self._actor, self._name = actor, name

    def remote(self, *words: Any) -> Future[Any]:
        return self._actor.pool.submit(self._actor.call, self._name, words)


class _Actor:
    breaks = int(os.environ.get("FAKE_RAY_BREAKS", "0"))

    def __init__(self, made: Any) -> None:
        self.made, self.pool = made, ThreadPoolExecutor(1)

    def call(self, name: str, words: tuple[Any, ...]) -> Any:
        if said := os.environ.get("FAKE_RAY_ACTOR"):
            raise exceptions.RayActorError(said)
        if name == "look" and self.breaks:
            self.breaks -= 1
            raise exceptions.ActorUnavailableError("broken")
        return getattr(self.made, name)(*words)

    def __getattr__(self, name: str) -> _Method:
        return _Method(self, name)


class remote:  # noqa: N801
    def __init__(self, kind: type) -> None:
        self._kind = kind

    def options(self, *, num_cpus: int, scheduling_strategy: Any) -> "remote":
        bundles = scheduling_strategy.placement_group.bundles
        assert bundles[scheduling_strategy.placement_group_bundle_index] == {"CPU": num_cpus}
        return self

    def remote(self) -> _Actor:
        return _Actor(self._kind())


__all__ = ["available_resources", "cluster_resources", "exceptions", "get", "init", "is_initialized", "nodes", "remote", "util"]
