"""A small file for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import Capabilities, DatasetContext
from aiperf.testing import DatasetContract

from aiperf_dataset_otel_spans.dataset import OtelSpans
from aiperf_dataset_otel_spans.options import OtelSpansOptions


def span(second: float, text: str = "hi", *, session: str = "s", length: float = 1.0, **attributes: Any) -> dict[str, Any]:
    """A span of OTLP that begins at a second; *attributes* by name, with ``__`` for a dot behind ``gen_ai.``."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": text}]}]
    given = {"operation__name": "chat", "conversation__id": session, "input__messages": messages} | attributes
    named = {f"gen_ai.{key.replace('__', '.')}": value for key, value in given.items() if value is not None}
    start = 1_700_000_000_000_000_000 + int(second * 1e9)
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": f"{start:016x}", "name": "chat m",
        "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + int(length * 1e9)),
        "attributes": [{"key": key, "value": _any(value)} for key, value in named.items()],
    }  # fmt: skip


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    """OTLP's ``TracesData``."""
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one]} for one in spans]}]}


def _any(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int | float):
        return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


class OtelSpansContract(DatasetContract):
    drawn = False
    endless = False

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "spans.jsonl"
        given = [span(n * 2, f"question {n}", session=f"s{n // 2}") for n in range(8)]
        self.file.write_text("".join(json.dumps(one) + "\n" for one in (export(*given[:4]), *given[4:])))

    def make(self, entries: int, seed: int) -> OtelSpans:
        capabilities = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)
        return OtelSpans(OtelSpansOptions(), DatasetContext(entries, seed, True, None, capabilities, self.file))
