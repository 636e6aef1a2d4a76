"""The kernel's own options, each declared once: CLI, help, validation and docs derive from here.

A field is what a person types.  Checks between options live in :mod:`aiperf.planning`, which sees them all.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from aiperf import foreign
from aiperf.planning.grading_options import GradingOptions
from aiperf.planning.scenario_options import ScenarioOptions
from aiperf.planning.study_options import StudyOptions
from aiperf.planning.warmup_options import WarmupOptions
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.options import Finite, Options, Word, option
from aiperf.sdk.plan import ExportLevel, ModelStrategy
from aiperf.sdk.statistics import Columns, Percentiles


class ConnectionReuse(StrEnum):
    POOLED = "pooled"
    NEVER = "never"
    STICKY_USER_SESSIONS = "sticky_user_sessions"


class RunOptions(Options):
    """Options of one run."""

    # Endpoint
    models: list[str] = option("--model-names", "--model", "-m", default=[], group="Endpoint", metavar="NAME",
        place="models.items", help="Model name(s) the server serves; several are given to sessions in turn.")
    model_selection_strategy: ModelStrategy = option("--model-selection-strategy", default=ModelStrategy.ROUND_ROBIN,
        group="Endpoint", place="models.strategy", help="How sessions get one of several models.")
    endpoint_path: str | None = option("--custom-endpoint", "--endpoint", group="Endpoint", metavar="PATH",
        place="endpoint.path", help="Path below the URL instead of the endpoint type's own; empty appends nothing.")
    endpoint_type: Word = option("--endpoint-type", default=foreign.ENDPOINT, group="Endpoint", metavar="TYPE",
        place="endpoint.type", help="Request and response dialect: the name of an installed endpoint plugin.")
    streaming: bool = option("--streaming", default=False, negative="--no-streaming", group="Endpoint",
        place="endpoint.streaming", help="Stream answers; needed for time to first token and inter-token latency.")
    urls: list[str] = option("--url", "-u", default=["http://localhost:8000"], shown="http://localhost:8000", group="Endpoint",
        metavar="URL", place="endpoint.urls",
        help="Base URL(s) of the server, or unix:///PATH of its socket; several are given to sessions in turn.")
    control_urls: list[str] = option("--server-control-url", default=[], group="Endpoint", metavar="URL", shown="--url",
        place="endpoint.control_urls",
        help="HTTP base URL(s) of the servers for what is no load: metrics, resets, the profiler; for a --url that is no HTTP.")
    url_strategy: Word = option("--url-strategy", default=foreign.URL_STRATEGY, group="Endpoint", metavar="NAME",
        place="endpoint.url_strategy",
        help="How sessions are spread over the URLs: round_robin, least_in_flight, weighted (--url http://a=3) or a plugin's.")
    request_timeout_s: Finite = option("--request-timeout-seconds", default=21600.0, gt=0, group="Connection",
        metavar="SECONDS", place="endpoint.timeout",
        help="Longest time a request may take, connecting included; after it the request counts as an error.")
    unreachable_timeout_s: Finite | None = option("--unreachable-timeout", ge=0, group="Connection", metavar="SECONDS",
        place="endpoint.unreachable_timeout",
        help="End the run when no connection can be opened for so long, 0 never; by default 10 until one was, then 60, and"
        " never where --benchmark-duration ends the load.")
    api_key: str | None = option("--api-key", group="Endpoint", secret=True, metavar="KEY", place="endpoint.api_key",
        help="API key, sent as the endpoint's dialect wants it; a server that repeats it puts it into the raw export and the"
        " journal, and into no other file.")
    api_key_file: Path | None = option("--api-key-file", group="Endpoint", metavar="FILE", place="endpoint.api_key_file",
        shown="the variable AIPERF_API_KEY", help="File with the API key, which the list of processes does not show then.")
    use_server_token_count: bool = option("--use-server-token-count", default=False, group="Endpoint",
        place="endpoint.use_server_token_count", help="Take token counts from the server's usage instead of counting here.")
    per_chunk_usage: bool = option("--per-chunk-usage", default=False, group="Endpoint", place="endpoint.per_chunk_usage",
        help="Ask for the token counts so far with every piece of a stream: inter-token latency leaves out those of the first.")
    transport: Word = option("--transport", "--transport-type", default=foreign.TRANSPORT, group="Connection", metavar="NAME",
        shown="the endpoint's, else one for the URL: kernel", place="endpoint.transport",
        help="What moves the bytes: the name of an installed transport plugin.")
    connection_reuse: ConnectionReuse = option("--connection-reuse-strategy", default=ConnectionReuse.POOLED,
        group="Connection", place="endpoint.connection_reuse",
        help="Keep connections open between requests, open one for each, or one for each session.")
    preconnect: bool = option("--preconnect", default=True, negative="--no-preconnect", group="Connection",
        place="endpoint.preconnect",
        help="Open connections before the load; without, the first requests open them, and measure that, too.")
    session_header: str = option("--session-header", default="X-Correlation-ID", group="Endpoint", metavar="NAME",
        place="endpoint.session_header", help="Header that carries the session's id.")
    request_content_type: str | None = option("--request-content-type", group="Endpoint", shown="the endpoint type's",
        metavar="TYPE", place="endpoint.request_content_type",
        help="application/json or multipart/form-data; an endpoint type has one form, and the other is refused.")
    ca_file: Path | None = option("--ca-file", group="Connection", metavar="FILE", place="endpoint.tls.ca_file",
        help="Certificates to trust, PEM, instead of the system's.")
    client_cert: Path | None = option("--client-cert", group="Connection", metavar="FILE", place="endpoint.tls.client_cert",
        help="Client certificate, PEM.")
    client_key: Path | None = option("--client-key", group="Connection", metavar="FILE", place="endpoint.tls.client_key",
        help="Key of the client certificate, PEM.")
    insecure: bool = option("--insecure", default=False, group="Connection", place="endpoint.tls.insecure",
        help="Don't check the server's certificate.")

    # Input
    extra_inputs: list[str] = option("--extra-inputs", default=[], group="Input", metavar="KEY:VALUE", commas=False,
        place="endpoint.extra", help="Fields merged into every request body: key:value pairs or one JSON object.")
    headers: list[str] = option("--header", "-H", default=[], group="Input", metavar="NAME:VALUE", commas=False, secret=True,
        place="endpoint.headers", help="Extra HTTP header; repeat for more.")
    input_file: Path | None = option("--input-file", group="Input", metavar="PATH", place="dataset.path",
        help="Data set to send: a file, or a directory of files.")
    dataset_type: Word | None = option("--custom-dataset-type", group="Input", metavar="TYPE", shown="recognised from the file",
        place="dataset.format", help="Format of the input file: the name of an installed data set plugin.")
    public_dataset: Word | None = option("--public-dataset", group="Input", metavar="NAME", place="dataset.public",
        help="A known data set by name; 'aiperf plugins datasets' lists them. With --input-file, its local copy.")
    check_data: bool = option("--check-data", default=False, group="Input", place="dataset.check",
        help="Make and check the whole data set before anything is sent, however long that takes.")
    delay_ratio: Finite = option("--conversation-turn-delay-ratio", "--session-delay-ratio", default=1.0, ge=0, group="Input",
        metavar="RATIO", place="dataset.turn_delay_ratio", help="Every think time between turns times this; 0 drops them.")
    cache_bust: CacheBust = option("--cache-bust", default=CacheBust.NONE, group="Input", place="dataset.cache_bust.target",
        help="Put a marker into each session's prompts, and where, so that no server finds them in its prefix cache; or one"
        " into those of the warmup.")
    random_seed: int | None = option("--random-seed", ge=0, lt=2**64, group="Input", metavar="INT", shown="from the system",
        place="random_seed", help="Root seed: the same seed gives the same data set, order and arrival times.")
    sampling: Word | None = option("--dataset-sampling-strategy", group="Input", metavar="NAME", shown="the data set's own",
        place="dataset.sampling", help="Order in which data set entries are used: sequential, shuffle, random, or a plugin's.")
    entries: int | None = option("--num-dataset-entries", "--num-prompts", ge=1, group="Input", metavar="INT",
        shown="sessions, else requests, else 100; of a file all", cells=True, place="dataset.entries",
        help="Unique data set entries to generate, or of a file to take, the first ones; they are reused as needed.")

    # Output
    artifact_dir: Path | None = option("--output-artifact-dir", "--artifact-dir", group="Output", metavar="DIR",
        shown="artifacts/<model>-<kind>-<endpoint>-<load>", place="artifacts.dir", help="Directory for results.")
    export_prefix: str | None = option("--profile-export-prefix", "--profile-export-file", group="Output", metavar="NAME",
        place="artifacts.prefix", help="Base name of the exported files; of a path only the last component is used.")
    export_level: ExportLevel = option("--export-level", "--profile-export-level", default=ExportLevel.RECORDS, group="Output",
        place="artifacts.level", help="How much to write: summaries, also one row a request, also the raw journal.")
    export_http_trace: bool = option("--export-http-trace", default=False, group="Output", place="artifacts.trace",
        help="Show headers, stamps and reads of every request in the per-request file; values of secret headers are left out.")
    private: bool = option("--private", default=False, group="Output", place="artifacts.private",
        help="Let nobody else read the files of the run: they have prompts and answers, and errors that quote them.")
    slice_duration_s: Finite | None = option("--slice-duration", gt=0, group="Output", metavar="SECONDS", shown="no slices",
        place="artifacts.slice_duration", help="Report every so many seconds of the profiling phase apart, too.")
    percentiles: Percentiles = option("--percentiles", default=[], group="Output", metavar="PERCENT", shown="the usual ones",
        place="artifacts.percentiles",
        help="Percentiles in the report and the CSV files, such as 50,90,99.9; the JSON files have them beside the usual ones.")
    columns: Columns = option("--columns", default=[], group="Output", metavar="NAME", shown="the usual ones",
        place="artifacts.columns",
        help="Columns of the report's tables and of the CSV files: avg, min, max, sum, std, count, and percentiles as p99.")

    # Tokenizer
    tokenizer: str | None = option("--tokenizer", group="Tokenizer", metavar="NAME", shown="the model's name",
        place="tokenizer.name", help="Tokenizer for prompts and counts: 'builtin' (no network), a local path, or a hub id.")
    apply_chat_template: bool = option("--apply-chat-template", default=False, group="Tokenizer",
        place="tokenizer.apply_chat_template",
        help="Count prompts, and size synthetic ones, with the tokens of the model's chat template.")

    # Load
    concurrency: int | None = option("--concurrency", ge=1, group="Load", metavar="INT",
        shown="1 without a rate, else no limit", cells=True, place="profiling.concurrency", help="Most sessions at a time.")
    prefill_concurrency: int | None = option("--prefill-concurrency", ge=1, group="Load", metavar="INT", shown="no limit",
        cells=True, place="profiling.prefill_concurrency",
        help="Most requests at a time that wait for their first token; needs --streaming.")
    request_rate: Finite | None = option("--request-rate", gt=0, group="Load", metavar="REQ/S", cells=True,
        place="profiling.rate", help="Requests started per second, open loop.")
    arrival_pattern: Word | None = option("--arrival-pattern", "--request-rate-mode", group="Load", metavar="NAME",
        shown=foreign.ARRIVALS, place="profiling.type",
        help="Distribution of the time between arrivals: constant, poisson or gamma.")
    arrival_smoothness: Finite | None = option("--arrival-smoothness", "--vllm-burstiness", gt=0, group="Load", metavar="K",
        place="profiling.smoothness",
        help="Shape of gamma arrivals: 1 is poisson, below is burstier, above more regular; alone it selects gamma.")
    request_rate_series: Path | None = option("--request-rate-series", group="Load", metavar="FILE",
        place="profiling.rate_series.path",
        help="A rate that changes over time, piecewise linear: a JSON file of [seconds, requests per second] points.")
    concurrency_ramp_s: Finite | None = option("--concurrency-ramp-duration", gt=0, group="Load", metavar="SECONDS",
        place="profiling.concurrency_ramp.duration", help="Raise the concurrency from 1 to its target over this time.")
    prefill_ramp_s: Finite | None = option("--prefill-concurrency-ramp-duration", gt=0, group="Load", metavar="SECONDS",
        place="profiling.prefill_ramp.duration", help="Raise the prefill concurrency from 1 to its target over this time.")
    rate_ramp_s: Finite | None = option("--request-rate-ramp-duration", gt=0, group="Load", metavar="SECONDS",
        place="profiling.rate_ramp.duration", help="Raise the request rate to its target over this time.")
    ramp: Word = option("--ramp", default=foreign.RAMP, group="Load", metavar="NAME", place="profiling.ramp",
        help="How ramps rise: linear, exponential, or a plugin's.")
    scheduling_mode: Word | None = option("--scheduling-mode", group="Load", metavar="NAME", shown="from the other options",
        place="profiling.scheduling_mode",
        help="What says when requests start: burst, request_rate, fixed_schedule, user_centric, or a plugin's schedule.")
    user_centric_rate: Finite | None = option("--user-centric-rate", gt=0, group="Load", metavar="REQ/S",
        place="profiling.rate (user_centric)",
        help="Requests per second over all users, each of whom keeps a constant time between its turns.")
    users: int | None = option("--num-users", ge=1, group="Load", metavar="INT", cells=True, place="profiling.users",
        help="Simulated users; with, and only with, a user-centric rate.")
    fixed_schedule: bool = option("--fixed-schedule", default=False, negative="--no-fixed-schedule", group="Load",
        shown="on for a trace type with timestamps", place="profiling.type (fixed_schedule)",
        help="Replay a trace at its recorded times.")
    fixed_auto_offset: bool = option("--fixed-schedule-auto-offset", default=True, negative="--no-fixed-schedule-auto-offset",
        group="Load", place="profiling.auto_offset", help="Shift a trace so that its first request is due at once.")
    fixed_start_ms: int | None = option("--fixed-schedule-start-offset", ge=0, group="Load", metavar="MS",
        place="profiling.start_offset", help="Leave out what a trace has before this time, which becomes time zero.")
    fixed_end_ms: int | None = option("--fixed-schedule-end-offset", ge=0, group="Load", metavar="MS",
        place="profiling.end_offset", help="Leave out what a trace has after this time.")
    request_count: int | None = option("--request-count", "--num-requests", ge=1, group="Load", metavar="INT",
        shown="10, or twice the concurrency", cells=True, place="profiling.requests", help="Stop after this many requests.")
    session_count: int | None = option("--conversation-num", "--num-conversations", "--num-sessions", ge=1, group="Load",
        metavar="INT", cells=True, place="profiling.sessions", help="Stop after this many sessions; each finishes its turns.")
    benchmark_duration_s: Finite | None = option("--benchmark-duration", gt=0, group="Load", metavar="SECONDS",
        cells=True, place="profiling.duration", help="Stop sending after this time.")
    benchmark_grace_s: float | None = option("--benchmark-grace-period", ge=0, group="Load", metavar="SECONDS", shown="30",
        place="profiling.grace_period", help="Time that requests in flight get after the duration; inf waits for all.")

    failed_threshold: Finite | None = option("--failed-request-threshold", ge=0, le=1, group="Load", metavar="SHARE",
        place="profiling.failed_request_threshold",
        help="End with exit code 1 once a larger share of the requests than this (0 to 1) has failed, after at least ten and"
        " the concurrency; without it exit code 1 at the end where more than half failed.")
    cancellation_pct: Finite | None = option("--request-cancellation-rate", ge=0, le=100, group="Load", metavar="PERCENT",
        place="profiling.cancellation.rate", help="Share of requests to cancel.")
    cancellation_delay_s: Finite | None = option("--request-cancellation-delay", ge=0, group="Load", metavar="SECONDS",
        shown="0", place="profiling.cancellation.delay", help="Cancel so long after the request is fully sent.")

    # Accuracy
    accuracy_benchmark: Word | None = option("--accuracy-benchmark", group="Accuracy", metavar="NAME",
        place="accuracy.benchmark", help="Send a benchmark's questions; 'aiperf plugins datasets' lists the installed ones.")
    accuracy_grader: Word | None = option("--accuracy-grader", group="Accuracy", metavar="NAME", shown="no grading",
        place="accuracy.grader",
        help="Compare answers with those the data set expects: the name of an installed grader plugin.")

    # Processes and display
    log_level: Word = option("--log-level", default="info", group="Service",
        choices=("trace", "debug", "info", "notice", "warning", "success", "error", "critical"), place="logging.level",
        help="How much to log.")
    verbose: bool = option("--verbose", "-v", default=False, group="Service",
        help="Log at debug level; print the measurement table.")
    extra_verbose: bool = option("--extra-verbose", "-vv", default=False, group="Service",
        help="Log at trace level: a line for every request.")
    dry_run: bool = option("--dry-run", default=False, group="Service",
        help="Print plan, load, the first and the longest request, time and files, and send nothing to a server under test;"
        " a tokenizer or data set that is missing here is downloaded. The longest request is one of those that are made"
        " before the load begins: of all with --check-data.")
    as_json: bool = option("--json", default=False, group="Service", help="With --dry-run, print JSON for a program to read.")
    quiet: bool = option("--quiet", "-q", default=False, group="Service",
        help="Print the report alone, and errors; progress, log lines and warnings are in the log file only.")
    ui: Word | None = option("--ui-type", "--ui", group="Service", metavar="NAME", place="runtime.ui",
        shown="dashboard on a terminal of 60 × 15, simple on a smaller one, else none",
        help="Live display: dashboard, simple, none, or the name of another installed one.")
    stats_interval_s: Finite | None = option("--stats-interval", ge=0, le=1000, group="Service", metavar="SECONDS",
        shown="30 where standard error is no terminal and no display is used", place="runtime.stats_interval",
        help="Log two lines of live numbers every so often; 0 doesn't. Wins over AIPERF_UI_REALTIME_METRICS_INTERVAL.")
    workers_max: int | None = option("--workers-max", "--max-workers", ge=1, group="Service", metavar="INT",
        shown="from the CPUs", place="runtime.workers", help="Most worker processes; how many run is decided from the load.")
    workers: int | None = option("--workers", ge=1, le=1024, group="Service", metavar="INT", shown="from the load",
        place="runtime.worker_count", help="Exactly this many worker processes.")
    engine: Word = option("--engine", default="local", group="Service", metavar="NAME", place="runtime.engine",
        help="Where workers run: local processes, or the name of an installed engine.")
    restart_lost_shards: bool = option("--restart-lost-shards", default=False, group="Service",
        place="runtime.restart_lost_shards",
        help="Start a site again that is lost while the load goes on; what it may have sent since its last word is unknown.")
    record_processors: int | None = option("--record-processor-service-count", "--record-processors", ge=1, group="Service",
        metavar="INT", shown="as many as keep pace", place="runtime.record_processors",
        help="Processes that turn the journal into metrics.")
    zmq_host: str | None = option("--zmq-host", group="Service", metavar="HOST", place="runtime.communication.host",
        help="Use TCP on this host for control messages between processes.")
    zmq_ipc_path: Path | None = option("--zmq-ipc-path", group="Service", metavar="DIR", shown="a temporary directory",
        place="runtime.communication.path", help="Directory of the sockets for control messages between processes.")


class KernelOptions(GradingOptions, RunOptions, WarmupOptions, StudyOptions, ScenarioOptions):
    """Options of ``aiperf profile`` that the kernel itself reads."""
