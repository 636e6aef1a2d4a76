"""What there is to sample where it is tried: this machine."""

from __future__ import annotations

from aiperf.testing import TelemetryContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class {{ cookiecutter.__class }}Contract(TelemetryContract):
    source = {{ cookiecutter.__class }}
