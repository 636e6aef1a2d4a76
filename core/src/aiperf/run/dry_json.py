"""A dry run's page for a program: plan, load, the first and the longest request, and the files, as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aiperf.run.dry_page import file_names, last_due_ns
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.worker.clock import NS_PER_S
from aiperf.worker.rehearsal import Rehearsal, RehearsedRequest


def document(
    plan: Plan, built: Plan, rehearsal: Rehearsal, files: Sequence[Path], hidden: Callable[[str], str] = str
) -> str:
    """The arguments of :func:`aiperf.run.dry_page.page`; *hidden* takes the run's secrets out of a text.

    In ASCII alone, so that any terminal and any pipe takes it.  Null is unknown, or unset.
    """
    content = {
        "plan": built.run.config, "random_seed": built.run.seed if built.run.seeded else None,
        "load": [_load(phase) for phase in built.load.phases],
        "entries": {"all": built.data.entries, "made": rehearsal.made},
        "first_request": _request(rehearsal.first), "longest_request": _request(rehearsal.longest),
        "artifact_dir": plan.output.artifacts, "files": file_names(plan, files),
    }  # fmt: skip
    return json.dumps(_without(content, hidden), indent=2) + "\n"


def _load(phase: PhasePlan) -> dict[str, Any]:
    """What is known of a phase before it begins.

    requests: most that are sent.  last_due_s: when the last request is due, null where answers decide.
    """
    return {
        "phase": phase.name, "kind": phase.kind, "mode": phase.schedule,
        "requests": phase.planned if phase.turns is None else phase.turns, "last_due_s": _s(last_due_ns(phase)),
        "duration_s": _s(phase.duration_ns), "grace_s": _s(phase.grace_ns),
    }  # fmt: skip


def _s(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_S


def _request(request: RehearsedRequest) -> dict[str, Any]:
    return {
        "entry": request.entry, "turn": request.turn, "method": request.method, "url": request.url,
        "headers": [list(header) for header in request.headers], "headers_are_exact": request.exact,
        "body_bytes": len(request.body), "body": request.body, "input_tokens": request.input_tokens,
        "max_output_tokens": request.max_tokens,
    }  # fmt: skip


def _without(value: Any, hidden: Callable[[str], str]) -> Any:
    """*value* as JSON has it, all texts without secrets.  Bytes that are no UTF-8 become ``{"base64": …}``."""
    match value:
        case dict():
            return {key: _without(each, hidden) for key, each in value.items()}
        case list() | tuple():
            return [_without(each, hidden) for each in value]
        case str():
            return hidden(value)
        case bytes():
            text = hidden(value.decode(errors="surrogateescape"))
            try:
                text.encode()
            except UnicodeEncodeError:
                return {"base64": base64.b64encode(text.encode(errors="surrogateescape")).decode()}
            return text
    return value
