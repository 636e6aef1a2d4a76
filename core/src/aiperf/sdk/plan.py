"""The validated run.  Frozen: everything later is a function of it.

API keys and header values travel to the workers separately (:class:`Secrets`) and are never written.  Secret options of
plugins are in the plan in memory only: files hold :meth:`Plan.public`.
"""

# Larger than 450 lines: all that travels with a plan stands in one module.

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from aiperf.foreign import BURST, RAMP
from aiperf.redaction import shown_fields, without_secrets
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.model import http_urls
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.scenario import Conflict
from aiperf.sdk.statistics import percentile


class ExportLevel(StrEnum):
    """How much is written: results of the run; also a row for each request; also the raw journal."""

    SUMMARY = "summary"
    RECORDS = "records"
    RAW = "raw"


class ModelStrategy(StrEnum):
    """How sessions get one of several models."""

    ROUND_ROBIN = "round_robin"
    RANDOM = "random"


class Replay(Struct, frozen=True, omit_defaults=True):
    """The part of a trace that is sent, and its time zero (spec: timing §13).

    start_ms, end_ms: inclusive bounds of the recorded times, None is open.  auto_offset: time zero is the first time within
    the bounds; else it is *start_ms*, or 0.
    """

    auto_offset: bool = True
    start_ms: int | None = None
    end_ms: int | None = None


class PhasePlan(Struct, frozen=True, omit_defaults=True):
    """One phase.  *kind* is ``warmup`` or ``profiling``.

    schedule: name of the scheduling mode.  pattern, smoothness: name and parameter of the arrival distribution.
    request_count, session_count, duration_ns: stop conditions; the first one reached ends sending; None is no condition.
    grace_ns: time after the duration for requests in flight; None waits for all.
    concurrency: limit of concurrent sessions; prefill_concurrency: limit of requests before their first token; None is none.
    rate: requests/s, the target of a ramp; rate_series: ((seconds, requests/s), …), linear in between, replaces it.
    ramp: name of the curve; *_ramp_ns: time in which a limit, or the rate, rises; None is at once.
    users: number of users in the user-centric mode.  replay: part of the trace that the fixed schedule sends.
    cancel_share, cancel_delay_ns: share of cancelled requests, and the time between sending and cancelling.
    driver: name of the driver that starts the requests, filled in with the due times; journals leave the default out.
    due_file: due times of arrivals (int64 ns after phase start, -1 where answers decide); None without pacing.
    planned: number of arrivals; None where time or answers decide.  turns: upper bound of the phase's requests, filled in
    with the data set; None where only time ends the phase.
    sessions_file: rows of (entry, turns, number of the first arrival), where the schedule plans sessions.
    spacing_ns: time between a session's turns, where the schedule fixes it; else recorded times minus *zero_ns*, or delays.
    limits_file, prefill_limits_file: times at which a ramped limit grows (int64 ns after phase start, one for each level).
    first_entry, entries: part of the data set that the phase uses.
    lives_on: its sessions live on in the next phase, which has the same entries: both number them together, and their ids are
    those of the next one.
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
    ramp: str = RAMP
    concurrency_ramp_ns: int | None = None
    prefill_ramp_ns: int | None = None
    rate_ramp_ns: int | None = None
    users: int | None = None
    replay: Replay | None = None
    cancel_share: float = 0.0
    cancel_delay_ns: int = 0
    planned: int | None = None
    turns: int | None = None
    driver: str = BURST
    due_file: str | None = None
    spacing_ns: int | None = None
    zero_ns: int = 0
    sessions_file: str | None = None
    limits_file: str | None = None
    prefill_limits_file: str | None = None
    first_entry: int = 0
    entries: int = 0
    lives_on: bool = False

    @property
    def home(self) -> int:
        """Index of the phase that numbers and names the sessions of this one."""
        return self.index + self.lives_on

    @property
    def paced(self) -> bool:
        """Whether arrivals have due times."""
        return self.due_file is not None or self.rate is not None or self.rate_series is not None


class TlsPlan(Struct, frozen=True, omit_defaults=True):
    """How servers are verified and how the client shows itself.  Files are in PEM form.

    verify: check certificates and host names.  ca_file: trusted certificates, None is the system's.  client_cert: the client's
    own, None for none.  client_key: its key, None where the certificate's file has it.
    """

    verify: bool = True
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None


class RunPlan(Struct, frozen=True):
    """Identity of the run, and its processes.

    run_id: 12 hex digits.  seed: root of every draw; seeded: the user gave it.  command: the command line as typed, secrets
    redacted.  workers, reducers: numbers of processes.  config: given and derived settings, in the sections of the
    configuration file.  log_level: of ``logging``; 5 is trace.  study_id: of the study (:mod:`aiperf.sdk.study`) that the run
    is a part of, "" for a run by itself.  carried_over: requests of the run before it, in a study, that were aborted and may be
    in the server's queue still.  overridden: what the scenario doesn't allow, and ``--unsafe-override`` does.
    sites: names of the sites that have the workers and reducers, () where this machine has them.  Shard i is at site i modulo
    their number.  restart_lost: one that is lost while the load goes on is started again.
    """

    run_id: str
    version: str
    seed: int
    seeded: bool
    command: str
    workers: int = 1
    reducers: int = 1
    verbose: bool = False
    log_level: int = 20
    config: dict[str, Any] = field(default_factory=dict)
    study_id: str = ""
    carried_over: int = 0
    overridden: tuple[Conflict, ...] = ()
    sites: tuple[str, ...] = ()
    restart_lost: bool = False

    @property
    def deals_numbers(self) -> bool:
        """Whether sites get the numbers of bursts from the run, in blocks: where there are several, or one may be lost and
        another one goes on."""
        return len(self.sites) > 1 or bool(self.sites and self.restart_lost)


class TargetPlan(Struct, frozen=True):
    """Destination and form of requests.

    models: names of models; *model_strategy* distributes several among sessions.
    urls: base URLs; url_weights: a weight for each.  streaming: request a stream.
    path: appended to each URL by requests whose endpoint chooses no other; by all of them where *path_given* (``--endpoint``).
    timeout_ns: time limit of a request.  reuse: keep connections open; sticky: one connection per session.
    session_header: name of the header with the session's id.  extra: fields of every request body.
    use_server_token_count: token counts come from the server's usage; per_chunk_usage: request it with each piece.
    accept_encoding: the header ``Accept-Encoding`` that was given with ``--header``; "" asks for none.
    preconnect: connections are opened before the load.
    setting_names: the endpoint's capability ``settings``.
    control_urls: base URLs of HTTP servers for what isn't load (resets, profiler, metrics); without any it is *urls*.
    prepared: what the endpoint has learned of the server (``Endpoint.prepare``), filled in before the build.
    """

    models: tuple[str, ...]
    urls: tuple[str, ...]
    path: str
    streaming: bool
    timeout_ns: int
    model_strategy: ModelStrategy = ModelStrategy.ROUND_ROBIN
    url_weights: tuple[float, ...] = ()
    reuse: bool = True
    sticky: bool = False
    session_header: str = "X-Correlation-ID"
    tls: TlsPlan = TlsPlan()
    extra: dict[str, Any] = field(default_factory=dict)
    use_server_token_count: bool = False
    per_chunk_usage: bool = False
    path_given: bool = False
    accept_encoding: str = ""
    preconnect: bool = True
    setting_names: dict[str, str] = {}
    prepared: dict[str, Any] | None = None
    control_urls: tuple[str, ...] = ()

    @property
    def given_path(self) -> str | None:
        """The path of every request; None leaves it to the endpoint."""
        return self.path if self.path_given else None

    @property
    def http_urls(self) -> tuple[str, ...]:
        """The base URLs of HTTP servers for what isn't load; () where none is known."""
        return self.control_urls or http_urls(self.urls)

    @property
    def scheme(self) -> str:
        """The scheme of the URLs, of several that of the first."""
        return self.urls[0].partition("://")[0].lower() if self.urls else ""

    def yielding(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a turn by their names in the endpoint's dialect, without those that it doesn't have."""
        called = self.setting_names
        return {called.get(name, name): value for name, value in settings.items() if called.get(name, name)}

    def sent(self, settings: Mapping[str, Any], row_extra: Mapping[str, Any]) -> dict[str, Any]:
        """What a turn's settings (``Turn.settings``) were when they were sent, by their names in the endpoint's dialect.

        Those of the run win over them, and those of *row_extra* (``Turn.extra``) over both.
        """
        winning = {**self.extra, **row_extra}
        return {name: winning.get(name, value) for name, value in self.yielding(settings).items()}


class DataPlan(Struct, frozen=True):
    """The data set.

    entries: number of conversations.  source: the input file, None for generated data; first: number of its conversations to
    use, None is all.  sampling: order of entries; "" is the data set's own, filled in by the build.
    delay_ratio: factor of every think time.  tokenizer_name: as given or derived, None where nothing is tokenized.
    chat_template: prompts are counted with the tokenizer's chat template (``--apply-chat-template``).
    name, row: of a public data set or benchmark, its name and its data in the manifest; else "" and {}.
    once: profiling uses each entry at most once; without a stop condition every entry once.
    whole: it is made and checked whole before anything is sent.  cache_bust: the marker in prompts (``--cache-bust``).
    several_answers: a request asks for several answers (``n``).  facts: what the data set tells of its source.  The build fills
    both in.
    tokenizer_files: where sites lack the tokenizer, its files by their names in one directory, which the build fills in;
    tokenizer_directory: at a site, the directory that has them there, else None.
    """

    entries: int
    sampling: str = ""
    source: str | None = None
    first: int | None = None
    delay_ratio: float = 1.0
    tokenizer_name: str | None = None
    name: str = ""
    row: dict[str, Any] = field(default_factory=dict)
    once: bool = False
    whole: bool = False
    several_answers: bool = False
    cache_bust: CacheBust = CacheBust.NONE
    facts: dict[str, Any] = field(default_factory=dict)
    chat_template: bool = False
    tokenizer_files: dict[str, str] = {}
    tokenizer_directory: str | None = None


class LoadPlan(Struct, frozen=True):
    """The phases in their order.  failed_threshold: share of failed requests that ends the run; None is no limit."""

    phases: tuple[PhasePlan, ...]
    failed_threshold: float | None = None


class OutputPlan(Struct, frozen=True):
    """Results and their place.

    journal: directory of segments and columns.  artifacts: directory of results.  export_prefix: base name of exported
    files, None is the default.  export_level: ``summary``, ``records`` or ``raw``.  http_trace: records have headers,
    stamps and reads.  slice_ns: width of time slices, None reports none.
    private: all files of the run are readable by their owner alone.  files: names with placeholders, by kind, that the run's
    exporters declare (:func:`aiperf.sdk.exporter.file_name`).  early_files: kinds of those that are written before load.
    percentiles, columns: statistics that the user chose, in that order; without any, tables have their usual ones.
    """

    journal: str
    artifacts: str
    export_prefix: str | None = None
    export_level: ExportLevel = ExportLevel.RECORDS
    http_trace: bool = False
    private: bool = False
    slice_ns: int | None = None
    files: dict[str, str] = {}
    early_files: tuple[str, ...] = ()
    percentiles: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def asked_percentiles(self) -> tuple[float, ...]:
        """The percentiles that were asked for, ascending, those among the columns included."""
        named = (percentile(name) for name in self.columns)
        return tuple(sorted({*self.percentiles, *(each for each in named if each is not None)}))

    @property
    def keeps_requests(self) -> bool:
        """Whether the journal stores headers of requests and answers, and bodies that the data set lacks."""
        return self.http_trace or self.export_level == ExportLevel.RAW


class PluginPlan(Struct, frozen=True):
    """Every plugin the run uses.  Workers and reducers load from these references, without discovery.

    tokenizer, grader, ui, configuration, scenario: None where the run has none.  engine: None runs shards as local processes.
    grading_timeout_s: limit per answer of a slow grader; None grades in the reducer.  grading_processes: answers that a slow
    one grades at a time; grading_limit_s: its time for all of them, from the end of the load.  grading_again: a report grades
    the stored answers with *grader*, in place of the grades of the run.  grading_engine: the optional package that the grader
    compares with, and its version; None without.
    url_strategy: None takes URLs in turn.  reducer: None in plans of versions that had one only.
    schedules, arrivals, ramps, samplers, drivers: by the names in phases and data.
    hook_names: by ``category:name``, the hooks that each of *hooks* implements; a plugin that is missing may implement any.
    facts: by ``category:name``, what the manifests of samplers, drivers, live views and the phases' schedules declare.
    options: validated options by ``category:name``; secret_options: the fields that must not be written.
    shadowed: by ``category:name``, the packages that lost the name.
    given: by ``category:name``, plugins of which the user gave an option.
    metric_ranks: by ``category:name``, the claim of a plugin to a metric's tag: pinned, priority, not one of ours.
    """

    endpoint: PluginRef
    transport: PluginRef
    dataset: PluginRef
    tokenizer: PluginRef | None = None
    grader: PluginRef | None = None
    grading_timeout_s: float | None = None
    grading_processes: int = 1
    grading_limit_s: float = 600.0
    grading_again: bool = False
    grading_engine: str | None = None
    ui: PluginRef | None = None
    engine: PluginRef | None = None
    url_strategy: PluginRef | None = None
    configuration: PluginRef | None = None
    reducer: PluginRef | None = None
    series: PluginRef | None = None
    scenario: PluginRef | None = None
    metrics: tuple[PluginRef, ...] = ()
    exporters: tuple[PluginRef, ...] = ()
    hooks: tuple[PluginRef, ...] = ()
    hook_names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    telemetry: tuple[PluginRef, ...] = ()
    verdicts: tuple[PluginRef, ...] = ()
    tables: tuple[PluginRef, ...] = ()
    companions: tuple[PluginRef, ...] = ()
    live: tuple[PluginRef, ...] = ()
    schedules: dict[str, PluginRef] = field(default_factory=dict)
    arrivals: dict[str, PluginRef] = field(default_factory=dict)
    ramps: dict[str, PluginRef] = field(default_factory=dict)
    samplers: dict[str, PluginRef] = field(default_factory=dict)
    drivers: dict[str, PluginRef] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    options: dict[str, EncodedOptions] = field(default_factory=dict)
    secret_options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shadowed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    metric_ranks: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    given: tuple[str, ...] = ()

    def fact(self, category: str, name: str, what: str) -> Any:
        """What the manifest of a sampler, a driver or a phase's schedule declares; None where it doesn't."""
        return self.facts.get(f"{category}:{name}", {}).get(what)

    def options_of(self, ref: PluginRef) -> Any:
        """The plugin's options with their declared types, None where it declares none."""
        encoded = self.options.get(ref.key)
        return None if encoded is None else encoded.decoded()

    def secret_values(self) -> dict[str, dict[str, Any]]:
        """The secret options with their values."""
        return {key: {name: self.options[key].values[name] for name in names} for key, names in self.secret_options.items()}

    def hooked(self, *names: str) -> list[tuple[PluginRef, Any]]:
        """The hooks plugins that implement any of these hooks, each with its options."""
        refs = (ref for ref in self.hooks if set(names) & set(self.hook_names.get(ref.key, names)))
        return [(ref, self.options_of(ref)) for ref in refs]


class Plan(Struct, frozen=True):
    """A whole run, in the sections of the configuration file."""

    run: RunPlan
    target: TargetPlan
    data: DataPlan
    load: LoadPlan
    output: OutputPlan
    plugins: PluginPlan

    def replacing(self, **fields: Any) -> Plan:
        """The plan with new values of *fields*, each in its section (field names are unique across sections).

        Raises:
            TypeError: No section has the field.
        """
        changed = {}
        for name in self.__struct_fields__:
            section = getattr(self, name)
            own = {key: fields.pop(key) for key in section.__struct_fields__ if key in fields}
            if own:
                changed[name] = replace(section, **own)
        if fields:
            raise TypeError(f"a plan has no {' nor '.join(fields)}")
        return replace(self, **changed)

    def input_config(self) -> dict[str, Any]:
        """The configuration in the reference's form, which lacks plugins and their options."""
        own = {"endpoint": ("transport",), "runtime": ("engine",)}  # settings that the reference doesn't know
        return {
            name: {key: value for key, value in section.items() if key not in own[name]} if name in own else section
            for name, section in self.run.config.items()
            if name != "plugins"
        }

    def public(self) -> Plan:
        """The plan for files: secret options are None; URLs and the path have no query, fields of bodies no secrets."""
        hidden = {key: dict.fromkeys(fields) for key, fields in self.plugins.secret_options.items()}
        target = self.target
        return self.replacing(
            options=_over(self.plugins.options, hidden), urls=tuple(map(without_secrets, target.urls)),
            control_urls=tuple(map(without_secrets, target.control_urls)),
            path=without_secrets(target.path), extra=shown_fields(target.extra),
        )  # fmt: skip


class SiteOffset(Struct, frozen=True, omit_defaults=True):
    """How far the monotonic clock of a site was ahead of that of the run, in ns.

    ahead_ns: by this its reducers put instants on the run's clock.  knots: instants of that clock, and how far the site's went
    away from *ahead_ns* by then; linear in between, as at the first and the last beyond them.  () where it did not.
    """

    ahead_ns: int
    knots: tuple[tuple[int, int], ...] = ()

    def moved_ns(self, at_ns: int) -> int:
        """How far the site's clock was away from *ahead_ns* at an instant of the run's clock."""
        if not self.knots:
            return 0
        place = bisect(self.knots, (at_ns, 0))
        if not 0 < place < len(self.knots):
            return self.knots[min(place, len(self.knots) - 1)][1]
        (begin, before), (end, after) = self.knots[place - 1 : place + 1]
        return before + round((after - before) * (at_ns - begin) / (end - begin))


class RunClock(Struct, frozen=True, omit_defaults=True):
    """The run's time zero on both clocks, in ns: columns count from it.

    ahead_ns: how far the monotonic clock that stamped the journal's segments is ahead of that of the run; not 0 at a site.
    sites: in the journal of a run whose shards were at sites, the clocks of these; shard i was at site i modulo their number.
    """

    started_mono_ns: int
    started_wall_ns: int
    ahead_ns: int = 0
    sites: tuple[SiteOffset, ...] = ()

    def moved_ns(self, shard: int, at_ns: int) -> int:
        """How much later than it was an instant of the shard is, that was put on the run's clock by :meth:`ahead_of`."""
        return self.sites[shard % len(self.sites)].moved_ns(at_ns) if self.sites else 0

    def ahead_of(self, shard: int) -> int:
        """How far the clock that stamped the shard's segments is ahead."""
        return self.sites[shard % len(self.sites)].ahead_ns if self.sites else self.ahead_ns


class Secrets(Struct, frozen=True):
    """Values that must never be written.  They travel over the control channel only.

    headers: of every request.  options: secret options of plugins by ``category:name``.  urls, path, extra: of the target, as
    given; no *urls* in a process that sends nothing.  texts: what is removed from headers, errors and logs, the longest first.
    """

    headers: dict[str, str] = field(default_factory=dict)
    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    urls: tuple[str, ...] = ()
    path: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    def restored(self, plan: Plan) -> Plan:
        """The plan before :meth:`Plan.public`; of the target only where *urls* are known."""
        if self.options:
            plan = plan.replacing(options=_over(plan.plugins.options, self.options))
        return plan.replacing(urls=self.urls, path=self.path, extra=self.extra) if self.urls else plan


def _over(options: dict[str, EncodedOptions], values: dict[str, dict[str, Any]]) -> dict[str, EncodedOptions]:
    """The options with other *values*, by key and field."""
    return {
        key: EncodedOptions(encoded.options_class, {**encoded.values, **values.get(key, {})})
        for key, encoded in options.items()
    }


__all__ = [
    "DataPlan", "ExportLevel", "LoadPlan", "ModelStrategy", "OutputPlan", "PhasePlan", "Plan", "PluginPlan", "Replay",
    "RunClock", "RunPlan", "Secrets", "TargetPlan", "TlsPlan",
]  # fmt: skip
