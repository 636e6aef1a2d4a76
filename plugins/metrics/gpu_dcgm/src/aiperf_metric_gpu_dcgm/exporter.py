"""One DCGM exporter: its page of metrics as series of GPUs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence

from aiperf.sdk.errors import AiperfError
from aiperf.sdk.telemetry import Absent, FetchError, Point, Reading, TelemetryContext, TelemetryTarget
from aiperf_gpus.series import Fold
from aiperf_metric_server_metrics.addresses import Address, given_address
from aiperf_metric_server_metrics.errors import PageError
from aiperf_metric_server_metrics.target import MetricsTarget

from aiperf_metric_gpu_dcgm.fields import Field

log = logging.getLogger("aiperf.telemetry.gpu_dcgm")

_LABELS = {
    "gpu": "gpu", "UUID": "uuid", "modelName": "model", "pci_bus_id": "pci_bus_id", "device": "device", "Hostname": "hostname",
    "GPU_I_ID": "mig", "namespace": "namespace", "pod": "pod",
}  # fmt: skip
"""Labels of the page that are kept, and their names here."""
_BLANK = 2147483632
"""Values from here on stand in DCGM for a field without a value."""
_DCGM = "DCGM_FI_"


class Owners:
    """Which target has a GPU, or an instance of one: the first that showed it."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def has(self, target: str, gpu: tuple[str, str]) -> bool:
        """Whether the GPU is the target's; one that nobody has becomes it."""
        with self._lock:
            if gpu not in self._owners:
                self._owners[gpu] = target
                return True
            return self._owners[gpu] == target

    def of(self, gpu: tuple[str, str]) -> str:
        return self._owners[gpu]


def pages(defaults: Iterable[str], given: Iterable[str]) -> Iterator[tuple[Address, bool]]:
    """The pages, the defaults first, none twice; and whether the user named them."""
    named = {given_address(url).key for url in given}
    known: dict[object, Address] = {}
    for url in (*defaults, *given):
        address = given_address(url)
        known.setdefault(address.key, address)
    return ((address, key in named) for key, address in known.items())


class DcgmTarget(TelemetryTarget):
    """Reads a page by what reads servers' pages, and keeps the fields that are known.

    asked: the user named it.  An exporter that isn't there is a fault then, and else nothing to speak of.
    """

    def __init__(
        self, address: Address, context: TelemetryContext, interval_s: float, timeout_s: float, fields: Mapping[str, Field],
        owners: Owners, *, asked: bool,
    ) -> None:  # fmt: skip
        self.name, self.interval_s = address.name, interval_s
        self._page = MetricsTarget(address, context, interval_s, timeout_s, asked=asked)
        self._asked, self._fields, self._owners = asked, fields, owners
        self._seen = False
        self._before: Sequence[Point] = ()
        self._made: list[Point | None] = []
        self._told: set[str] = set()

    def sample(self) -> Reading:
        try:
            reading = self._page.sample()
        except (FetchError, PageError) as error:
            if self._asked or self._seen:
                raise
            raise Absent(f"{self.name} is no DCGM exporter: {error.message}") from error
        given = list(reading.points)
        if not any(point.name.startswith(_DCGM) for point in given):
            self._refuse(given)
        self._seen = True
        made = list(self._points(given))
        self._before, self._made = given, made
        return Reading([point for point in made if point is not None], reading.sent_ns, reading.first_byte_ns)

    def _refuse(self, given: Sequence[Point]) -> None:
        """
        Raises:
            AiperfError: The page has no figures of GPUs.
        """
        if self._seen:
            raise AiperfError(f"{self.name} has no figures of GPUs any more")
        some = ", ".join(dict.fromkeys(point.name for point in given[:3]))
        why = f"{self.name} has no figures of GPUs ({_DCGM}…), but {some or 'nothing'}"
        if self._asked:
            raise AiperfError(f"{why}; name a DCGM exporter, --gpu-telemetry HOST:9400, and further pages by --server-metrics")
        raise Absent(why)

    def _points(self, given: Sequence[Point]) -> Iterator[Point | None]:
        """By point of the page, the one that is made of it, again only where it changed; None where it is left out."""
        before, made = self._before, self._made
        for place, point in enumerate(given):
            yield made[place] if place < len(before) and before[place] is point else self._point(point)

    def _point(self, point: Point) -> Point | None:
        field = self._fields.get(point.name) or self._fields.get(point.name.removesuffix("_total"))
        if field is None or not isinstance(point.value, float | int) or not point.finite:
            return None
        index = point.labels.get("gpu", "")
        if not index.isdecimal():
            self._tell(f"{point.name} has no label gpu with a number; it is left out")
            return None
        if point.value < 0:
            self._tell(f"{point.name} of GPU {index} is negative ({point.value:g}); such values are left out")
            return None
        if field.quantity.fold is Fold.LEVEL and point.value >= _BLANK:
            return None
        labels = {ours: point.labels[theirs] for theirs, ours in _LABELS.items() if point.labels.get(theirs)}
        labels.setdefault("uuid", f"GPU-unknown-{labels.get('hostname', self.name)}-{index}")
        gpu = labels["uuid"], labels.get("mig", "")
        if not self._owners.has(self.name, gpu):
            self._tell(f"GPU {gpu[0]} is known from {self._owners.of(gpu)}, and counts once", level=logging.INFO)
            return None
        return field.quantity.point(point.value * field.scale, {**labels, "platform": "nvidia"})

    def _tell(self, sentence: str, level: int = logging.WARNING) -> None:
        """Log a sentence once."""
        if sentence.partition(" (")[0] not in self._told:
            self._told.add(sentence.partition(" (")[0])
            log.log(level, "%s: %s", self.name, sentence)


__all__ = ["DcgmTarget", "Owners", "pages"]
