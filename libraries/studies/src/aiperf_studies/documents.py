"""The files of what runs have in common, as documents: their form is the reference's, with what is ours beside it.

The same runs give the same bytes: metrics are sorted, and no clock or chance has a part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from aiperf.sdk.exporter import visible
from aiperf.sdk.scenario import joined
from aiperf.sdk.study import Setting, Study, StudyRun
from aiperf.sdk.verdict import Finding

from aiperf_studies.best import best_cells, feasible_cells, pareto_cells
from aiperf_studies.cells import CellNumbers
from aiperf_studies.confidence import Confidence
from aiperf_studies.names import shown
from aiperf_studies.repeats import warm_repeats

AGGREGATE, COLLATED = "profile_export_aiperf_aggregate", "profile_export_aiperf_collated"
SWEEP, DESIGN = "profile_export_aiperf_sweep", "sampling_design"
"""Names of the files, without their endings; a prefix of the user's doesn't change them."""
SCHEMA_VERSION = "1.0"


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """The document as a file has it; what is not finite is null."""
    return visible(msgspec.json.format(msgspec.json.encode(document), indent=2)) + b"\n"


def aggregate_document(study: Study, cell: CellNumbers) -> dict[str, Any]:
    """``profile_export_aiperf_aggregate.json`` of a cell with a successful run."""
    metadata = _counts("confidence", cell.runs)
    metadata |= {
        "confidence_level": study.confidence_level,
        "run_labels": [run.label for run in cell.good],
        "cooldown_seconds": study.cooldown_s,
        "model": _model(cell),
    }
    if len(cell.good) == 1:
        metadata["single_run"] = True
    if study.sweeps:
        metadata |= {"variation_label": cell.cell.label, "variation_values": cell.cell.parameters, "sweep_mode": study.order}
        metadata["cell"] = {"index": cell.cell.index, "name": cell.cell.name}
    metadata |= _what_to_know(study, [cell]) | _scenario(cell.good)
    return {"schema_version": SCHEMA_VERSION, "aiperf_version": study.version, "metadata": metadata, "metrics": cell.rows}


def sweep_document(study: Study, cells: Sequence[CellNumbers]) -> dict[str, Any]:
    """``profile_export_aiperf_sweep.json``."""
    keys = parameter_keys(cells)
    values: dict[str, list[Setting]] = {key: [] for key in keys}
    for cell in cells:
        for key, value in cell.cell.parameters.items():
            if not any(value == each and type(value) is type(each) for each in values[key]):
                values[key].append(value)
    objectives = [f"{each.tag}:{each.stat}:{'max' if each.maximize else 'min'}" for each in study.objectives]
    front = pareto_cells(study, cells)
    return {
        "aiperf_version": study.version,
        "schema_version": SCHEMA_VERSION,
        **_counts("sweep", study.runs),
        "metadata": {
            "aggregation_type": "sweep",
            "sweep_parameters": [{"name": key, "values": values[key]} for key in keys],
            "num_combinations": len(cells),
            "sweep_mode": study.order,
            "sweep_type": study.planner,
            "confidence_level": study.confidence_level,
            "num_trials_per_value": study.trials,
            **({"objectives": objectives} if objectives else {}),
            **({"sla_constraints": _constraints(study, cells)} if study.sla_filters else {}),
            **_what_to_know(study, cells),
            **_scenario([run for cell in cells for run in cell.good]),
        },
        "per_combination_metrics": [
            {
                "parameters": cell.cell.parameters, "cell": cell.cell.name, "index": cell.cell.index,
                "num_successful_runs": len(cell.good), "metrics": {key: _of_sweep(row) for key, row in cell.rows.items()},
            }
            for cell in cells
        ],
        "best_configurations": {
            each.name: {
                "parameters": each.cell.cell.parameters, "metric": each.metric, "unit": each.unit, "cell": each.cell.cell.name,
            }
            for each in best_cells(study, cells)
        },
        "pareto_optimal": [cell.cell.parameters for cell in front],
        "pareto_cells": [cell.cell.name for cell in front],
    }  # fmt: skip


def _constraints(study: Study, cells: Sequence[CellNumbers]) -> dict[str, Any]:
    feasible = len(feasible_cells(study, cells))
    return {
        "active_filters": [
            {"metric_tag": each.tag, "stat": each.stat, "op": each.op, "threshold": each.threshold}
            for each in study.sla_filters
        ],
        "feasible_count": feasible,
        "infeasible_count": len(cells) - feasible,
    }  # fmt: skip


def _of_sweep(row: Confidence) -> dict[str, Any]:
    return {
        "mean": row.mean, "std": row.std, "min": row.min, "max": row.max, "cv": row.cv, "ci_low": row.ci_low,
        "ci_high": row.ci_high, "unit": row.unit,
    }  # fmt: skip


def _counts(kind: str, runs: Sequence[Any]) -> dict[str, Any]:
    good = [run for run in runs if run.summary is not None]
    failed = sorted((run.label, run.failed) for run in runs if run.summary is None)
    return {
        "aggregation_type": kind,
        "num_profile_runs": len(runs),
        "num_successful_runs": len(good),
        "failed_runs": [{"label": label, "error": why} for label, why in failed],
    }


def _what_to_know(study: Study, cells: Sequence[CellNumbers]) -> dict[str, Any]:
    """Runs that are suspect, what the runs say of the way they were made, and whether all of them have run."""
    told: dict[str, Any] = {}
    if suspects := [suspect for cell in cells for suspect in suspects_of(cell)]:
        told["suspect_runs"] = suspects
    if found := findings(cells):
        told["findings"] = [
            {"kind": each.kind, "level": each.level, "sentence": each.sentence, "numbers": each.numbers} for each in found
        ]
    if not study.complete:
        told |= {"is_complete": False, "incomplete_reason": study.reason}
    elif study.reason:
        told["ended_early"] = study.reason
    return told


def _scenario(runs: Sequence[StudyRun]) -> dict[str, Any]:
    """What the scenario of the successful runs says of them together."""
    return joined([run.summary.scenario for run in runs if run.summary is not None])


def suspects_of(cell: CellNumbers) -> list[dict[str, Any]]:
    """Label and reasons of each run whose numbers may be wrong."""
    found = []
    for run in cell.suspect:
        assert run.summary is not None, "it has succeeded"
        measurement = run.summary.measurement
        reasons = list(measurement.reasons) if measurement.verdict == "suspect" else []
        if run.carried_over:
            aborted = f"{run.carried_over:,} requests of the run before were aborted"
            reasons.append(f"{aborted}, and may have been in the server's queue")
        found.append({"label": run.label, "reasons": reasons})
    return found


def findings(cells: Sequence[CellNumbers]) -> list[Finding]:
    """What the runs say of the way they were made."""
    warm = warm_repeats(cells)
    return [] if warm is None else [warm]


def parameter_keys(cells: Sequence[CellNumbers]) -> list[str]:
    """The keys of all cells' parameters, in the order in which they first appear."""
    return list(dict.fromkeys(key for cell in cells for key in cell.cell.parameters))


def _model(cell: CellNumbers) -> str | None:
    """The first model's name, from the configuration of a successful run."""
    for run in cell.good:
        config = {} if run.summary is None else run.summary.config
        models = config.get("models")
        for value in (models.get("items") if isinstance(models, dict) else models, config.get("endpoint", {}).get("models")):
            if isinstance(value, list) and value:
                first = value[0]
                return str(first.get("name") if isinstance(first, dict) else first)
    return None


# CSV

_FIELDS = ("mean", "std", "min", "max", "cv", "se", "ci_low", "ci_high", "t_critical")
_TITLES = {"num_profile_runs": "Total Runs", "num_successful_runs": "Successful Runs"}
"""Of the metadata in the CSV file, as in the reference; others are the keys' words."""
_ROW = "%s,%.2f,%.2f,%.2f,%.2f,%.4f,%.4f,%.2f,%.2f,%s,%s\r\n"


def aggregate_csv(document: Mapping[str, Any]) -> str:
    """``profile_export_aiperf_aggregate.csv`` of :func:`aggregate_document`: rows, an empty line, then the metadata."""
    lines = [f"metric,{','.join(_FIELDS)},unit\r\n"]
    for key, row in document["metrics"].items():
        t = "" if row.t_critical is None else f"{row.t_critical:.4f}"
        numbers = (row.mean, row.std, row.min, row.max, row.cv, row.se, row.ci_low, row.ci_high)
        lines.append(_ROW % (key, *numbers, t, field(row.unit)))
    lines.append("\r\n")
    lines += [f"{_TITLES.get(key, _titled(key))},{field(_text(value))}\r\n" for key, value in document["metadata"].items()]
    return "".join(lines)


def sweep_csv(document: Mapping[str, Any]) -> str:
    """``profile_export_aiperf_sweep.csv`` of :func:`sweep_document`: a line for each cell, then what they give together."""
    keys = [each["name"] for each in document["metadata"]["sweep_parameters"]]
    lines = [*_table(document["per_combination_metrics"], keys), "", "Best Configurations"]
    best = document["best_configurations"]
    if best:
        lines.append(_line(["Configuration", *keys, "Metric", "Unit"]))
    for name, each in best.items():
        lines.append(_line([_titled(name), *_parameters(each, keys), f"{each['metric']:.2f}", each["unit"]]))
    lines += ["", "Pareto Optimal Points"]
    front = document["pareto_optimal"]
    lines += [_line(keys), *(_line(_parameters({"parameters": each}, keys)) for each in front)] if front else ["None"]
    lines += [
        "", "Metadata", "Field,Value",
        _line(["Aggregation Type", document["aggregation_type"]]),
        _line(["Sweep Parameters", ", ".join(keys)]),
        _line(["Number of Combinations", str(document["metadata"]["num_combinations"])]),
        _line(["Number of Profile Runs", str(document["num_profile_runs"])]),
        _line(["Number of Successful Runs", str(document["num_successful_runs"])]),
    ]  # fmt: skip
    return "\r\n".join([*lines, ""])


def _table(combinations: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> Iterator[str]:
    metrics = sorted({key for each in combinations for key in each["metrics"]})
    yield _line([*keys, *(f"{key}_{name}" for key in metrics for name in ("mean", "std", "min", "max", "cv"))])
    absent = ",,,,"
    for each in combinations:
        rows = each["metrics"]
        cells = [absent if (row := rows.get(key)) is None else _cells(row) for key in metrics]
        yield ",".join([*map(field, _parameters(each, keys)), *cells])


def _cells(row: Mapping[str, Any]) -> str:
    cv = f"{row['cv']:.4f}" if row["cv"] != math.inf else ""
    return f"{row['mean']:.2f},{row['std']:.2f},{row['min']:.2f},{row['max']:.2f},{cv}"


def _parameters(each: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    return [_text(each["parameters"][key]) if key in each["parameters"] else "" for key in keys]


def _titled(key: str) -> str:
    return key.replace("_", " ").title()


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, list | dict) else shown(value)


def _line(cells: Sequence[str]) -> str:
    return ",".join(map(field, cells))


@lru_cache(256)  # units repeat
def field(text: str) -> str:
    """A field of a CSV file (RFC 4180)."""
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\r\n') else text
