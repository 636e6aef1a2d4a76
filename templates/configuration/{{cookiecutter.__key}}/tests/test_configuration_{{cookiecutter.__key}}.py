"""The {{ cookiecutter.name }} configuration."""

from __future__ import annotations

from aiperf.testing import ConfigurationContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}

SETS = {"models": ["a", "b"], "streaming": True, "request_count": ["7"]}


class TestItKeepsTheContract(ConfigurationContract):
    configuration = {{ cookiecutter.__class }}
    example = 'model = ["a", "b"]\nstreaming = true\nrequest-count = 7\n'
    sets = SETS
    mistake = "request-cuont = 7\n"
    cells = 'model = ["a"]\n[cells]\nconcurrency = [1, 2]\n'
