"""The configuration that result files show: the plan in the sections of the configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiperf.planning.phases import section
from aiperf.planning.problems import Draft
from aiperf.redaction import REDACTED, shown_fields, without_secrets
from aiperf.sdk.options import shown_options
from aiperf.sdk.plan import ExportLevel, Plan, Secrets


def sections(plan: Plan, secrets: Secrets, draft: Draft) -> dict[str, Any]:
    """Set and derived values; unset ones are left out, keys and header values are redacted."""
    everything: dict[str, Any] = {
        "models": {
            "items": [{"name": model} for model in plan.target.models],
            "strategy": plan.target.model_strategy if len(plan.target.models) > 1 else None,
        },
        "endpoint": _endpoint(plan, secrets, draft), "datasets": [_dataset(plan, draft)],
        "phases": [section(phase) for phase in plan.load.phases],
        "artifacts": {
            "dir": _typed(draft, "artifact_dir"), "prefix": plan.output.export_prefix,
            "records": False if plan.output.export_level == ExportLevel.SUMMARY else ["jsonl"],
            "raw": plan.output.export_level == ExportLevel.RAW or None, "trace": plan.output.http_trace or None,
            "private": plan.output.private or None,
            "slice_duration": draft.kernel.slice_duration_s,
            "percentiles": list(plan.output.percentiles) or None, "columns": list(plan.output.columns) or None,
        },
        "tokenizer": {"name": plan.data.tokenizer_name, "apply_chat_template": plan.data.chat_template or None},
        "accuracy": {
            "benchmark": plan.data.name if draft.kernel.accuracy_benchmark is not None else None,
            "grader": None if plan.plugins.grader is None else plan.plugins.grader.name,
            "grading_processes": _typed(draft, "grading_processes"), "grading_timeout": _typed(draft, "grading_timeout_s"),
        },
        "plugins": {key: options for key in plan.plugins.options if (options := _plugin(plan, draft, key))},
        "scenario": draft.kernel.scenario, "unsafe_override": draft.kernel.unsafe_override or None,
        "runtime": {
            "workers": plan.run.workers, "record_processors": plan.run.reducers, "ui": draft.kernel.ui,
            "engine": _typed(draft, "engine"),
        },
    }
    set_values: dict[str, Any] = _without_none(everything)
    return set_values


def _endpoint(plan: Plan, secrets: Secrets, draft: Draft) -> dict[str, Any]:
    target = plan.target
    return {
        "type": plan.plugins.endpoint.name, "urls": [without_secrets(url) for url in target.urls],
        "path": without_secrets(target.path), "streaming": target.streaming, "transport": plan.plugins.transport.name,
        "timeout": _typed(draft, "request_timeout_s"), "control_urls": [*map(without_secrets, target.control_urls)] or None,
        "connection_reuse": _typed(draft, "connection_reuse"), "preconnect": _typed(draft, "preconnect"),
        "session_header": _typed(draft, "session_header"),
        "request_content_type": draft.kernel.request_content_type,
        "use_server_token_count": target.use_server_token_count or None, "per_chunk_usage": target.per_chunk_usage or None,
        "headers": dict.fromkeys(secrets.headers, REDACTED), "extra": shown_fields(target.extra),
        "tls": {"insecure": True} if not target.tls.verify else None,
    }


def _dataset(plan: Plan, draft: Draft) -> dict[str, Any]:
    from_file, by_option = plan.data.source is not None, draft.kernel.public_dataset or draft.kernel.accuracy_benchmark
    kind = None if by_option else (plan.data.name if from_file else "") or plan.plugins.dataset.name
    # A public data set is one also where a local copy of it is read.
    of_kind: dict[str, Any] = {
        "type": "file" if from_file else kind, "format": kind if from_file else None, "path": plan.data.source,
    } if draft.kernel.public_dataset is None else {"type": "public", "dataset": plan.data.name}  # fmt: skip
    return {
        "name": "main", **of_kind, "entries": plan.data.entries,
        "sampling": plan.data.sampling or None, "check": plan.data.whole or None,
        "cache_bust": {"target": plan.data.cache_bust} if plan.data.cache_bust != "none" else None,
    }


def _typed(draft: Draft, field: str) -> Any:
    """A kernel option's value if it is on the command line, else None."""
    value = getattr(draft.kernel, field) if field in draft.settings.typed else None
    return str(value) if isinstance(value, Path) else value


def _plugin(plan: Plan, draft: Draft, key: str) -> dict[str, Any]:
    """A plugin's options on the command line, secrets redacted."""
    secret = plan.plugins.secret_options.get(key, ())
    return {
        field: REDACTED if field in secret else value
        for field, value in shown_options(draft.settings.plugins[key]).items()
        if f"{key}.{field}" in draft.settings.typed
    }


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        items = {key: _without_none(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not None and item != {}}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value
