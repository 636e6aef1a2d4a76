"""The validated run.  Frozen: everything later is a function of it.

It holds no secret: API keys and header values travel to the workers apart (:class:`Secrets`) and are never written.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from aiperf.descriptor import PluginRef


class PhasePlan(Struct, frozen=True, omit_defaults=True):
    """One phase.  *kind* is ``warmup`` or ``profiling``.

    schedule: name of the scheduling mode.  pattern: name of the arrival distribution, with its *smoothness*.
    request_count, session_count, duration_ns: stop conditions; the first reached ends sending; None is none.
    grace_ns: time after the duration for what is in flight; None waits for all.
    planned: arrivals with a due time in *due_file* (int64 ns after phase start); None where nothing has one.
    first_entry, entries: the part of the data set this phase uses.
    """

    name: str
    kind: str
    index: int
    schedule: str
    request_count: int | None = None
    session_count: int | None = None
    duration_ns: int | None = None
    grace_ns: int | None = None
    concurrency: int | None = None
    rate: float | None = None
    pattern: str | None = None
    smoothness: float = 1.0
    planned: int | None = None
    due_file: str | None = None
    first_entry: int = 0
    entries: int = 0

    @property
    def paced(self) -> bool:
        return self.rate is not None


class TlsPlan(Struct, frozen=True, omit_defaults=True):
    verify: bool = True
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


class Plan(Struct, frozen=True):
    """A whole run.

    run_id: 12 hex digits.  seed: root of every draw.  urls: base URLs.  path: appended to each.
    headers: extra header names (their values are in Secrets).  journal: directory of segments and columns.
    objects: every plugin the run uses, by category; workers and reducers load from these without discovery.
    options: validated options of plugins, by ``category:name``.
    sampling: order of the data set's entries; "" is the data set's own, filled in when it is built.
    schedules, arrivals: the scheduling modes and arrival patterns of the phases, by name.
    """

    run_id: str
    version: str
    seed: int
    seeded: bool
    command: str
    phases: tuple[PhasePlan, ...]
    models: tuple[str, ...]
    model_strategy: str
    urls: tuple[str, ...]
    path: str
    endpoint: PluginRef
    transport: PluginRef
    dataset: PluginRef
    tokenizer: PluginRef | None
    tokenizer_name: str | None
    streaming: bool
    timeout_ns: int
    reuse: bool
    session_header: str
    tls: TlsPlan
    sampling: str
    entries: int
    workers: int
    reducers: int
    journal: str
    artifacts: str
    export_prefix: str | None
    export_level: str
    use_server_token_count: bool
    extra: dict[str, Any] = field(default_factory=dict)
    metrics: tuple[PluginRef, ...] = ()
    exporters: tuple[PluginRef, ...] = ()
    hooks: tuple[PluginRef, ...] = ()
    schedules: dict[str, PluginRef] = field(default_factory=dict)
    arrivals: dict[str, PluginRef] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    shadowed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verbose: bool = False

    def plugin_options(self, ref: PluginRef) -> Any:
        """The plugin's validated options as attributes, None where it declares none; without pydantic, for workers and
        reducers."""
        from types import SimpleNamespace

        values = self.options.get(f"{ref.category}:{ref.name}")
        return None if values is None else SimpleNamespace(**values)


class Secrets(Struct, frozen=True):
    """Header values that must never be written: sent to workers over the control channel alone."""

    headers: dict[str, str] = field(default_factory=dict)
