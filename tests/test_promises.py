"""The SDK promises what somebody needs, and no more."""

from __future__ import annotations

import promises
from requirements import ROOT


def test_every_promised_name_has_somebody_who_needs_it() -> None:
    assert promises.unneeded() == []


def test_the_page_has_the_number_of_promised_names() -> None:
    found = promises.promised()
    page = (ROOT / "docs" / "architecture.md").read_text()
    assert f"promises {sum(map(len, found.values()))} names in {len(found)} modules" in page
