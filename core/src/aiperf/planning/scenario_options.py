"""The kernel's options of scenarios."""

from __future__ import annotations

from aiperf.sdk.options import Options, Word, option


class ScenarioOptions(Options):
    """Which benchmark's rules a run keeps to."""

    scenario: Word | None = option("--scenario", group="Scenario", metavar="NAME", place="scenario",
        help="Keep to the rules of a benchmark, the name of an installed scenario: it fills in options, refuses others, and"
        " says whether the run counts.")
    unsafe_override: bool = option("--unsafe-override", default=False, group="Scenario", place="unsafe_override",
        help="Run although the scenario doesn't allow an option: a warning says so, and the run doesn't count.")
