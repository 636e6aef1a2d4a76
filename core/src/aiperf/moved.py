"""Where the modules of earlier versions are now, so that whoever still imports one is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

_KEPT_NAMES = {
    "cli": "commandline",
    "planning": "configure outputs phases sources",
    "prepare": "build",
    "processes": "local",
    "run": "children display",
    "rundir": "artifacts journal store",
    "sdk": (
        "columns command dataset definition descriptor draws endpoint exporter grader hooks metric model "
        "options plan plot rowfile sse summary tokenizer ui"
    ),
}
"""Modules that moved into a room and kept their name."""
_RENAMED = """
addresses=planning.target argv=cli.commandline certificates=planning.target modes=planning.load_checks
aside=processes.local balance=sdk.url_strategy
due=prepare.due_times earlier=rundir.previous_results engine=worker engine.clock=worker.clock
engine.contract=sdk.transport engine.control=processes.control
engine.engine=worker.requests engine.gate=worker.slots engine.logbook=worker.logbook
engine.session=sdk.driver engine.slots=worker.slots engine.standing=worker.slots
engine.worker=worker.process
findings=planning.problems helptext=cli.help_text ids=rundir.journal intfile=rundir.store
hookcalls=registry.hooks hooktrace=registry.hooks kept=sdk.raw_values
limits=prepare.due_times loadchecks=planning.load_checks
optionspec=registry.option_specs pairs=planning.request_fields
progress=run.display pytestplugin=testing.pytest_plugin rateseries=planning.phases reducer=run.reducer_process
rundir=rundir.journal schedule=sdk.schedule shards=sdk.engine telemetry=sdk.telemetry starts=prepare.due_times
strangers=registry.third_party uiprocess=run.display
selection=planning.problems settings=planning.problems sizing=planning.processes urls=planning.target
"""
_PACKAGES = {
    "application": "aiperf_command_completion", "comparison": "aiperf_command_report.comparison",
    "configfile": "aiperf_configuration_yaml", "conformance": "aiperf_command_plugins.contracts",
    "engine.poller": "aiperf_transport_sockets", "engine.transport": "aiperf_transport_sockets",
    "engine.drivers": "aiperf_driver_standard", "worker.drivers": "aiperf_driver_standard",
    "inspection": "aiperf_command_plugins.listing", "metricpage": "aiperf_command_plugins.metric_page",
    "optionpage": "aiperf_command_plugins.option_page", "scaffold": "aiperf_command_plugins.scaffold",
    "schedule": "aiperf_schedule_standard", "ramps": "aiperf_schedule_standard.ramps",
    "rates": "aiperf_schedule_standard.ramps", "sessions": "aiperf_schedule_standard.replay",
    "advice": "aiperf_verdict_advice", "report.trust": "aiperf_verdict_measurement", "trust": "aiperf_verdict_measurement",
    "planning.recognition": "aiperf_hook_recognition.recognition",
    "readiness": "aiperf_companion_readiness.wait", "run.readiness": "aiperf_companion_readiness.wait",
    "telemetry.process": "aiperf_companion_telemetry.process", "telemetry.samples": "aiperf_companion_telemetry.samples",
    "worker.http": "aiperf_transport_sockets", "encodings": "aiperf_reducer_columns.reduce.encodings",
    "reduce": "aiperf_reducer_columns.reduce", "report": "aiperf_reducer_columns.report",
    "statistics": "aiperf_reducer_columns.statistics", "rundir.shard_reader": "aiperf_reducer_columns.reduce.shard_reader",
    "observation": "aiperf_reducer_columns.reduce.shard_reader", "errorkinds": "aiperf_reducer_columns.statistics.phase_counts",
    "survival": "aiperf_reducer_columns.statistics.totals", "trace": "aiperf_reducer_columns.reduce.rows",
    **{name: f"aiperf_reducer_columns.reduce.{name}" for name in ("answer", "envelopes", "grading", "usage")},
    **{name: f"aiperf_reducer_columns.statistics.{name}" for name in ("fold", "grouped", "pipeline", "totals")},
}  # fmt: skip
"""Modules that have left the kernel."""
_MODULES = _PACKAGES | {name: f"aiperf.{room}.{name}" for room, names in _KEPT_NAMES.items() for name in names.split()}
_MODULES |= {old: f"aiperf.{new}" for old, _, new in (pair.partition("=") for pair in _RENAMED.split())}
_ROOMS = {
    "cli": "cli.main", "registry": "registry.registry", "run": "run.run",
}  # fmt: skip
"""Modules whose names are rooms now."""
_FUNCTIONS = ("complain", "find_category", "profile", "singular", "write_summary")
"""What they had beside classes."""


class Finder:
    """The last of ``sys.meta_path``: asked for what nobody has."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raises ImportError, naming the new place, where *name* is a module that moved."""
        package, _, module = name.partition(".")
        # A folder that moved is still a package where bytecode was left in it, so its modules and names are asked for.
        room, _, last = module.rpartition(".")
        moved = _MODULES if last[:1].isupper() else _PACKAGES
        if package == "aiperf" and (new := _MODULES.get(module) or moved.get(room)):
            raise ImportError(_sentence(name, new), name=name)


def absent(room: str) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a *room* (its full name): raises for a name that the room doesn't have.

    ``from aiperf.telemetry import Point`` was right when ``aiperf.telemetry`` was a module.  AttributeError lets the import
    system look for a submodule of that name.
    """

    def refuse(name: str) -> NoReturn:
        new = _ROOMS.get(room.partition(".")[2])
        if new is None or not (name[:1].isupper() or name in _FUNCTIONS):
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        raise ImportError(_sentence(f"{room}.{name}", f"aiperf.{new}"), name=room)

    return refuse


def _sentence(old: str, new: str) -> str:
    promised = new.startswith("aiperf.sdk")
    instead = "plugins import from aiperf and aiperf.sdk" if promised else "it is no part of what plugins may import"
    return f"{old} has moved to {new}; {instead}"
