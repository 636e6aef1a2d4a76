"""The reference pages of the kernel, and those that commands print over all packages, are what the sources say."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from aiperf.registry.registry import Registry
from aiperf.sdk.categories import CATEGORIES

DOCS = Path(__file__).parent.parent / "docs"


def aiperf(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "aiperf", *words], capture_output=True, text=True, check=False)


def test_every_package_is_installed_as_its_manifest_is() -> None:
    """Else the pages would lack what an old installation doesn't know."""
    registry = Registry.discover()
    for category in CATEGORIES:
        registry.all(category)
    assert registry.problems == (), "install the packages again: pip install -e"


def printed(*words: str) -> str:
    """What the command prints, which must succeed."""
    done = aiperf("plugins", *words, "--markdown")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_row_of_metrics_says_what_the_class_says() -> None:
    row = next(line for line in printed("metrics").splitlines() if line.startswith("| `time_to_first_token` "))
    cells = [cell.strip() for cell in row.split("|")[2:-1]]
    assert cells == [
        "Time to First Token", "ms",
        "From the start to the first content of any kind, reasoning included",
        "Bounded where it was merged with later content, or where an event before it is unreadable.",
        "streaming, output tokens", "valid", "distribution",
    ]  # fmt: skip


def test_markdown_of_another_category_is_refused() -> None:
    done = aiperf("plugins", "exporters", "--markdown")
    assert done.returncode == 2
    assert "--markdown prints the reference of metrics, or of endpoints, options" in done.stderr


def test_the_section_of_an_endpoint_says_what_its_manifest_says() -> None:
    page = printed("endpoints")
    assert "| [`chat`](#chat) | `/v1/chat/completions` | yes | yes | yes | image, audio, video | yes | LLM Metrics |" in page
    section = page.partition("\n## chat\n")[2].partition("\n## ")[0]
    assert "aiperf profile --model m1 --url localhost:8000 --endpoint-type chat --streaming" in section


@pytest.mark.parametrize("word", ["options", "variables"])
def test_a_page_of_the_kernel_is_what_the_command_prints(word: str) -> None:
    stale = f"stale: aiperf plugins {word} kernel --markdown > docs/{word}.md"
    assert (DOCS / f"{word}.md").read_text() == printed(word, "kernel"), stale


def test_the_page_of_all_options_has_those_of_packages() -> None:
    page = printed("options")
    assert "\n## `datasets:synthetic`\n" in page and "\n## `aiperf plot`\n" in page
    assert page.endswith("\n") and (DOCS / "options.md").read_text().partition("\n## ")[2] in page


def test_the_page_of_variables_has_those_that_the_sources_read() -> None:
    """A manifest names those of its package (docs: variables:), ``variable_page.py`` the kernel's."""
    head, _, rest = printed("variables").partition("\n## ")
    listed = set(re.findall(r"^\| `(AIPERF_\w+)`", head, re.MULTILINE))
    page = "plugins/commands/plugins/src/aiperf_command_plugins/variable_page.py"
    sources = [path for folder in ("core/src", "libraries", "plugins") for path in (DOCS.parent / folder).rglob("*.py")]
    texts = [path.read_text() for path in sources if "tests" not in path.parts and not str(path).endswith(page)]
    read = {name for text in texts for name in re.findall(r"[\"`$](AIPERF_[A-Z0-9_]*[A-Z0-9])\b", text)}
    made = {f"AIPERF_HTTP_{each}" for each in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT", "SO_RCVBUF",
        "SO_SNDBUF", *(f"X_{name}_FROM_CORRELATION_ID" for name in ("SESSION_AFFINITY", "SESSION_ID", "SMG_ROUTING_KEY",
        "DYNAMO_SESSION_ID")))}  # fmt: skip
    own = {"AIPERF_VALIDATE_REPORTS"}  # between two processes of a command
    assert (read | made) - own == listed
    assert not listed & set(re.findall(r"AIPERF_\w+", "\n".join(row.split("|")[1] for row in rest.splitlines() if "|" in row)))


def test_the_pages_of_the_sdk_are_what_the_command_writes(tmp_path: Path) -> None:
    done = aiperf("plugins", "sdk", "--markdown", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    kept, made = ({path.name: path.read_text() for path in folder.iterdir()} for folder in (DOCS / "sdk", tmp_path))
    stale = "stale: rm -r docs/sdk; aiperf plugins sdk --markdown --output docs/sdk"
    assert kept.keys() == made.keys(), stale
    assert [name for name in kept if kept[name] != made[name]] == [], stale


def test_the_pages_of_the_sdk_have_every_public_name() -> None:
    modules = re.split(r"^# `([\w.]+)`$", "".join(path.read_text() for path in (DOCS / "sdk").iterdir()), flags=re.MULTILINE)
    pairs = zip(modules[1::2], modules[2::2], strict=True)
    names = {module: re.findall(r"^## `(\w+)`", text, re.MULTILINE) for module, text in pairs}
    paths = (DOCS.parent / "core" / "src" / "aiperf" / "sdk").glob("[!_]*.py")
    promised = {f"aiperf.sdk.{path.stem}": importlib.import_module(f"aiperf.sdk.{path.stem}").__all__ for path in paths}
    assert {module: sorted(listed) for module, listed in promised.items()} == {
        module: sorted(found) for module, found in names.items() if module != "aiperf"
    }
    assert "profile" in names["aiperf"]


def test_the_schema_of_options_has_their_limits_and_words() -> None:
    done = aiperf("plugins", "options", "--json")
    assert done.returncode == 0, done.stderr
    assert "$ref" not in done.stdout
    kernel = json.loads(done.stdout)["properties"]["kernel"]["properties"]
    assert kernel["models"]["items"] == {"type": "string"}
    assert kernel["connection_reuse"]["enum"] == ["pooled", "never", "sticky_user_sessions"]
    (number, _) = kernel["request_count"]["anyOf"]
    assert (number["type"], number["minimum"]) == ("integer", 1)
