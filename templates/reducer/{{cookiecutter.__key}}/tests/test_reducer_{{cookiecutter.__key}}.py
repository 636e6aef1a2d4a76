"""The {{ cookiecutter.name }} reducer."""

from __future__ import annotations

from pathlib import Path

from aiperf.testing import Recording, ReducerContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(ReducerContract):
    reducer = {{ cookiecutter.__class }}


def test_a_request_that_never_ended_is_unfinished(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.answered(0, 1_000, (2_000, b"yes"))
    recording.sent(1, 3_000)
    recording.flush(4_000)
    recording.ended(requests={0: 2})
    summary, _, _ = {{ cookiecutter.__class }}().report(tmp_path)
    assert summary.outcomes == {"completed": 1, "unfinished": 1}
    assert summary.incomplete_reason == "1 requests have no end"
