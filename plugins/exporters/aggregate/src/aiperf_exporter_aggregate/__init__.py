"""What the runs of a study have in common: files of each cell and of all cells, and lines on the console."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from aiperf import Artifact, ConfigError, atomic
from aiperf.sdk.exporter import StudyExporter
from aiperf.sdk.study import Study, StudyRun
from aiperf_studies.best import lacking
from aiperf_studies.cells import CellNumbers, numbers_of
from aiperf_studies.documents import (
    AGGREGATE,
    COLLATED,
    DESIGN,
    SWEEP,
    aggregate_csv,
    aggregate_document,
    json_bytes,
    sweep_csv,
    sweep_document,
)
from aiperf_studies.options import ConvergedOptions

from aiperf_exporter_aggregate.console import lines
from aiperf_exporter_aggregate.table import numbers_of_run, table


class Aggregate(StudyExporter[ConvergedOptions]):
    """The aggregate of each cell with a successful run, that of the sweep, and the design where cells were drawn."""

    files = {
        "aggregate.json": f"{AGGREGATE}.json", "aggregate.csv": f"{AGGREGATE}.csv", "collated.json": f"{COLLATED}.json",
        "sweep.json": f"{SWEEP}.json", "sweep.csv": f"{SWEEP}.csv", "sampling_design.json": f"{DESIGN}.json",
    }  # fmt: skip

    def export_study(self, study: Study) -> Sequence[Artifact]:
        cells = numbers_of(study)
        written = [*self._design(study)]
        if study.trials > 1 or study.sweeps:
            for cell in cells:
                written += self._cell(study, cell)
        if study.sweeps and any(cell.rows for cell in cells):
            written += self._sweep(study, cells)
        for line in lines(study, cells):
            print(line)
        if faults := lacking(study, cells):
            raise ConfigError(f"no cell is judged by a statistic that it lacks: {'; '.join(faults)}", "name another one")
        return written

    def line(self, study: Study, run: StudyRun) -> Sequence[str]:
        return () if run.summary is None else tuple(numbers_of_run(run.summary))

    def table(self, study: Study, width: int) -> str:
        return table(study, numbers_of(study), width)

    def _design(self, study: Study) -> Iterator[Artifact]:
        if study.design is not None:
            path = study.directory / "sweep_aggregate" / self.files["sampling_design.json"]
            yield _written("Sampling design", path, json_bytes(study.design))

    def _cell(self, study: Study, cell: CellNumbers) -> Iterator[Artifact]:
        if not cell.rows:
            return
        folder, document = study.aggregate_of(cell.cell), aggregate_document(study, cell)
        name = f"Aggregate of {cell.cell.name}" if cell.cell.name else "Aggregate"
        yield _written(name, folder / self.files["aggregate.json"], json_bytes(document))
        yield _written(f"{name}, CSV", folder / self.files["aggregate.csv"], aggregate_csv(document).encode())
        if self.options is not None and self.options.metric is not None and (content := _collated(study, cell)) is not None:
            yield _written(f"Requests of all runs{name[9:]}", folder / self.files["collated.json"], content)

    def _sweep(self, study: Study, cells: Sequence[CellNumbers]) -> Iterator[Artifact]:
        folder, document = study.aggregate_of_cells, sweep_document(study, cells)
        yield _written("Sweep", folder / self.files["sweep.json"], json_bytes(document))
        yield _written("Sweep, CSV", folder / self.files["sweep.csv"], sweep_csv(document).encode())


def _written(label: str, path: Path, content: bytes) -> Artifact:
    with atomic(path) as draft:
        draft.write_bytes(content)
    return Artifact(label, path)


def _collated(study: Study, cell: CellNumbers) -> bytes | None:
    """The requests of all runs together; None where a run has no file of them."""
    from aiperf_results import open_run
    from aiperf_studies.collated import collated_document

    columns = []
    for run in cell.good:
        opened = open_run(run.directory)
        if not opened.has("jsonl"):
            return None
        table = opened.requests()
        columns.append({name: table.numbers(name) for name in table.names() if not name.endswith("_ns")})
    return json_bytes(collated_document(study, cell, columns))
