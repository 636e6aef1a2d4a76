"""What can be typed about the {{ cookiecutter.name }} schedule."""

from __future__ import annotations

from aiperf import Options, option


class RampOptions(Options):
    ramp_s: float | None = option(
        "--{{ cookiecutter.__word }}-seconds",
        gt=0,
        metavar="SECONDS",
        help="Let the rate grow evenly from nothing to the request rate for this time.",
    )
