"""Words of other programs have an answer."""

from __future__ import annotations

import pytest
from aiperf_hook_other_tools import OtherTools
from aiperf_hook_other_tools.contract import OtherToolsContract


class TestOtherToolsKeepTheContract(OtherToolsContract):
    pass


@pytest.mark.parametrize(
    ("flag", "answer"),
    [
        ("--session-concurrency", "use --concurrency"),
        ("--server-metrics-url", "use --gpu-telemetry URL: it means exporters of GPUs"),
        ("--max-threads", "use --workers-max"), ("--checkpoint-dir", "the journal does it: aiperf report DIR after a crash"),
        ("--sweep-range", "give the option itself several values, for example --concurrency 1,2,4"), ("--sweep-type", None),
        ("--no-server-metrics", None),
        ("--qps", "use --request-rate, in requests per second"), ("--max-seconds", "use --benchmark-duration, in seconds"),
        ("--save-result", "results are always saved; --artifact-dir says where"), ("--vus", "use --concurrency"),
        ("-s", "not applicable here; use --request-count or --benchmark-duration"),
        ("--concurency", None), ("--sweep-typ", None),
    ],
)  # fmt: skip
def test_an_option_of_another_program_has_an_answer(flag: str, answer: str | None) -> None:
    assert OtherTools().aiperf_unknown_option(flag) == answer


def test_a_command_of_another_program_has_an_answer() -> None:
    assert OtherTools().aiperf_unknown_command("process-export-files") == "aiperf report DIR reads a run again"
    assert OtherTools().aiperf_unknown_command("profil") is None
