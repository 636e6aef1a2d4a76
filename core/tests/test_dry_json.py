"""A dry run's page for a program."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiperf.run.dry_json import document
from aiperf.worker.rehearsal import Rehearsal, RehearsedRequest
from aiperf_testing.plans import sample_plan


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("Grüße \u202e\x9b".encode(), "Grüße \u202e\x9b"),
        (b"", ""),
        (b'{"say": "a secret"}', '{"say": "a <hidden>"}'),
        (b"\xff and a secret", {"base64": base64.b64encode(b"\xff and a <hidden>").decode()}),
    ],
)
def test_any_body_is_json_without_secrets(tmp_path: Path, body: bytes, shown: Any) -> None:
    request = RehearsedRequest(0, 0, "POST", "http://here/v1", (("X-Secret", "secret"),), True, body, None, 7)
    plan = sample_plan(tmp_path)
    text = document(plan, plan, Rehearsal(request, request, 1), [], lambda text: text.replace("secret", "<hidden>"))
    assert text.isascii()
    page = json.loads(text)
    assert (page["first_request"]["body"], page["first_request"]["body_bytes"]) == (shown, len(body))
    assert page["longest_request"]["headers"] == [["X-Secret", "<hidden>"]]
