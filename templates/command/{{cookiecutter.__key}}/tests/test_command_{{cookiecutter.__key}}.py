"""aiperf {{ cookiecutter.__word }}: the slowest requests, and what isn't a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import AiperfError

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}
from {{ cookiecutter.__module }}.options import CommandOptions

LINE = '{"metadata":{"x_request_id":"%s"},"metrics":{"request_latency":{"value":%s,"unit":"ms"}}}\n'
FAILED = '{"metadata":{"x_request_id":"f"},"metrics":{}}\n'


def test_the_slowest_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("a", 3.5), ("b", 20.25), ("c", 1.0)]
    (tmp_path / "profile_export.jsonl").write_text("".join(LINE % row for row in rows) + FAILED)
    assert {{ cookiecutter.__class }}().run(CommandOptions(top=2), [str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == ["20.25", "ms", "b", "3.50", "ms", "a"]


@pytest.mark.parametrize(("text", "sentence"), [(None, "can't be read"), ("{}", "jsonl:1 is not a request")])
def test_what_is_no_run_gets_a_sentence(tmp_path: Path, text: str | None, sentence: str) -> None:
    if text is not None:
        (tmp_path / "profile_export.jsonl").write_text(text)
    with pytest.raises(AiperfError, match=sentence):
        {{ cookiecutter.__class }}().run(CommandOptions(), [str(tmp_path)])
