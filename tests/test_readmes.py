"""The generated section of each package's README is what the package says, and links between documents lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf.registry.registry import Registry
from aiperf_command_plugins import readme_page

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = sorted(path.parent for path in ROOT.glob("plugins/*/*/pyproject.toml"))
PAGES = sorted(path for pattern in ("*.md", "docs/**/*.md", "plugins/*/*/README.md", "libraries/*/README.md", "suite/*.md",
    "templates/README.md") for path in ROOT.glob(pattern))  # fmt: skip
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_section_of_a_readme_is_what_its_package_says(package: Path, registry: Registry) -> None:
    stale = f"stale: aiperf plugins readme {package.relative_to(ROOT)}"
    assert (package / "README.md").read_text() == readme_page.updated(registry, package), stale


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead(page: Path) -> Iterator[str]:
    """Links of a page to files or headings that don't exist."""
    for target in LINK.findall(CODE.sub("code", page.read_text())):
        name, _, anchor = target.partition("#")
        if re.match(r"https?:|mailto:", target):
            continue
        path = page.parent / name if name else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            yield f"{page.relative_to(ROOT)}: {target}"


def test_links_between_documents_lead_somewhere() -> None:
    assert len(PAGES) > 100
    assert [link for page in PAGES for link in dead(page)] == []


def linked(page: Path) -> set[Path]:
    return {(page.parent / target.partition("#")[0]).resolve() for target in LINK.findall(CODE.sub("code", page.read_text()))}


def test_every_page_is_linked_from_the_readme() -> None:
    pages, parts = set(ROOT.glob("docs/*.md")), set(ROOT.glob("docs/sdk/*.md"))
    index = ROOT / "docs" / "sdk" / "README.md"
    assert pages | {index} <= linked(ROOT / "README.md")
    assert parts - {index} <= linked(index)


def test_a_dead_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("# A Page\n[own](#a-page) [`code`](page.md) `[not](a-link)` [gone](gone.md) [heading](page.md#none)\n")
    assert list(dead(page)) == ["page.md: gone.md", "page.md: page.md#none"]
