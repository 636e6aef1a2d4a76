"""``aiperf synthesize agentic-code``: the folder of a data set that the model of coding agents makes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from aiperf import AiperfError, UsageError
from aiperf.sdk.trace import TraceRow
from aiperf_command_analyze_trace.analysis import TraceReport, analyse
from aiperf_command_analyze_trace.statistics import Spread
from msgspec import Struct
from msgspec.structs import replace

from aiperf_command_synthesize.model import AgenticSession, Model, Sessions
from aiperf_command_synthesize.options import SynthesizeOptions
from aiperf_command_synthesize.views import cache_explorer, report, simulation

_DEFAULT = "default"
_NAMES = ("dataset.jsonl", "manifest.json", "quality.json", "comparison.txt", "cache_structure.json")
_PAGES = ("report.html", "cache_explorer.html", "simulation.html")
_LAYERS = ("L1", "L1.5", "L2")


class AgenticManifest(Struct, frozen=True, forbid_unknown_fields=True):
    """What makes a data set again: it can be given as ``--config``."""

    config_name: str
    seed: int
    num_sessions: int
    model: Model
    max_osl: int | None = None


def agentic_code(options: SynthesizeOptions, *, now: float) -> tuple[Path, list[str]]:
    """Write the folder; gives it, and the lines of the comparison.  now: seconds since the epoch, for its name.

    Raises:
        AiperfError: The configuration can't be used, or the folder can't be written.
    """
    name, model = _configured(options.config)
    if options.max_isl is not None:
        model = replace(model, max_prompt=min(model.max_prompt, options.max_isl))
    if (problem := model.problem()) is not None:
        where = "--max-isl" if options.max_isl is not None else "--config"
        raise AiperfError(f"{where}: no session can be made: {problem}")
    manifest = AgenticManifest(name, options.seed, options.num_sessions, model, options.max_osl)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    folder = (options.output or Path()) / f"{name}_{options.num_sessions}s_seed{options.seed}_{stamp}"
    try:
        folder.mkdir(parents=True)
        return folder, _written(folder, manifest)
    except FileExistsError as error:
        raise AiperfError(f"{folder} is already there", "wait a second, or name another --output") from error
    except OSError as error:
        raise AiperfError(f"{folder} can't be written: {error.strerror or error}", "choose another --output") from error


def _configured(config: str | None) -> tuple[str, Model]:
    """Name and model of ``--config``: the built-in one, or that of a manifest."""
    if config is None or config == _DEFAULT:
        return _DEFAULT, Model()
    try:
        manifest = msgspec.json.decode(Path(config).read_bytes(), type=AgenticManifest)
    except OSError as error:
        hint = f"write {_DEFAULT!r}, or the manifest.json of a data set that was made"
        raise UsageError(f"--config {config}: {error.strerror or error}", hint) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise AiperfError(f"--config {config} is no manifest of a data set: {error}") from error
    return manifest.config_name, manifest.model


def _written(folder: Path, manifest: AgenticManifest) -> list[str]:
    sessions = list(Sessions(manifest.model, manifest.seed, manifest.max_osl).take(manifest.num_sessions))
    encode = msgspec.json.Encoder().encode
    with (folder / _NAMES[0]).open("wb") as file:
        file.writelines(encode(row) + b"\n" for session in sessions for row in session.rows)
    measures, block = _measures(sessions), manifest.model.block
    quality = _quality(sessions, manifest.model, measures)
    lines = list(_comparison(manifest, quality, sessions))
    structures = [_structure(session) for session in sessions]
    structure = {"block_size": block, "sessions": structures}
    for name, value in ((_NAMES[1], manifest), (_NAMES[2], quality), (_NAMES[4], structure)):
        (folder / name).write_bytes(msgspec.json.format(encode(value), indent=2) + b"\n")
    (folder / _NAMES[3]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    pages = (
        report(folder.name, lines, measures), cache_explorer(folder.name, sessions, structures, block),
        simulation(folder.name, sessions, block),
    )  # fmt: skip
    for name, page in zip(_PAGES, pages, strict=True):
        (folder / name).write_text(page, encoding="utf-8")
    return lines


class Observed(Struct, frozen=True):
    """*target_mean*, *target_median*: of the model; None where it says neither."""

    observed: Spread
    target_mean: float | None = None
    target_median: float | None = None


class Quality(Struct, frozen=True):
    """Lengths in tokens, delays in ms.  full: sessions ended by the limit.  cache: what analyze-trace says of the data set."""

    measures: dict[str, Observed]
    full: int
    cache: TraceReport


def _measures(sessions: Sequence[AgenticSession]) -> dict[str, list[float]]:
    rows = [row for session in sessions for row in session.rows]
    later = [row for session in sessions for row in session.rows[1:]]
    return {
        "initial_context": [session.rows[0]["input_length"] for session in sessions],
        "new_tokens_per_turn": [row["input_length"] for row in later],
        "generation_length": [row["output_length"] for row in rows],
        "inter_turn_delay_ms": [row["delay"] for row in later],
        "turns_per_session": [len(session.rows) for session in sessions],
    }


def _quality(sessions: Sequence[AgenticSession], model: Model, measures: Mapping[str, Sequence[float]]) -> Quality:
    layers = model.layer_1 + model.layer_1_5
    targets = {
        "initial_context": (model.layer_2.mean + layers, model.layer_2.median + layers),
        "new_tokens_per_turn": (model.new_tokens.mean, model.new_tokens.median),
        "generation_length": (model.output.mean, model.output.median),
    }
    observed = {
        name: Observed(Spread.of(np.array(values, np.float64)), *targets.get(name, ())) for name, values in measures.items()
    }
    found, _ = analyse((_recorded(row) for session in sessions for row in session.rows), model.block)
    return Quality(observed, sum(session.full for session in sessions), found)


def _recorded(row: dict[str, Any]) -> TraceRow:
    return TraceRow(
        row["input_length"], row["output_length"], row["hash_ids"], row.get("timestamp"), row.get("delay"),
        session=row["session_id"],
    )  # fmt: skip


def _comparison(manifest: AgenticManifest, quality: Quality, sessions: Sequence[AgenticSession]) -> Iterator[str]:
    turns = sum(len(session.rows) for session in sessions)
    yield f"{len(sessions):,} sessions, {turns:,} turns, blocks of {manifest.model.block} tokens, seed {manifest.seed}"
    yield f"{quality.full:,} sessions ended at {manifest.model.max_prompt:,} tokens, the others by a reset"
    yield f"{'':<28}{'target mean':>14}{'mean':>14}{'target median':>16}{'median':>14}{'max':>14}"
    for name, each in quality.measures.items():
        cells = (each.target_mean, each.observed.mean, each.target_median, each.observed.median, each.observed.max)
        shown = ["–" if value is None else f"{value:,.1f}" for value in cells]
        yield f"{name:<28}" + "".join(f"{text:>{width}}" for text, width in zip(shown, (14, 14, 16, 14, 14), strict=True))
    rate = f"{quality.cache.cache_hit_rate:.1%}"
    yield f"distinct blocks {quality.cache.distinct_blocks:,}; rows find {rate} of their own blocks in a cache without end"


def _structure(session: AgenticSession) -> dict[str, Any]:
    """For each turn, the blocks of its whole prompt by layer: new ones, and those that the session, or all, had before."""
    turns, context = [], 0
    for index, row in enumerate(session.rows):
        segments = []
        if index == 0:
            begin = 0
            for layer, count in zip(_LAYERS, session.layers, strict=True):
                if count:
                    segments.append({"layer": layer, "start": begin, "count": count, "new": layer == "L2"})
                begin += count
        else:
            segments = [{"layer": "context", "start": 0, "count": context, "new": False},
                        {"layer": "L3", "start": context, "count": len(row["hash_ids"]), "new": True}]  # fmt: skip
        context += len(row["hash_ids"])
        turns.append({"input_length": row["input_length"], "output_length": row["output_length"], "segments": segments})
    return {"session_id": session.rows[0]["session_id"], "group_id": session.rows[0]["group_id"], "turns": turns}
