"""Pages of metrics as inference engines write them: a module for each engine, with its ``PAGE``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType

from msgspec import Struct

from aiperf_command_simulate.families import Buckets, Family, Labelled
from aiperf_command_simulate.meters import Meters

ENGINES = ("vllm", "sglang", "trtllm", "dynamo", "triton")

_NONE: Mapping[str, str] = MappingProxyType({})


class ModelState(Struct, frozen=True):
    """A served model at this moment.  running, waiting: sequences."""

    name: str
    meters: Meters
    running: int
    waiting: int


class EngineState(Struct, frozen=True):
    """used_blocks, blocks: of the prefix cache.  drafts: whether the decoder has drafts."""

    models: Sequence[ModelState]
    used_blocks: int
    blocks: int
    block_size: int
    drafts: bool

    @property
    def cache_usage(self) -> float:
        return self.used_blocks / self.blocks if self.blocks else 0.0


class EnginePage(Struct, frozen=True):
    """An engine's page.  other: JSON at ``/metrics``, of an engine that has its page elsewhere."""

    families: Callable[[EngineState], Iterable[Family]]
    path: str = "/metrics"
    other: Callable[[EngineState], object] | None = None


class Writer:
    """Makes families under a prefix.  *labels* gives the labels that all series of a model have."""

    def __init__(
        self, prefix: str, state: EngineState, labels: Callable[[ModelState], dict[str, str]], *, suffixed: bool = True
    ) -> None:
        self._prefix, self._state, self._labels, self._suffixed = prefix, state, labels, suffixed

    def gauge(self, name: str, help: str, value: Callable[[ModelState], float]) -> Family:
        return self._family(name, "gauge", help, value)

    def counter(self, name: str, help: str, value: Callable[[ModelState], float], **labels: str) -> Family:
        return self._family(name, "counter", help, value, labels)

    def count(self, name: str, help: str, meter: str, **labels: str) -> Family:
        """A counter that is one of the counts of the meters."""
        return self.counter(name, help, lambda model: model.meters.counts[meter], **labels)

    def histogram(self, name: str, help: str, meter: str, scale: float = 1.0) -> Family:
        return self._family(name, "histogram", help, lambda model: Buckets(model.meters.histograms[meter], scale))

    def split(self, name: str, kind: str, help: str, label: str, values: Callable[[ModelState], dict[str, float]]) -> Family:
        """A family whose series of a model differ by *label*."""
        series = [
            Labelled({**self._labels(model), label: place}, value)
            for model in self._state.models
            for place, value in values(model).items()
        ]
        return Family(self._prefix + name, kind, help, tuple(series), self._suffixed)

    def _family(
        self, name: str, kind: str, help: str, value: Callable[[ModelState], float | Buckets], labels: Mapping[str, str] = _NONE
    ) -> Family:
        series = tuple(Labelled({**self._labels(model), **labels}, value(model)) for model in self._state.models)
        return Family(self._prefix + name, kind, help, series, self._suffixed)


def ends(model: ModelState) -> dict[str, float]:
    """Texts of answers by the reason of their end."""
    return dict(model.meters.success)


def acceptance_length(model: ModelState) -> float:
    """Tokens that a step of a decoder with drafts makes on average; 0 where there was none."""
    counts = model.meters.counts
    steps = counts["num_spec_steps"]
    return 1 + counts["num_accepted_draft_tokens"] / steps if steps else 0.0


def engine_page(name: str) -> EnginePage:
    """The page of the engine, one of ENGINES."""
    page: EnginePage = import_module(f"{__name__}.{name}").PAGE
    return page
