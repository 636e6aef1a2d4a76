"""From validated options to a Plan: the checks that need to see several options, and the defaults that depend on others.

All configuration errors of a command are collected and reported together; every message names the flag as it was typed.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from aiperf import __version__, environment
from aiperf.descriptor import Descriptor, PluginRef, canonical
from aiperf.endpoint import Capabilities
from aiperf.errors import AiperfError, ConfigError, ConfigErrors
from aiperf.model import names
from aiperf.plan import PhasePlan, Plan, Secrets, TlsPlan
from aiperf.settings import Settings

if TYPE_CHECKING:
    from aiperf.options import KernelOptions
    from aiperf.registry import Registry

log = logging.getLogger(__name__)

NS_PER_S = 1_000_000_000
RATE_PER_WORKER = 20_000
"""Requests/s that one worker carries with time to spare."""
SESSIONS_PER_WORKER = 5_000
_GRACE_S = 30.0
_PLACEHOLDER_MODELS = ("mock_model", "test_model", "fake_model")
_ENDINGS = re.compile(
    r"(_server_metrics\.(parquet|jsonl|json|csv)|_network_latency\.jsonl|_gpu_telemetry\.jsonl|_timeslices\.(csv|json)"
    r"|_console\.txt|_raw\.jsonl|_arrivals\.jsonl|\.parquet|\.csv|\.json|\.jsonl)$"
)
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def plan(settings: Settings, registry: Registry) -> tuple[Plan, Secrets]:
    """The run these settings ask for, and what must not be written down.

    Raises:
        ConfigErrors: Everything that is wrong with them.
    """
    return _Configuration(settings, registry).plan()


class _Configuration:
    """One command's settings on their way to a plan; *errors* collects what is wrong."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.settings, self.registry = settings, registry
        self.kernel: KernelOptions = settings.kernel
        self.errors: list[AiperfError] = []

    def plan(self) -> tuple[Plan, Secrets]:
        kernel = self.kernel
        if not kernel.models:
            self.refuse("no model is given", "name the model the server serves with --model")
        endpoint = self.chosen("endpoints", kernel.endpoint_type)
        transport = self.chosen("transports", "kernel" if kernel.transport == "http" else kernel.transport)
        dataset = self.chosen("datasets", "synthetic")
        capabilities = self.capabilities()
        streaming = self.streaming(capabilities)
        self.check_load()
        self.check_processes()
        tokenizer, tokenizer_name = self.tokenizer(capabilities)
        urls = self.urls()
        path = self.path(capabilities, streaming=streaming)
        extra = self.extra_inputs()
        secrets = self.secrets()
        tls = self.tls()
        phases = self.phases()
        patterns = {phase.pattern for phase in phases if phase.pattern is not None}
        arrivals = {name: self.chosen("arrivals", name) for name in sorted(patterns)}
        schedules = {name: self.chosen("schedules", name) for name in sorted({phase.schedule for phase in phases})}
        used = [ref for ref in (endpoint, transport, dataset, tokenizer) if ref is not None]
        options = self.plugin_options(used)
        artifacts = self.artifacts(phases, capabilities)
        if self.errors:
            raise ConfigErrors(self.errors)
        assert endpoint is not None
        assert transport is not None
        assert dataset is not None
        seed = kernel.random_seed if kernel.random_seed is not None else int.from_bytes(os.urandom(8), "big")
        workers = self.workers(phases)
        made = Plan(
            run_id=os.urandom(6).hex(),
            version=__version__,
            seed=seed,
            seeded=kernel.random_seed is not None,
            command=self.settings.command,
            phases=phases,
            models=tuple(kernel.models),
            model_strategy=kernel.model_selection_strategy,
            urls=urls,
            path=path,
            endpoint=endpoint,
            transport=transport,
            dataset=dataset,
            tokenizer=tokenizer,
            tokenizer_name=tokenizer_name,
            streaming=streaming,
            timeout_ns=round(kernel.request_timeout_s * NS_PER_S),
            reuse=kernel.connection_reuse == "pooled",
            session_header=kernel.session_header,
            tls=tls,
            sampling=kernel.sampling or "sequential",
            entries=sum(phase.entries for phase in phases),
            workers=workers,
            reducers=min(workers, kernel.record_processors or max(1, math.ceil(workers / 4))),
            journal=str(artifacts / "journal"),
            artifacts=str(artifacts),
            export_prefix=self.prefix(),
            export_level=kernel.export_level,
            use_server_token_count=kernel.use_server_token_count,
            extra=extra,
            metrics=self.everything("metrics"),
            exporters=self.everything("exporters"),
            hooks=self.everything("hooks"),
            schedules={name: ref for name, ref in schedules.items() if ref is not None},
            arrivals={name: ref for name, ref in arrivals.items() if ref is not None},
            options=options,
            config=self.config(streaming=streaming, urls=urls, phases=phases, tokenizer=tokenizer_name),
            shadowed=self.shadowed(),
            verbose=kernel.verbose or kernel.extra_verbose,
        )
        self.call_hooks(made)
        if self.errors:
            raise ConfigErrors(self.errors)
        return made, secrets

    # Errors

    def refuse(self, message: str, *hints: str) -> None:
        self.errors.append(ConfigError(message, *hints))

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Errors raised inside join the others."""
        try:
            yield
        except ConfigErrors as errors:
            self.errors += errors.errors
        except AiperfError as error:
            self.errors.append(error)

    def flag(self, field: str) -> str:
        """The flag of a kernel option as typed, else its usual name."""
        model = type(self.kernel).model_fields[field]
        extra = model.json_schema_extra
        face: Any = extra["aiperf"] if isinstance(extra, dict) else {}
        flags = [flag for flag in face["flags"] if flag.startswith("--")]
        return self.settings.flag(field, min(flags, key=len))

    def exclusive(self, first: str, second: str, why: str) -> None:
        """Refuse two options together."""
        if self.given(first) and self.given(second):
            one, other = self.flag(first), self.flag(second)
            self.refuse(f"{one} and {other} exclude each other: {why}", f"keep {one} and drop {other}, or the other way round")

    def needs(self, field: str, needed: str, why: str) -> None:
        """Refuse an option without the one it depends on."""
        if self.given(field) and not self.given(needed):
            self.refuse(
                f"{self.flag(field)} needs {self.flag(needed)}: {why}", f"add {self.flag(needed)}, or drop {self.flag(field)}"
            )

    def given(self, field: str) -> bool:
        value = getattr(self.kernel, field)
        return value is not None and value is not False

    # Plugins

    def chosen(self, category: str, name: str) -> PluginRef | None:
        with self.collected():
            return self.registry.ref(category, name)
        return None

    def everything(self, category: str) -> tuple[PluginRef, ...]:
        return tuple(_ref(found) for found in self.registry.all(category))

    def capabilities(self) -> Capabilities:
        found = self.registry.find("endpoints", self.kernel.endpoint_type)
        if found is None:
            return Capabilities()
        try:
            return msgspec.convert(found.capabilities, Capabilities, strict=False)
        except msgspec.ValidationError as error:
            self.refuse(f"the manifest of {found.distribution} {found.version} is wrong: {error}")
            return Capabilities()

    def plugin_options(self, used: list[PluginRef]) -> dict[str, dict[str, Any]]:
        """Options of every plugin the run uses; those of others are refused where they were typed."""
        always = ("metrics", "exporters", "telemetry", "hooks", "uis")
        keys = {f"{ref.category}:{ref.name}" for ref in used}
        found: dict[str, dict[str, Any]] = {}
        for key, model in self.settings.plugins.items():
            typed = {
                field.rpartition(".")[2]: flag for field, flag in self.settings.typed.items() if field.rpartition(".")[0] == key
            }
            category, _, name = key.partition(":")
            if key not in keys and category not in always:
                for flag in typed.values():
                    chosen = next((ref.name for ref in used if ref.category == category), None)
                    instead = f", and this run uses {chosen!r}" if chosen else ""
                    self.refuse(f"{flag} belongs to the {category} plugin {name!r}{instead}", f"drop {flag}")
                continue
            problems: Callable[[dict[str, str]], list[str]] | None = getattr(model, "problems", None)
            for sentence in problems(typed) if problems is not None else []:
                self.refuse(*sentence.split("\n"))
            found[key] = model.model_dump(mode="json")
        return found

    def shadowed(self) -> dict[str, tuple[str, ...]]:
        return {
            f"{found.category}:{found.name}": found.shadows
            for category in self.registry.categories()
            for found in self.registry.all(category)
            if found.shadows
        }

    def call_hooks(self, made: Plan) -> None:
        if not made.hooks:
            return
        for implementation in self.registry.hooks().hook.aiperf_plan_validated.get_hookimpls():
            with self.collected():
                implementation.function(plan=made)

    # Endpoint

    def streaming(self, capabilities: Capabilities) -> bool:
        if self.kernel.streaming and not capabilities.streaming:
            if not self.errors:
                log.warning("the endpoint type %r does not stream: --streaming is switched off", self.kernel.endpoint_type)
            return False
        return self.kernel.streaming

    def urls(self) -> tuple[str, ...]:
        found = []
        for text in self.kernel.urls:
            url = text if "://" in text else f"http://{text}"
            wrong = _url_problem(url)
            if wrong is not None:
                self.refuse(f"{self.flag('urls')} {text!r} is no base URL: {wrong}", "give it as http://host:port")
            found.append(url)
        return tuple(found)

    def path(self, capabilities: Capabilities, *, streaming: bool) -> str:
        path = self.kernel.endpoint_path
        if path is None:
            path = capabilities.streaming_path if streaming and capabilities.streaming_path else capabilities.path
        elif path and not path.startswith("/"):
            self.refuse(f"{self.flag('endpoint_path')} {path!r} must start with '/'", f"write /{path}, or '' to append nothing")
        return path.replace("{model}", self.kernel.models[0] if self.kernel.models else "")

    def extra_inputs(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for text in self.kernel.extra_inputs:
            if text.lstrip().startswith("{"):
                try:
                    found = json.loads(text)
                except ValueError as error:
                    self.refuse(f"{self.flag('extra_inputs')} {text!r} is no JSON object: {error}")
                    continue
                merged |= found
                continue
            for piece in _pieces(text):
                key, colon, value = piece.partition(":")
                if not colon or not key.strip():
                    self.refuse(
                        f"{self.flag('extra_inputs')} {piece!r} is not KEY:VALUE", "write temperature:0.7, or one JSON object"
                    )
                else:
                    merged[key.strip()] = _coerced(value.strip())
        return merged

    def secrets(self) -> Secrets:
        headers: dict[str, str] = {}
        if self.kernel.api_key is not None:
            with self.collected():
                endpoint = self.registry.load("endpoints", self.kernel.endpoint_type)
                headers |= endpoint().auth_headers(self.kernel.api_key)
        for text in self.kernel.headers:
            if text.lstrip().startswith("{"):
                try:
                    pairs = list(json.loads(text).items())
                except (ValueError, AttributeError) as error:
                    self.refuse(f"{self.flag('headers')} is given JSON that is no object: {error}")
                    continue
            else:
                name, colon, value = text.partition(":")
                pairs = [(name.strip(), value.strip() if colon else None)]
            for name, value in pairs:
                if value is None or not _HEADER_NAME.fullmatch(name) or "\r" in str(value) or "\n" in str(value):
                    self.refuse(f"{self.flag('headers')} is given {name!r}, which is not NAME:VALUE", "write 'X-Team: perf'")
                    continue
                headers = {known: kept for known, kept in headers.items() if known.lower() != name.lower()}
                headers[name] = str(value)
        return Secrets(headers)

    def tls(self) -> TlsPlan:
        kernel = self.kernel
        self.exclusive("insecure", "ca_file", "the one doesn't check certificates, the other says which to trust")
        self.needs("client_key", "client_cert", "a key is the certificate's")
        for field in ("ca_file", "client_cert", "client_key"):
            path: Path | None = getattr(kernel, field)
            if path is not None and not path.is_file():
                self.refuse(f"{self.flag(field)} {path} is not there")
        with self.collected():
            verify = environment.ssl_verify() and not kernel.insecure
            return TlsPlan(
                verify,
                *(None if path is None else str(path) for path in (kernel.ca_file, kernel.client_cert, kernel.client_key)),
            )
        return TlsPlan()

    def tokenizer(self, capabilities: Capabilities) -> tuple[PluginRef | None, str | None]:
        kernel = self.kernel
        if not capabilities.tokenizes_input and not capabilities.produces_tokens:
            if kernel.tokenizer is not None:
                self.refuse(
                    f"{self.flag('tokenizer')} has no use: the endpoint type {kernel.endpoint_type!r} has no tokens", "drop it"
                )
            return None, None
        if not kernel.models:
            return None, None
        name = kernel.tokenizer or kernel.models[0]
        if (
            kernel.tokenizer is None
            and canonical(name) in _PLACEHOLDER_MODELS
            and "builtin" in self.registry.names("tokenizers")
        ):
            log.warning("%s is a placeholder: counting with the builtin tokenizer", name)
            name = "builtin"
        if canonical(name) in self.registry.names("tokenizers"):
            return self.chosen("tokenizers", name), name
        for found in self.registry.all("tokenizers"):
            if found.capabilities.get("any_name"):
                return _ref(found), name
        self.refuse(
            f"no installed tokenizer package opens {name!r}",
            f"installed: {names(self.registry.names('tokenizers'))}",
            "name one with --tokenizer; 'builtin' needs no download",
        )
        return None, None

    # Load

    def check_load(self) -> None:
        kernel = self.kernel
        self.exclusive("request_count", "session_count", "both say when to stop")
        self.exclusive("warmup_request_count", "warmup_session_count", "both say when the warmup stops")
        self.needs("benchmark_grace_s", "benchmark_duration_s", "the grace period follows the duration")
        self.needs("warmup_grace_s", "warmup_duration_s", "the grace period follows the duration")
        self.needs("arrival_pattern", "request_rate", "without a rate requests follow free slots")
        self.needs("arrival_smoothness", "request_rate", "without a rate requests follow free slots")
        if kernel.arrival_pattern == "concurrency_burst":
            self.refuse(
                f"{self.flag('arrival_pattern')} concurrency_burst means no rate", f"drop it, and {self.flag('request_rate')}"
            )
        elif kernel.arrival_smoothness is not None and kernel.arrival_pattern not in (None, "gamma"):
            self.refuse(
                f"{self.flag('arrival_smoothness')} shapes gamma arrivals, and {self.flag('arrival_pattern')} is {kernel.arrival_pattern}",
                f"pass {self.flag('arrival_pattern')} gamma, or drop {self.flag('arrival_smoothness')}",
            )
        for field in ("request_count", "session_count"):
            count = getattr(kernel, field)
            if kernel.concurrency is not None and count is not None and kernel.concurrency > count:
                self.refuse(
                    f"{self.flag('concurrency')} {kernel.concurrency} can never be reached with {self.flag(field)} {count}",
                    f"lower {self.flag('concurrency')}, or raise {self.flag(field)}",
                )
        triggers = ("warmup_request_count", "warmup_session_count", "warmup_duration_s")
        if not any(self.given(field) for field in triggers):
            shaping = ("warmup_concurrency", "warmup_request_rate", "warmup_arrival_pattern")
            for field in shaping:
                if self.given(field):
                    self.refuse(
                        f"{self.flag(field)} has nothing to shape: no warmup was asked for",
                        f"add {names([self.flag(trigger) for trigger in triggers]).replace(' and ', ' or ')}, or drop {self.flag(field)}",
                    )
        elif kernel.warmup_arrival_pattern is not None and kernel.warmup_request_rate is None and kernel.request_rate is None:
            self.refuse(
                f"{self.flag('warmup_arrival_pattern')} needs a rate", f"add {self.flag('warmup_request_rate')}, or drop it"
            )

    def check_processes(self) -> None:
        self.exclusive("zmq_host", "zmq_ipc_path", "control messages go one way or the other")
        with self.collected():
            environment.check()

    def phases(self) -> tuple[PhasePlan, ...]:
        """Warmup, where it was asked for, then profiling.  They use different entries of the data set."""
        kernel = self.kernel
        main = self.profiling()
        entries = kernel.entries or main.session_count or main.request_count or 100
        main = msgspec.structs.replace(main, entries=entries)
        if not any(self.given(field) for field in ("warmup_request_count", "warmup_session_count", "warmup_duration_s")):
            return (main,)
        rate = kernel.warmup_request_rate or kernel.request_rate
        pattern = kernel.warmup_arrival_pattern or self.pattern() if rate is not None else None
        concurrency = kernel.warmup_concurrency or kernel.concurrency
        if concurrency is None and rate is None:
            concurrency = 1
        duration = kernel.warmup_duration_s
        warmup = PhasePlan(
            name="warmup",
            kind="warmup",
            index=0,
            schedule="request_rate" if rate is not None else "burst",
            request_count=kernel.warmup_request_count,
            session_count=kernel.warmup_session_count,
            duration_ns=None if duration is None else round(duration * NS_PER_S),
            grace_ns=_grace_ns(kernel.warmup_grace_s),
            concurrency=concurrency,
            rate=rate,
            pattern=pattern,
            smoothness=kernel.arrival_smoothness or 1.0,
            first_entry=entries,
            entries=kernel.warmup_session_count or kernel.warmup_request_count or min(entries, 100),
        )
        return warmup, msgspec.structs.replace(main, index=1)

    def profiling(self) -> PhasePlan:
        kernel = self.kernel
        rate, concurrency = kernel.request_rate, kernel.concurrency
        if rate is None and concurrency is None:
            concurrency = 1
        elif rate is not None and concurrency is None and not self.errors:
            log.info("a rate without %s has no ceiling: a slow server will see requests pile up", self.flag("concurrency"))
        count, sessions, duration = kernel.request_count, kernel.session_count, kernel.benchmark_duration_s
        if count is None and sessions is None and duration is None:
            count = 10 if rate is not None else max(10, 2 * (concurrency or 1))
            if not self.errors:
                log.warning("no stop condition is given: stopping after %d requests (%s)", count, self.flag("request_count"))
        grace = _GRACE_S if kernel.benchmark_grace_s is None else kernel.benchmark_grace_s
        return PhasePlan(
            name="profiling",
            kind="profiling",
            index=0,
            schedule="request_rate" if rate is not None else "burst",
            request_count=count,
            session_count=sessions,
            duration_ns=None if duration is None else round(duration * NS_PER_S),
            grace_ns=_grace_ns(grace) if duration is not None else None,
            concurrency=concurrency,
            rate=rate,
            pattern=self.pattern() if rate is not None else None,
            smoothness=kernel.arrival_smoothness or 1.0,
        )

    def pattern(self) -> str:
        return self.kernel.arrival_pattern or ("gamma" if self.kernel.arrival_smoothness is not None else "poisson")

    def workers(self, phases: tuple[PhasePlan, ...]) -> int:
        """From the load; ``AIPERF_WORKERS`` forces a number, within the concurrency."""
        most = self.kernel.workers_max or max(1, min(math.floor(0.75 * (os.cpu_count() or 1)) - 1, 32))
        wanted = 1
        for phase in phases:
            wanted = max(
                wanted,
                math.ceil((phase.rate or 0) / RATE_PER_WORKER),
                math.ceil((phase.concurrency or 0) / SESSIONS_PER_WORKER),
            )
        forced = environment.whole("AIPERF_WORKERS", 1, 1024)
        count = forced or min(most, wanted)
        ceilings = [phase.concurrency for phase in phases if phase.concurrency is not None]
        return max(1, min([count, *ceilings]) if forced is None else count)

    # Output

    def prefix(self) -> str | None:
        given = self.kernel.export_prefix
        if given is None:
            return None
        name = _ENDINGS.sub("", Path(given).name)
        if not name:
            self.refuse(f"{self.flag('export_prefix')} {given!r} names no file", "give a name such as run1")
        return name

    def artifacts(self, phases: tuple[PhasePlan, ...], capabilities: Capabilities) -> Path:
        """The results' directory, checked but not made."""
        kernel = self.kernel
        directory = kernel.artifact_dir
        flag = self.flag("artifact_dir")
        if directory is None:
            directory = Path("artifacts") / self.automatic_name(phases[-1], capabilities)
        directory = directory.absolute()
        self.prefix()
        existing = directory
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        if not existing.is_dir():
            self.refuse(f"{flag} {directory} can't be a directory: {existing} is a file", "choose another directory")
        elif not os.access(existing, os.W_OK | os.X_OK):
            self.refuse(f"{flag} {directory} can't be written: no permission in {existing}", "choose another directory")
        return directory

    def automatic_name(self, phase: PhasePlan, capabilities: Capabilities) -> str:
        models = self.kernel.models or ["model"]
        model = models[0].replace("/", "_") + ("_multi" if len(models) > 1 else "")
        stimulus = []
        if phase.concurrency is not None:
            stimulus.append(f"concurrency{phase.concurrency}")
        if phase.rate is not None:
            stimulus.append(f"request_rate{float(phase.rate)}")
        return "-".join((model, capabilities.service_kind, self.kernel.endpoint_type, *stimulus))

    def config(
        self, *, streaming: bool, urls: tuple[str, ...], phases: tuple[PhasePlan, ...], tokenizer: str | None
    ) -> dict[str, Any]:
        """What was set or derived, by section; neither keys nor header values."""
        kernel, typed = self.kernel, self.settings.typed
        plugins = {
            key: {field: value for field, value in model.model_dump(mode="json").items() if f"{key}.{field}" in typed}
            for key, model in self.settings.plugins.items()
        }
        sections: dict[str, Any] = {
            "models": {"items": list(kernel.models), "strategy": kernel.model_selection_strategy},
            "endpoint": {
                "type": kernel.endpoint_type,
                "urls": [_without_secrets(url) for url in urls],
                "streaming": streaming,
                "path": kernel.endpoint_path,
                "timeout": kernel.request_timeout_s if "request_timeout_s" in typed else None,
                "transport": kernel.transport if "transport" in typed else None,
                "use_server_token_count": kernel.use_server_token_count or None,
            },
            "phases": [_without_none(msgspec.to_builtins(phase)) for phase in phases],
            "tokenizer": {"name": tokenizer},
            "artifacts": {"prefix": kernel.export_prefix, "level": kernel.export_level},
            "plugins": {key: found for key, found in plugins.items() if found},
            "random_seed": kernel.random_seed,
        }
        redacted: dict[str, Any] = _without_none(sections)
        return redacted


def _ref(found: Descriptor) -> PluginRef:
    return PluginRef(found.category, found.name, found.value, found.distribution, found.version)


def _grace_ns(seconds: float | None) -> int | None:
    return None if seconds is None or math.isinf(seconds) else round(seconds * NS_PER_S)


def _url_problem(url: str) -> str | None:
    if any(letter.isspace() for letter in url):
        return "it has white space"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return str(error).lower()
    if parts.scheme not in ("http", "https"):
        return f"its scheme is {parts.scheme!r}, and only http and https are known"
    if not parts.hostname:
        return "it names no host"
    return "its port must be 1 to 65535" if port == 0 else None


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        parts = parts._replace(netloc="<redacted>@" + parts.netloc.rpartition("@")[2])
    return parts._replace(query="<redacted>" if parts.query else "").geturl()


def _pieces(text: str) -> list[str]:
    """``a:1,b:2`` at its commas; a piece without a colon belongs to the value before it."""
    pieces: list[str] = []
    for piece in text.split(","):
        if pieces and ":" not in piece:
            pieces[-1] += "," + piece
        else:
            pieces.append(piece)
    return [piece for piece in pieces if piece.strip()]


def _coerced(value: str) -> Any:
    known: Mapping[str, Any] = {"true": True, "false": False, "none": None, "null": None}
    if value.lower() in known:
        return known[value.lower()]
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    if value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_none(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {}}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value
