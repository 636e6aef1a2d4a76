"""The page of a dry run: plan, load, the first and the longest request, and the files, as plain text for any terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aiperf.planning.phases import target
from aiperf.redaction import without_secrets
from aiperf.sdk.exporter import visible
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.worker.clock import NS_PER_S
from aiperf.worker.rehearsal import Rehearsal, RehearsedRequest

_LEAST_COLUMNS, _NARROW_COLUMNS = 20, 60
_WHOLE_BYTES, _HEAD_BYTES, _TAIL_BYTES = 4096, 2048, 1024
_LABEL = "            "
_SHORT_S = 100.0
"""Longer times are shown without their fractions."""


def page(
    plan: Plan, built: Plan, rehearsal: Rehearsal, files: Sequence[Path], hidden: Callable[[str], str] = str
) -> str:
    """*plan*: of the run.  *built*: the same with its data set and due times.  *files*: that the run would write.

    *hidden* takes the run's secrets out of a text.
    """
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    lines = _wrapped("Dry run: nothing is sent to a server under test, and no file of the run is kept.", columns, "")
    if plan.plugins.companions:
        left_out = "What the run asks servers before its load, whether they are ready or for their metrics, is left out."
        lines += _wrapped(left_out, columns, "")
    lines += ["", "Plan", *_rows(_facts(built), columns)]
    for phase in built.load.phases:
        lines += ["", f"Phase {phase.name}", *_rows(_load(phase), columns)]
    first, longest = rehearsal.first, rehearsal.longest
    lines += ["", *_wrapped(f"First request, of the phase {built.load.phases[0].name} (ids are new in each run)", columns, "")]
    lines += _request(first)
    among = _among(built, rehearsal)
    if (longest.entry, longest.turn) == (first.entry, first.turn):
        lines += ["", *_wrapped(f"Longest request: the first one, among those of {among}.", columns, "")]
    else:
        lines += ["", *_wrapped(f"Longest request, among those of {among}", columns, ""), *_request(longest)]
    lines += ["", f"Files, in {plan.output.artifacts}", *(f"  {name}" for name in file_names(plan, files))]
    return hidden("\n".join(lines) + "\n")


def file_names(plan: Plan, files: Sequence[Path]) -> list[str]:
    """The files that the run would write, below its directory where they are there."""
    directory = Path(plan.output.artifacts)
    names = {str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path) for path in files}
    return [*sorted(names), "journal/", "logs/aiperf.log"]


def _facts(plan: Plan) -> Iterable[tuple[str, str]]:
    at, data, plugins = plan.target, plan.data, plan.plugins
    yield "Model", ", ".join(at.models)
    yield "Server", ", ".join(map(without_secrets, at.urls))
    stream = ", streaming" if at.streaming else ""
    yield "Endpoint", f"{plugins.endpoint.name}{stream}, over the transport {plugins.transport.name}"
    name = data.name or plugins.dataset.name
    source = f" of {data.source}" if data.source is not None else ""
    yield "Data set", f"{name}{source}: {_number(data.entries, 'entry', 'entries')}, in the order {data.sampling}"
    if data.tokenizer_name is not None:
        yield "Tokenizer", data.tokenizer_name
    if plan.run.seeded:
        yield "Seed", f"{plan.run.seed}: each run sends the same"
    else:
        yield "Seed", "none: what is drawn at random is drawn anew in each run; --random-seed fixes it"
    yield "Processes", f"{_number(plan.run.workers, 'worker')}, {_number(plan.run.reducers, 'reducer')}"


def _load(phase: PhasePlan) -> Iterable[tuple[str, str]]:
    yield "Mode", phase.schedule
    yield "Load", target(phase).removeprefix("target: ")
    ramps = (
        ("concurrency", phase.concurrency_ramp_ns), ("prefill concurrency", phase.prefill_ramp_ns),
        ("rate", phase.rate_ramp_ns),
    )  # fmt: skip
    if rising := [f"{what} over {_seconds(ns)}" for what, ns in ramps if ns]:
        yield "Ramps", f"{phase.ramp}: {', '.join(rising)}"
    if phase.cancel_share:
        yield "Cancelled", f"{100 * phase.cancel_share:g} %, {_seconds(phase.cancel_delay_ns)} after they are sent"
    yield "Requests", _requests(phase)
    yield "Time", _time(phase)


def _requests(phase: PhasePlan) -> str:
    if phase.turns is not None:
        return f"{phase.turns:,}"
    if phase.planned is not None:
        return f"{phase.planned:,} are due"
    if phase.session_count is not None:
        return f"all turns of {_number(phase.session_count, 'session')}"
    return f"as many as are answered in {_seconds(phase.duration_ns or 0)}"


def _time(phase: PhasePlan) -> str:
    """How long the phase takes, as far as that is known."""
    counted = phase.request_count is not None or phase.session_count is not None
    last_ns = last_due_ns(phase)
    if last_ns is not None and (counted or phase.duration_ns is None):
        return f"{_seconds(last_ns)} until the last request is due, and until it is answered"
    if phase.duration_ns is None:
        return "depends on the server: each answer makes room for the next request"
    grace = "until" if phase.grace_ns is None else f"up to {_seconds(phase.grace_ns)} until"
    drain = "" if phase.grace_ns == 0 else f", then {grace} the requests in flight have ended"
    return f"{'at most ' if counted else ''}{_seconds(phase.duration_ns)}{drain}"


def last_due_ns(phase: PhasePlan) -> int | None:
    """When the last request with a due time is due; None where answers decide."""
    if phase.due_file is None:
        return None
    path, count = Path(phase.due_file), phase.planned or phase.turns
    with path.open("rb") as file:
        stored = path.stat().st_size // 8
        at = min(stored, count or stored)
        file.seek(8 * max(0, at - 1))
        last_ns = int.from_bytes(file.read(8), sys.byteorder, signed=True)
        if last_ns >= 0:
            return last_ns
        file.seek(0)
        return max(memoryview(file.read(8 * at)).cast("q"), default=0)


def _among(plan: Plan, rehearsal: Rehearsal) -> str:
    made, every = rehearsal.made, plan.data.entries
    if made >= every:
        return f"all {made:,} entries" if made > 1 else "one entry"
    return f"the {made:,} of {every:,} entries that are made before the load begins (all with --check-data)"


def _request(request: RehearsedRequest) -> list[str]:
    shown = [f"  {request.method} {request.url}", *(f"  {name}: {value}" for name, value in request.headers)]
    sizes = [f"  Body: {_number(len(request.body), 'byte')}"]
    if request.input_tokens is not None:
        sizes.append(_number(request.input_tokens, "input token"))
    if request.max_tokens is not None:
        sizes.append(f"at most {_number(request.max_tokens, 'output token')}")
    return [*shown, ", ".join(sizes), *_body(request.body)]


def _body(body: bytes) -> list[str]:
    """The body on lines of its own, as it is sent; of a long one the begin and the end."""
    if len(body) <= _WHOLE_BYTES:
        return [_text(body)] if body else []
    left_out = len(body) - _HEAD_BYTES - _TAIL_BYTES
    return [_text(body[:_HEAD_BYTES]), f"  ... {left_out:,} bytes are left out here ...", _text(body[-_TAIL_BYTES:])]


def _text(body: bytes) -> str:
    return visible(body).decode(errors="backslashreplace")


def _rows(facts: Iterable[tuple[str, str]], columns: int) -> list[str]:
    """Labels and values; on a narrow terminal each value below its label."""
    lines: list[str] = []
    for label, value in facts:
        if 0 < columns < _NARROW_COLUMNS:
            lines += [f"  {label}", *_wrapped(value, columns, "    ")]
        else:
            wrapped = _wrapped(value, columns, "  " + _LABEL)
            lines += [f"  {label:<{len(_LABEL)}}{wrapped[0].lstrip()}", *wrapped[1:]]
    return lines


def _wrapped(text: str, columns: int, indent: str) -> list[str]:
    """*text* in lines of at most *columns*, words whole; in one line where there is no terminal (0)."""
    if not columns:
        return [indent + text]
    width = max(_LEAST_COLUMNS, columns)
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [indent]  # fmt: skip


def _number(count: int, one: str, several: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def _seconds(ns: int) -> str:
    seconds = ns / NS_PER_S
    return f"{round(seconds, 2 if seconds < _SHORT_S else None):,} s".replace(".0 s", " s")
