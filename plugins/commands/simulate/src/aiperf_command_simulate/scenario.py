"""How one server behaves: the command's options, checked against each other and in the engine's units."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

from aiperf.sdk.errors import AiperfError, ConfigError, ConfigErrors, UsageError
from msgspec import Struct

from aiperf_command_simulate.drafts import MOST_DRAFTS, Drafts, parse_drafts
from aiperf_command_simulate.engine import EngineModel
from aiperf_command_simulate.faults import FaultError, Faults, Odds, parse_odds
from aiperf_command_simulate.gpus import GpuScenario
from aiperf_command_simulate.known_answers import KnownAnswer, KnownAnswers, read_answers
from aiperf_command_simulate.slowdown import NEVER, Slowdown


class ServerScenario(Struct, frozen=True):
    """models: names served; any name is where it is empty.  stop_tokens: mean length at which answers end of themselves.
    tenant_rate: requests a second of somebody else."""

    host: str
    port: int
    unix: Path | None
    tls: ssl.SSLContext | None
    models: tuple[str, ...]
    seed: int
    truth_log: int
    truth_bodies: bool
    engine: EngineModel
    max_context: int
    tokens: int
    stop_tokens: float | None
    reasoning_tokens: int
    tokens_per_chunk: int
    drafts: Drafts | None
    request_metrics: bool
    lines: str
    framing: str
    odds: tuple[Odds, ...]
    retry_after_s: float
    not_found: bool
    ready_after_ns: int
    ready_after_requests: int
    metrics: str
    metrics_lag_s: float
    answers: KnownAnswers
    gpus: GpuScenario
    tenant_rate: float
    film_ns: int
    film_bytes: int


def _ns(value: float, unit_ns: int) -> int:
    return round(value * unit_ns)


def scenario(options: Any) -> ServerScenario:
    """The scenario that validated options describe.

    Raises:
        ConfigErrors: Options contradict each other or can't be read; all of them together.
    """
    errors: list[AiperfError] = []
    odds = [Odds(Faults(status=500), options.fail_rate)] if options.fail_rate else []
    for spec in options.faults:
        try:
            odds.append(parse_odds(spec))
        except FaultError as exc:
            errors.append(UsageError(f"--fault {spec}: {exc}", "append @SHARE to hit only a share of the requests"))
    errors += _contradictions(options)
    tls = _tls(options.tls_cert, options.tls_key, errors)
    drafts = _drafts(options.spec_decode, errors)
    answers = _answers(options, errors)
    if errors:
        raise ConfigErrors(errors)
    return ServerScenario(
        host=options.host,
        port=options.port, unix=options.unix,
        tls=tls,
        models=tuple(dict.fromkeys(options.models)),
        seed=options.seed,
        truth_log=options.truth_log,
        truth_bodies=options.truth_bodies,
        engine=_engine(options),
        max_context=options.max_context,
        tokens=options.tokens,
        stop_tokens=options.stop_tokens,
        reasoning_tokens=options.reasoning_tokens,
        tokens_per_chunk=options.tokens_per_chunk,
        drafts=drafts,
        request_metrics=options.request_metrics,
        lines=options.lines,
        framing=options.framing,
        odds=tuple(odds),
        retry_after_s=options.retry_after_s,
        not_found=options.not_found,
        ready_after_ns=_ns(options.ready_after_s, 1_000_000_000),
        ready_after_requests=options.ready_after_requests,
        metrics=options.metrics,
        metrics_lag_s=options.metrics_lag_s,
        answers=answers,
        gpus=_gpus(options),
        film_ns=_ns(options.film_ms, 1_000_000),
        film_bytes=options.film_bytes,
        tenant_rate=options.tenant_rate,
    )


def _engine(options: Any) -> EngineModel:
    return EngineModel(
        prefill_ns=_ns(options.prefill_us_per_token, 1000),
        prefill_chunk=options.prefill_chunk,
        decode_ns=_ns(options.decode_ms, 1_000_000),
        decode_batch_ns=_ns(options.decode_batch_us, 1000),
        max_running=options.max_running,
        max_queue=options.max_queue,
        block_size=options.block_size,
        cache_blocks=options.cache_blocks,
        first_token_ns=None if options.first_token_ms is None else _ns(options.first_token_ms, 1_000_000),
        jitter=options.jitter,
        freeze_every_ns=_ns(options.freeze_every_s or 0, 1_000_000_000),
        freeze_for_ns=_ns(options.freeze_for_s or 0, 1_000_000_000),
        slowdown=_slowdown(options),
    )


def _slowdown(options: Any) -> Slowdown:
    if options.slow_for_s is None:
        return NEVER
    return Slowdown(_ns(options.slow_from_s, 1_000_000_000), _ns(options.slow_for_s, 1_000_000_000), options.slow_by)


def _gpus(options: Any) -> GpuScenario:
    gone_ns = None if options.gpu_gone_after_s is None else _ns(options.gpu_gone_after_s, 1_000_000_000)
    return GpuScenario(
        options.gpus, options.mig, gone_ns, options.gpu_xid or 0, _ns(options.gpu_xid_after_s, 1_000_000_000),
        _slowdown(options),
    )  # fmt: skip


def _contradictions(options: Any) -> list[AiperfError]:
    """One error for each pair of options that can't both hold."""
    errors: list[AiperfError] = []
    every, duration = options.freeze_every_s, options.freeze_for_s
    if (every is None) != (duration is None):
        given, other = ("--freeze-every", "--freeze-for") if duration is None else ("--freeze-for", "--freeze-every")
        why = "one says how often the engine freezes, the other how long"
        errors.append(ConfigError(f"{given} needs {other}: {why}", f"add {other}"))
    elif every is not None and duration is not None and duration >= every:
        errors.append(
            ConfigError(
                f"--freeze-for {duration:g} leaves no time to work in a period of --freeze-every {every:g} s",
                "make it shorter than the period",
            )
        )
    errors += _slow_contradictions(options)
    if options.cache_blocks and options.max_context < options.block_size:
        errors.append(ConfigError(f"--block-size {options.block_size} is larger than --max-context {options.max_context}"))
    for flag, value in (("--mig", options.mig), ("--gpu-gone-after", options.gpu_gone_after_s), ("--gpu-xid", options.gpu_xid)):
        if value and not options.gpus:
            errors.append(ConfigError(f"{flag} {value:g} needs GPUs", "add --gpus 1"))
    for flag, tokens in (("--tokens", options.tokens), ("--reasoning-tokens", options.reasoning_tokens)):
        if tokens >= options.max_context:
            errors.append(ConfigError(f"{flag} {tokens} leaves no room for a prompt in --max-context {options.max_context}"))
    return errors


def _slow_contradictions(options: Any) -> list[AiperfError]:
    """An error where one of the options of a slow engine lacks another."""
    given = {
        "--slow-from": "slow_from_s" in options.fields_set, "--slow-for": options.slow_for_s is not None,
        "--slow-by": options.slow_by is not None,
    }  # fmt: skip
    missing = [flag for flag in ("--slow-for", "--slow-by") if not given[flag]]
    if not missing or not any(given.values()):
        return []
    typed = " and ".join(flag for flag, is_given in given.items() if is_given)
    verb, wanted = "need" if " and " in typed else "needs", " and ".join(missing)
    return [ConfigError(f"{typed} {verb} {wanted}: a slow engine has a duration and a factor", f"add {wanted}")]


def _drafts(given: str | None, errors: list[AiperfError]) -> Drafts | None:
    if given is None:
        return None
    try:
        return parse_drafts(given)
    except ValueError:
        wanted = f"from 1 to {MOST_DRAFTS} draft tokens a step, and a rate from 0 to 1 behind a colon: 3:0.7"
        errors.append(ConfigError(f"--spec-decode {given} can't be read", wanted))
        return None


def _answers(options: Any, errors: list[AiperfError]) -> KnownAnswers:
    known: list[KnownAnswer] = []
    if options.answers is None:
        needing = {"right": "--right", "answer_form": "--answer-form"}
        errors += [
            ConfigError(f"{flag} needs --answers: without it nothing is known", f"add --answers FILE, or drop {flag}")
            for field, flag in needing.items() if field in options.fields_set
        ]  # fmt: skip
    else:
        try:
            known = read_answers(options.answers)
        except UsageError as error:
            errors.append(error)
    return KnownAnswers(known, options.right, options.answer_form, options.seed)


def _tls(cert: Path | None, key: Path | None, errors: list[AiperfError]) -> ssl.SSLContext | None:
    if cert is None:
        if key is not None:
            errors.append(ConfigError("--tls-key needs --tls-cert: a key without a certificate serves nothing"))
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as exc:
        given = f"--tls-cert {cert}" + (f" with --tls-key {key}" if key else "")
        hint = "give PEM files" if key else "give PEM files; the key may stand in the same file or in --tls-key"
        errors.append(ConfigError(f"{given} can't be used: {exc}", hint))
    return context
