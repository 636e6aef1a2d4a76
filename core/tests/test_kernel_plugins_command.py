"""The kernel's own ``aiperf plugins``, for where ``aiperf-command-plugins`` is not installed."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf.cli import main
from aiperf.registry.registry import Registry
from aiperf.sdk.descriptor import Descriptor

POISSON = Descriptor("arrivals", "poisson", "os:path", "aiperf-core", "1.0", "Gaps.")
BROKEN = Descriptor("endpoints", "old", "os:path", "acme-old", "2.0", "Old.", broken="it asks for API >=9")


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Any:
    def go(line: str, *plugins: Descriptor, problems: tuple[str, ...] = ()) -> Any:
        code = main.main(["plugins", *line.split()], Registry(plugins, kernel_options=(), problems=problems))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


def test_a_kernel_alone_says_that_nothing_is_installed(ask: Any) -> None:
    code, out, _ = ask("", POISSON)
    assert code == 0 and "aiperf-core 1.0  arrivals:poisson" in out
    assert "No plugin package is installed beside the kernel." in out


def test_a_broken_package_is_listed_with_its_cause(ask: Any) -> None:
    out = ask("", POISSON, BROKEN)[1]
    assert "acme-old 2.0     endpoints:old" in out and "acme-old 2.0: it asks for API >=9" in out


def test_validate_reads_manifests_and_imports_no_plugin(ask: Any) -> None:
    absent = Descriptor("metrics", "gone", "no_such_module:Gone", "acme-gone", "1.0", "Gone.")
    assert ask("validate", POISSON, absent) == (0, "2 manifest rows checked, no fault\n", "")


def test_a_fault_of_a_manifest_is_a_line_and_exit_code_one(ask: Any) -> None:
    code, out, _ = ask("validate", POISSON, BROKEN)
    assert code == 1 and out.splitlines() == [
        "endpoints:old (acme-old 2.0): it asks for API >=9", "2 manifest rows checked, 1 fault",
    ]  # fmt: skip


def test_other_words_name_the_package_to_install(ask: Any) -> None:
    code, out, err = ask("new endpoint", POISSON)
    assert (code, out) == (2, "") and "pip install aiperf-suite" in err
