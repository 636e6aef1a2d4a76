"""The reference of metrics is what the installed classes say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"


def aiperf(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "aiperf", *words], capture_output=True, text=True, check=False)


def test_the_page_is_what_the_command_prints() -> None:
    done = aiperf("plugins", "metrics", "--markdown")
    assert done.returncode == 0, done.stderr
    assert PAGE.read_text() == done.stdout, "stale: aiperf plugins metrics --markdown > docs/metrics.md"


def test_a_row_says_what_the_class_says() -> None:
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith("| `time_to_first_token` "))
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells == [
        "Time to First Token", "ms", "From the start to the first content of any kind, reasoning included", "",
        "streaming, output tokens", "valid", "distribution",
    ]  # fmt: skip


def test_markdown_of_another_category_is_refused() -> None:
    done = aiperf("plugins", "exporters", "--markdown")
    assert done.returncode == 2
    assert "--markdown prints the reference of metrics" in done.stderr
