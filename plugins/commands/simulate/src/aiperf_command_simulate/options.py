"""Options of ``aiperf simulate``."""

from __future__ import annotations

from pathlib import Path

from aiperf.sdk.options import Finite, Options, Word, option

from aiperf_command_simulate.engines import ENGINES
from aiperf_command_simulate.known_answers import FORMS


class SimulateOptions(Options):
    # Server
    host: str = option("--host", default="127.0.0.1", group="Server", metavar="ADDRESS",
        help="Address to listen on; nobody else can reach the default.")
    port: int = option("--port", default=8000, ge=0, le=65535, group="Server", metavar="PORT",
        help="Port to listen on; 0 picks a free one.")
    unix: Path | None = option("--unix", group="Server", metavar="PATH",
        help="Listen on this socket of the machine, too: unix:///PATH.")
    models: list[str] = option("--model", "-m", default=[], group="Server", metavar="NAME", shown="any", arity="many",
        help="Model(s) served; requests for another get 404.")
    tls_cert: Path | None = option("--tls-cert", group="Server", metavar="FILE", help="Certificate chain, PEM: serve https.")
    tls_key: Path | None = option("--tls-key", group="Server", metavar="FILE", help="Key of the certificate, PEM.")
    seed: int = option("--seed", default=0, ge=0, lt=2**64, group="Server", metavar="INT",
        help="Root of every draw: jitter, faults, lengths.")
    truth_log: int = option("--truth-log", default=20_000, ge=1, group="Server", metavar="REQUESTS",
        help="Requests whose rows /truth keeps; older ones are only counted.")
    truth_bodies: bool = option("--truth-bodies", default=False, group="Server",
        help="Keep the bodies of requests in their rows of /truth.")
    metrics: Word = option("--metrics", default="vllm", group="Server", choices=ENGINES,
        help="The engine whose families of metrics are served, at its path: /prometheus/metrics of trtllm, else /metrics.")
    metrics_lag_s: Finite = option("--metrics-lag", default=0.0, ge=0, group="Server", metavar="SECONDS",
        help="Counts appear on the page of metrics so long after what they count.")

    # GPUs
    gpus: int = option("--gpus", default=0, ge=0, le=64, group="GPUs", metavar="INT",
        help="GPUs whose power, energy, clocks, use and memory stand at /dcgm/metrics, as NVIDIA's exporter shows them.")
    mig: int = option("--mig", default=0, ge=0, le=7, group="GPUs", metavar="INT",
        help="MIG instances of the last GPU; 0 leaves it whole.")
    gpu_gone_after_s: Finite | None = option("--gpu-gone-after", ge=0, group="GPUs", metavar="SECONDS", shown="never",
        help="GPU 0 vanishes from the page so long after the start.")
    gpu_xid: int | None = option("--gpu-xid", ge=1, group="GPUs", metavar="CODE", shown="none",
        help="The XID error that GPU 0 shows.")
    gpu_xid_after_s: Finite = option("--gpu-xid-after", default=0.0, ge=0, group="GPUs", metavar="SECONDS",
        help="GPU 0 shows its XID error so long after the start.")

    # Engine
    prefill_us_per_token: Finite = option("--prefill-us-per-token", default=20.0, ge=0, group="Engine", metavar="US",
        help="Time to compute a prompt token that is not cached.")
    prefill_chunk: int = option("--prefill-chunk", default=2048, ge=1, group="Engine", metavar="TOKENS",
        help="Most prompt tokens computed in one step.")
    decode_ms: Finite = option("--decode-ms", default=8.0, ge=0, group="Engine", metavar="MS",
        help="Duration of a decode step with one sequence.")
    decode_batch_us: Finite = option("--decode-batch-us", default=50.0, ge=0, group="Engine", metavar="US",
        help="What each further sequence adds to a decode step.")
    max_running: int = option("--max-running", default=256, ge=1, group="Engine", metavar="INT",
        help="Most sequences computed at a time; the rest wait in order of arrival.")
    max_queue: int | None = option("--max-queue", ge=0, group="Engine", metavar="INT", shown="no limit",
        help="Most sequences that wait; beyond, requests get 429.")
    block_size: int = option("--block-size", default=16, ge=1, group="Engine", metavar="TOKENS",
        help="Tokens in a block of the prefix cache.")
    cache_blocks: int = option("--cache-blocks", "--prefix-cache", default=8192, ge=0, group="Engine", metavar="BLOCKS",
        help="Blocks in the prefix cache, least recently used leave first; 0 switches it off.")
    max_context: int = option("--max-context", "--context-limit", default=131_072, ge=2, group="Engine", metavar="TOKENS",
        help="Most tokens of prompt and answer together; beyond, requests get 400, in vLLM's words.")
    first_token_ms: Finite | None = option("--first-token-ms", ge=0, group="Engine", metavar="MS", shown="from the prefill",
        help="Time from leaving the queue to the first token, whatever the prompt.")
    jitter: Finite = option("--jitter", default=0.0, ge=0, lt=1, group="Engine", metavar="SHARE",
        help="Durations vary uniformly by up to this share, up and down.")
    freeze_every_s: Finite | None = option("--freeze-every", gt=0, group="Engine", metavar="SECONDS",
        help="Period at whose start the engine stands still; needs --freeze-for.")
    freeze_for_s: Finite | None = option("--freeze-for", gt=0, group="Engine", metavar="SECONDS",
        help="How long the engine stands still.")
    slow_from_s: Finite = option("--slow-from", default=0.0, ge=0, group="Engine", metavar="SECONDS",
        help="The engine becomes slow so long after the start; needs --slow-for.")
    slow_for_s: Finite | None = option("--slow-for", gt=0, group="Engine", metavar="SECONDS", shown="never",
        help="How long the engine is slow; needs --slow-by.")
    slow_by: Finite | None = option("--slow-by", gt=1, group="Engine", metavar="FACTOR",
        help="A slow engine takes so many times as long; the SM clocks of --gpus are lower by the same factor.")
    tenant_rate: Finite = option("--tenant-rate", default=0.0, ge=0, le=10_000, group="Engine", metavar="REQ/S",
        help="Requests of somebody else inside the engine, each with 512 prompt tokens and an answer of --tokens.")

    # Answers
    tokens: int = option("--tokens", default=64, ge=1, group="Answers", metavar="INT",
        help="Length of answers to requests that set no maximum.")
    stop_tokens: Finite | None = option("--stop-tokens", ge=1, group="Answers", metavar="MEAN", shown="never",
        help="Answers end of themselves after so many tokens on average, geometrically spread, unless ignore_eos is asked.")
    reasoning_tokens: int = option("--reasoning-tokens", default=0, ge=0, group="Answers", metavar="INT",
        help="Tokens at the start of each chat answer that are reasoning_content; they count towards its length.")
    tokens_per_chunk: int = option("--tokens-per-chunk", default=1, ge=1, group="Answers", metavar="INT",
        help="Tokens collected before a chunk is sent.")
    answers: Path | None = option("--answers", group="Answers", metavar="FILE",
        help="Answer the questions of this file (JSONL: question, answer, wrong, form); the last one in a prompt counts.")
    right: Finite = option("--right", default=1.0, ge=0, le=1, group="Answers", metavar="SHARE",
        help="How likely an answer of --answers is right, by --seed.")
    answer_form: Word = option("--answer-form", default="letter", group="Answers", choices=FORMS,
        help="How an answer of --answers is said: alone, in a sentence, in a box, behind ####, as a block of code; a line may"
        " have its own.")
    spec_decode: str | None = option("--spec-decode", group="Answers", metavar="DRAFTS[:RATE]", shown="nothing",
        help="Say of each answer of one choice how a decoder with so many draft tokens a step, each accepted at RATE (0.7),"
        " made it, as vLLM does; the engine's times stay.")
    request_metrics: bool = option("--request-metrics", default=False, group="Answers",
        help="Say of each answer of one choice how long it took the engine, as vLLM does with --enable-per-request-metrics.")
    film_ms: Finite = option("--film-ms", default=1000.0, ge=0, group="Answers", metavar="MS",
        help="Time that a film of /v1/videos takes, however many are made.")
    film_bytes: int = option("--film-bytes", default=1_000_000, ge=1, group="Answers", metavar="BYTES",
        help="Length of a film of /v1/videos.")
    lines: Word = option("--line-ends", default="lf", group="Answers", choices=("lf", "crlf", "cr", "mixed"),
        help="Line ends of the event stream.")
    framing: Word = option("--framing", default="chunked", group="Answers", choices=("chunked", "eof"),
        help="How bodies end: as HTTP/1.1 frames them, or with the connection.")

    # Faults
    fail_rate: Finite = option("--fail-rate", default=0.0, ge=0, le=1, group="Faults", metavar="SHARE",
        help="Share of requests answered with status 500.")
    faults: list[str] = option("--fault", default=[], group="Faults", metavar="SPEC[@SHARE]", arity="many", commas=False,
        help="What goes wrong, with which share of requests: fail=500@0.1, cut=3, stall=5:0.4; as in the X-Simulate header.")
    retry_after_s: Finite = option("--retry-after", default=1.0, ge=0, group="Faults", metavar="SECONDS",
        help="Retry-After header of 429 and 503.")
    ready_after_s: Finite = option("--ready-after", default=0.0, ge=0, group="Faults", metavar="SECONDS",
        help="Answer 503 to everything but /truth for so long after the start, as a server that loads its model.")
    ready_after_requests: int = option("--ready-after-requests", default=0, ge=0, group="Faults", metavar="COUNT",
        help="Answer 503 to the first so many requests, those for /truth not counted.")
    not_found: bool = option("--not-found", default=False, group="Faults",
        help="Answer 404 to everything but /truth.")
