"""The validated run.  Frozen: everything later is a function of it.

API keys and header values are not in it: they travel to the workers apart (:class:`Secrets`) and are never written.  Of
plugins' options the secret ones are, in memory alone: what is written is :meth:`Plan.public`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from aiperf.descriptor import PluginRef


class Replay(Struct, frozen=True, omit_defaults=True):
    """The part of a trace that is sent, and its time zero: see spec timing §13.

    start_ms, end_ms: inclusive bounds of the recorded times, None is open.  auto_offset: the first one kept is time zero;
    else *start_ms* is, or 0.
    """

    auto_offset: bool = True
    start_ms: int | None = None
    end_ms: int | None = None


class PhasePlan(Struct, frozen=True, omit_defaults=True):
    """One phase.  *kind* is ``warmup`` or ``profiling``.

    schedule: name of the scheduling mode.  pattern: name of the arrival distribution, with its *smoothness*.
    request_count, session_count, duration_ns: stop conditions; the first reached ends sending; None is none.
    grace_ns: time after the duration for what is in flight; None waits for all.
    concurrency: most sessions at a time; prefill_concurrency: most requests that wait for their first token; None is none.
    rate: requests/s, the target of a ramp; rate_series: ((seconds, requests/s), …), linear in between, instead of it.
    ramp: name of the curve; *_ramp_ns: how long each limit, or the rate, takes to rise; None is at once.
    users: of the user-centric mode.  replay: what of a trace is sent, in the fixed schedule.
    cancel_share, cancel_delay_ns: which part of the requests is cancelled, and how long after it was sent.
    due_file: when each arrival is due (int64 ns after phase start, -1 where only the answers will tell); None without pacing.
    planned: how many of them there will be; None where time or the answers decide.  turns: the most requests the phase can
    make, known with the data set; None where only time ends it.
    sessions_file: what each session is, where the schedule says it: rows of (entry, turns, number of its first arrival).
    spacing_ns: time between a session's turns, where the schedule says it; else recorded times less *zero_ns* do, or delays.
    limits_file: when a ramped concurrency grows, and prefill_limits_file (int64 ns after phase start, one for each level).
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
    prefill_concurrency: int | None = None
    rate: float | None = None
    rate_series: tuple[tuple[float, float], ...] | None = None
    pattern: str | None = None
    smoothness: float = 1.0
    ramp: str = "linear"
    concurrency_ramp_ns: int | None = None
    prefill_ramp_ns: int | None = None
    rate_ramp_ns: int | None = None
    users: int | None = None
    replay: Replay | None = None
    cancel_share: float = 0.0
    cancel_delay_ns: int = 0
    planned: int | None = None
    turns: int | None = None
    due_file: str | None = None
    spacing_ns: int | None = None
    zero_ns: int = 0
    sessions_file: str | None = None
    limits_file: str | None = None
    prefill_limits_file: str | None = None
    first_entry: int = 0
    entries: int = 0

    @property
    def paced(self) -> bool:
        """Whether arrivals have due times."""
        return self.due_file is not None or self.rate is not None or self.rate_series is not None


class TlsPlan(Struct, frozen=True, omit_defaults=True):
    verify: bool = True
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


def _own_samplers() -> dict[str, PluginRef]:
    names = ("sequential", "shuffle", "random")
    return {name: PluginRef("samplers", name, f"aiperf.schedule:{name}", "aiperf-core", "") for name in names}


class Plan(Struct, frozen=True):
    """A whole run.

    run_id: 12 hex digits.  seed: root of every draw.  urls: base URLs.  path: appended to each.
    headers: extra header names (their values are in Secrets).  journal: directory of segments and columns.
    objects: every plugin the run uses, by category; workers and reducers load from these without discovery.
    options: validated options of plugins, by ``category:name``; *secret_options* names the fields that must not be written.
    sampling: order of the data set's entries; "" is the data set's own, filled in when it is built.
    schedules, arrivals, ramps: the scheduling modes, arrival patterns and ramps of the phases, by name.
    source: the input file, None for what is generated.  first: so many of its conversations are used; None is all.
    grader: what compares answers with those expected, None for nobody.
    ui: the live display.  engine: what places the shards; None are processes of this machine.
    samplers: the orders of entries that the run may use, by name.
    url_strategy, url_weights: which URL a session uses; a weight for each URL.
    sticky: every session has a connection of its own.
    delay_ratio: think times are multiplied by it.
    failed_threshold: share of failed requests that ends the run, None never.
    http_trace: each record shows its headers, stamps and reads.
    slice_ns: width of the time slices that are reported apart, None for no slices.
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
    telemetry: tuple[PluginRef, ...] = ()
    schedules: dict[str, PluginRef] = field(default_factory=dict)
    arrivals: dict[str, PluginRef] = field(default_factory=dict)
    ramps: dict[str, PluginRef] = field(default_factory=dict)
    source: str | None = None
    first: int | None = None
    grader: PluginRef | None = None
    ui: PluginRef | None = None
    engine: PluginRef | None = None
    samplers: dict[str, PluginRef] = field(default_factory=_own_samplers)
    url_strategy: PluginRef | None = None
    url_weights: tuple[float, ...] = ()
    sticky: bool = False
    delay_ratio: float = 1.0
    failed_threshold: float | None = None
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    secret_options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    shadowed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verbose: bool = False
    http_trace: bool = False
    per_chunk_usage: bool = False
    slice_ns: int | None = None

    @property
    def keeps_requests(self) -> bool:
        """Whether headers, both ways, and bodies that the data set doesn't have go to the journal."""
        return self.http_trace or self.export_level == "raw"

    def plugin_options(self, ref: PluginRef) -> Any:
        """The plugin's validated options as attributes, None where it declares none; without pydantic, for workers and
        reducers."""
        from types import SimpleNamespace

        values = self.options.get(f"{ref.category}:{ref.name}")
        return None if values is None else SimpleNamespace(**values)

    def hooked(self) -> list[tuple[PluginRef, Any]]:
        """The hooks plugins, each with its options."""
        return [(ref, self.plugin_options(ref)) for ref in self.hooks]

    def input_config(self) -> dict[str, Any]:
        """The configuration in the reference's form, which has no place for plugins, nor for what they were given."""
        strange = {"endpoint": ("transport",), "runtime": ("engine",)}
        return {
            name: {key: value for key, value in section.items() if key not in strange[name]} if name in strange else section
            for name, section in self.config.items()
            if name != "plugins"
        }

    def public(self) -> Plan:
        """The plan as it may be written: secret options are None."""
        return replace(self, options=_over(self.options, {key: dict.fromkeys(f) for key, f in self.secret_options.items()}))


class Secrets(Struct, frozen=True):
    """What must never be written: header values, for workers, and secret options of plugins, by ``category:name``.  Sent over
    the control channel alone."""

    headers: dict[str, str] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)

    def restored(self, plan: Plan) -> Plan:
        """The plan as it was before :meth:`Plan.public`."""
        return replace(plan, options=_over(plan.options, self.options)) if self.options else plan


def _over(options: dict[str, dict[str, Any]], values: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {key: {**fields, **values.get(key, {})} for key, fields in options.items()}
