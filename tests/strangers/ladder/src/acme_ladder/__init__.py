"""A search over one number, and who won it."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf import Artifact, Options, atomic, option
from aiperf.sdk.errors import ConfigError
from aiperf.sdk.exporter import StudyExporter
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner, Space
from aiperf.sdk.study import Objective, Study, StudyCell, StudyRun

LATENCY = Objective("request_latency", "avg", maximize=False)


class Halving(Planner):
    """All values of one list, then whole numbers halfway between the fastest one and its neighbours, until none is left."""

    def __init__(self, space: Space, options: None = None) -> None:
        super().__init__(space, options)
        values = [value for each in space.dimensions for value in each.values]
        if len(space.dimensions) != 1 or not all(isinstance(value, int) for value in values):
            raise ConfigError("--sweep-type halving takes one list of whole numbers", "such as --concurrency 1,8,16")
        self._key = space.dimensions[0].key
        self._first: list[int] = sorted(int(str(value)) for value in values)

    def next(self, finished: Sequence[StudyRun]) -> Sequence[PlannedTrial] | PlanEnd:
        known = {int(str(run.cell.parameters[self._key])): run.cell for run in finished}
        done = {(run.cell.index, run.trial) for run in finished}
        wanted = [value for value in self._first if value not in known]
        if not wanted:
            good = [(LATENCY.of(run.summary) or 0.0, run.cell.index) for run in finished if run.summary is not None]
            if not good:
                return PlanEnd("no run succeeded")
            order, best = sorted(known), min(good)[1]
            place = next(at for at, value in enumerate(order) if known[value].index == best)
            middles = {(order[place] + near) // 2 for near in order[max(0, place - 1) : place + 2]}
            wanted = sorted(middles - set(known))
        cells = [*known.values()]
        for value in wanted:
            cells.append(StudyCell(len(cells), {self._key: value}, f"{self._key}-{value}", f"{self._key} {value}"))
        trials = range(1, self.space.trials + 1)
        left = [PlannedTrial(cell, trial) for cell in cells for trial in trials if (cell.index, trial) not in done]
        return left or PlanEnd("the values beside the fastest one are known")

    def most(self) -> None:
        return None


class PodiumOptions(Options):
    places: int = option("--podium-places", default=3, ge=1, group="Podium", metavar="CELLS", help="Cells on the podium.")


class Podium(StudyExporter[PodiumOptions]):
    """``podium.txt``, and ``progress.txt`` with a line for each run that has ended."""

    files = {"podium.txt": "podium.txt", "progress.txt": "progress.txt"}

    def run_ended(self, study: Study) -> None:
        with atomic(self.target.file("progress.txt")) as draft:
            draft.write_text("".join(f"{run.label}\n" for run in sorted(study.runs, key=lambda run: run.label)))

    def export_study(self, study: Study) -> Sequence[Artifact]:
        best: list[tuple[float, str]] = []
        for cell in study.cells:
            values = [LATENCY.of(run.summary) for run in study.runs_of(cell) if run.summary is not None]
            known = [value for value in values if value is not None]
            if known:
                best.append((sum(known) / len(known), cell.name))
        path = self.target.file("podium.txt")
        with atomic(path) as draft:
            lines = (f"{place}. {name}: {latency:.3f} ms\n" for place, (latency, name) in enumerate(sorted(best), 1))
            draft.write_text("".join(list(lines)[: self.options.places if self.options else 3]))
        return [Artifact("Podium", path), Artifact("Progress", self.target.file("progress.txt"))]


__all__ = ["Halving", "Podium", "PodiumOptions"]
