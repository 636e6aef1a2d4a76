"""The {{ cookiecutter.name }} engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import ConfigError
from aiperf.testing import SiteEngineContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}
from {{ cookiecutter.__module }}.options import DirectoryOptions

_HERE = Path(__file__).parent


class TestItKeepsTheContract(SiteEngineContract):
    engine = {{ cookiecutter.__class }}
    options = DirectoryOptions(directories=(_HERE, _HERE.parent))


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        {{ cookiecutter.__class }}(DirectoryOptions(directories=(tmp_path / "moon",))).names()
    assert "moon is no directory" in caught.value.message
