"""From validated options to a Plan: plugins by name, checks that need to see several options, and dependent defaults.

All configuration errors of a command are collected and reported together; every message names the flag as it was typed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from aiperf import __version__, addresses, environment, outputs, pairs, sizing, urls
from aiperf.argv import REDACTED
from aiperf.certificates import tls_plan
from aiperf.descriptor import Descriptor, PluginRef, canonical
from aiperf.endpoint import Capabilities, Endpoint
from aiperf.errors import AiperfError, ConfigError, PluginError
from aiperf.findings import Findings
from aiperf.hookcalls import equipped
from aiperf.model import names
from aiperf.modes import NO_PATTERN
from aiperf.phases import NS_PER_S, phases, section
from aiperf.plan import PhasePlan, Plan, Secrets
from aiperf.selection import Selection, key_of, ref_to
from aiperf.sources import Source, source

if TYPE_CHECKING:
    from aiperf.registry import Registry
    from aiperf.settings import Settings

_PLACEHOLDER_MODELS = ("mock_model", "test_model", "fake_model")
_OFFLINE = "builtin"


def plan(settings: Settings, registry: Registry) -> tuple[Plan, Secrets]:
    """The run these settings ask for, and what must not be written down.

    Nothing is started, written or sent; only the endpoint's package is imported.

    Raises:
        ConfigErrors: Everything that is wrong with them.
    """
    return _Configuration(settings, registry).plan()


class _Configuration:
    """One command's settings on their way to a plan."""

    def __init__(self, settings: Settings, registry: Registry) -> None:
        self.settings, self.registry = settings, registry
        self.kernel = settings.kernel
        self.findings = Findings(settings)
        self.select = Selection(self.findings, registry)

    def plan(self) -> tuple[Plan, Secrets]:
        kernel, findings = self.kernel, self.findings
        models = self.models()
        endpoint = self.endpoint()
        transport = self.select.chosen("transports", kernel.transport, "transport")
        origin = source(self.select, self.registry)
        planned = phases(findings, self.shaped, promoted=self.promoted(origin))
        arrivals, ramps = self.arrivals(planned), self.ramps(planned)
        sampling, samplers = self.samplers()
        names = sorted({phase.schedule for phase in planned})
        schedules = {name: ref for name in names if (ref := self.select.chosen("schedules", name)) is not None}
        tokenizer, tokenizer_name = self.tokenizer(endpoint, models)
        grader, ui = self.grader(endpoint), self.ui()
        engine = self.select.chosen("engines", kernel.engine, "engine")
        options = self.select.options()
        streaming = self.streaming(endpoint)
        base_urls, weights = urls.given(findings)
        path = self.path(endpoint, models, streaming=streaming)
        extra, tls = self.extra_inputs(), tls_plan(findings)
        hidden = self.secret_options(options)
        held = {key: {field: options[key][field] for field in fields} for key, fields in hidden.items()}
        secrets = Secrets(self.headers(endpoint, options), held)
        self.check_processes()
        self.check_readiness()
        artifacts = self.artifacts(models, endpoint, planned[-1])
        prefix = self.prefix()
        self.check_trace()
        self.check_usage(endpoint)
        workers, reducers = self.processes(engine, planned)
        url_strategy = urls.strategy(self.select, weights, workers)
        findings.refuse_if_any()
        assert endpoint is not None  # what is missing has been said
        assert transport is not None
        assert origin.dataset is not None
        made = Plan(
            run_id=os.urandom(6).hex(),
            version=__version__,
            seed=int.from_bytes(os.urandom(8), "big") if kernel.random_seed is None else kernel.random_seed,
            seeded=kernel.random_seed is not None,
            command=self.settings.command,
            phases=planned,
            models=models,
            model_strategy=kernel.model_selection_strategy,
            urls=base_urls,
            path=path,
            endpoint=ref_to(endpoint),
            transport=transport,
            dataset=origin.dataset,
            source=None if origin.path is None else str(origin.path),
            first=None if origin.path is None else kernel.entries,
            grader=grader,
            ui=ui,
            engine=engine,
            tokenizer=tokenizer,
            tokenizer_name=tokenizer_name,
            streaming=streaming,
            timeout_ns=round(kernel.request_timeout_s * NS_PER_S),
            reuse=kernel.connection_reuse != "never",
            sticky=kernel.connection_reuse == "sticky_user_sessions",
            session_header=kernel.session_header,
            tls=tls,
            # A trace is replayed in its own order.
            sampling="sequential" if planned[-1].replay is not None else sampling,
            samplers=samplers,
            url_strategy=url_strategy,
            url_weights=tuple(1.0 if weight is None else weight for weight in weights),
            delay_ratio=kernel.delay_ratio,
            failed_threshold=kernel.failed_threshold,
            entries=sum(phase.entries for phase in planned),
            workers=workers,
            reducers=reducers,
            journal=str(artifacts / "journal"),
            artifacts=str(artifacts),
            export_prefix=prefix,
            export_level=kernel.export_level,
            slice_ns=None if kernel.slice_duration_s is None else max(1, round(kernel.slice_duration_s * NS_PER_S)),
            use_server_token_count=kernel.use_server_token_count,
            extra=extra,
            metrics=self.select.everything("metrics"),
            exporters=self.select.everything("exporters"),
            hooks=self.select.everything("hooks"),
            telemetry=self.select.everything("telemetry"),
            schedules=schedules,
            arrivals=arrivals,
            ramps=ramps,
            options=options,
            secret_options=hidden,
            shadowed=self.select.shadowed(),
            verbose=kernel.verbose or kernel.extra_verbose,
            http_trace=kernel.export_http_trace,
            per_chunk_usage=kernel.per_chunk_usage,
        )
        made = msgspec.structs.replace(made, config=self.config(made, secrets))
        self.call_hooks(made)
        findings.settle()
        return made, secrets

    def promoted(self, origin: Source) -> bool:
        """Whether the input file is replayed at its recorded times without the flag."""
        findings = self.findings
        schedule = findings.flag("fixed_schedule")
        if self.kernel.fixed_schedule and origin.path is not None and not origin.timestamped:
            findings.refuse(
                f"{schedule} needs recorded times, and the first row of {origin.path} has no 'timestamp'",
                f"add timestamps (ms), or drop {schedule}",
            )
        if findings.typed("fixed_schedule"):
            return False
        if origin.trace and origin.timestamped and not origin.explicit:
            findings.hint(f"{origin.path} has recorded times; pass --fixed-schedule to keep to them")
        return origin.promotes

    def call_hooks(self, made: Plan) -> None:
        """Give hook plugins their options, and let them refuse the plan; one that fails is reported and doesn't count."""
        if not made.hooks:
            return
        manager = self.registry.hooks()
        for ref, options in made.hooked():
            equipped(manager.get_plugin(f"hooks:{ref.name}"), options)
        for found in manager.hook.aiperf_plan_validated.get_hookimpls():
            try:
                found.function(**dict.fromkeys(found.argnames, made))
            except AiperfError as error:
                self.findings.errors.append(error)
            except Exception as error:  # noqa: BLE001  # strangers' code
                why = f"{type(error).__name__}: {error}"
                self.findings.warn(f"hook plugin {found.plugin_name}: aiperf_plan_validated failed: {why}")

    # Endpoint

    def models(self) -> tuple[str, ...]:
        models = tuple(model.strip() for model in self.kernel.models)
        if not models:
            self.findings.refuse("no model is given", "name the model the server serves with --model")
        elif not all(models):
            self.findings.refuse(f"{self.findings.flag('models')} is given an empty name", "name the model the server serves")
        return models

    def endpoint(self) -> Descriptor | None:
        ref = self.select.chosen("endpoints", self.kernel.endpoint_type, "endpoint_type")
        return None if ref is None else self.registry.descriptor("endpoints", ref.name)

    def capabilities(self, endpoint: Descriptor) -> Capabilities:
        try:
            return msgspec.convert(endpoint.capabilities, Capabilities)
        except msgspec.ValidationError as error:
            who = f"{endpoint.distribution} {endpoint.version}"
            sentence = f"the manifest of {who} is wrong about the capabilities of {endpoint.name!r}: {error}"
            self.findings.errors.append(PluginError(sentence))
            return Capabilities()

    def streaming(self, endpoint: Descriptor | None) -> bool:
        if self.kernel.streaming and endpoint is not None and not self.capabilities(endpoint).streaming:
            self.findings.warn(
                f"the endpoint type {endpoint.name!r} does not stream: {self.findings.flag('streaming')} is switched off"
            )
            for prefill in filter(self.findings.given, ("prefill_concurrency", "warmup_prefill_concurrency")):
                flag = self.findings.flag(prefill)
                self.findings.refuse(
                    f"{flag} needs a stream, and the endpoint type {endpoint.name!r} does not stream",
                    f"drop {flag}, or choose another endpoint type",
                )
            return False
        return self.kernel.streaming

    def path(self, endpoint: Descriptor | None, models: tuple[str, ...], *, streaming: bool) -> str:
        given = self.kernel.endpoint_path
        if given is not None:
            with self.findings.collected(self.findings.flag("endpoint_path")):
                return addresses.with_model(addresses.request_path(given), models)
        elif endpoint is not None:
            can = self.capabilities(endpoint)
            with self.findings.collected(self.findings.flag("models")):
                return addresses.with_model(can.streaming_path if streaming and can.streaming_path else can.path, models)
        return ""

    def extra_inputs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for text in self.kernel.extra_inputs:
            with self.findings.collected(self.findings.flag("extra_inputs")):
                found |= pairs.body_fields(text)
        return found

    def headers(self, endpoint: Descriptor | None, options: dict[str, dict[str, Any]]) -> dict[str, str]:
        """The person's headers, and the API key as the endpoint sends it; the key wins."""
        with self.findings.collected(self.findings.flag("session_header")):
            pairs.check_header_name(self.kernel.session_header)
        found: dict[str, str] = {}
        for text in self.kernel.headers:
            with self.findings.collected(self.findings.flag("headers")):
                found = pairs.merged(found, pairs.headers(text))
        if endpoint is None:
            return found
        with self.findings.collected(self.findings.flag("api_key") if self.kernel.api_key is not None else ""):
            dialect = self.dialect(endpoint, options.get(key_of(endpoint)))
            if self.kernel.api_key is None:
                return found
            key = self.kernel.api_key.strip()
            if not key:
                raise ConfigError("the key is empty", "is the variable it comes from set?")
            auth = dialect.auth_headers(key)
            for name, value in auth.items():
                pairs.check_header_value(name, value)
            twice = sorted({name.lower() for name in auth} & {name.lower() for name in found})
            if twice:
                flags = f"{self.findings.flag('headers')} and {self.findings.flag('api_key')}"
                self.findings.warn(f"{flags} both set {twice[0]}: the key is sent")
            return pairs.merged(found, auth)
        return found

    def dialect(self, endpoint: Descriptor, options: dict[str, Any] | None) -> Endpoint:
        """The endpoint itself, made early so that what is wrong with it is known before anything is started."""
        made = self.registry.load("endpoints", endpoint.name)
        try:
            dialect: Endpoint = made(None if options is None else SimpleNamespace(**options))
        except AiperfError:
            raise
        except Exception as error:  # strangers' code
            who = f"the endpoint plugin {endpoint.name!r} of {endpoint.distribution} {endpoint.version}"
            raise PluginError(f"{who} can't be used: {type(error).__name__}: {error}") from error
        return dialect

    # Tokens

    def tokenizer(self, endpoint: Descriptor | None, models: tuple[str, ...]) -> tuple[PluginRef | None, str | None]:
        kernel, findings = self.kernel, self.findings
        flag = findings.flag("tokenizer")
        nothing = None, None
        if endpoint is None or not models or not models[0]:
            return nothing
        can = self.capabilities(endpoint)
        if not can.tokenizes_input and not can.produces_tokens:
            if kernel.tokenizer is not None:
                findings.refuse(
                    f"{flag} has no use: the endpoint type {endpoint.name!r} neither takes nor gives tokens", f"drop {flag}"
                )
            return nothing
        name = models[0] if kernel.tokenizer is None else kernel.tokenizer.strip()
        if not name:
            findings.refuse(f"{flag} is given an empty name", f"write {flag} {_OFFLINE}, which needs no download")
            return nothing
        if kernel.tokenizer is None and canonical(name) in _PLACEHOLDER_MODELS and self.registry.find("tokenizers", _OFFLINE):
            findings.warn(f"{name} is a placeholder, not a model: counting with {flag} {_OFFLINE}")
            name = _OFFLINE
        opener = self.opener(name)
        if opener is None:
            self.select.missing.add("tokenizers")
            what = f"{flag} {name!r}" if kernel.tokenizer is not None else f"the tokenizer of the model {name!r}"
            installed = self.registry.names("tokenizers")
            hints = [f"installed: {', '.join(installed) or 'none'}"]
            if _OFFLINE in installed:
                hints.append(f"{flag} {_OFFLINE} counts with the o200k_base vocabulary and needs no download")
            findings.refuse(f"no installed tokenizer package opens {what}", *hints)
            return nothing
        return self.select.chosen("tokenizers", opener, "tokenizer"), name

    def opener(self, name: str) -> str | None:
        """The plugin that opens tokenizers of this name: the one called that, else one that opens any."""
        found = self.registry.find("tokenizers", name)
        if found is not None and not found.capabilities.get("any_name"):
            return found.name
        openers = [one for one in self.registry.all("tokenizers") if one.capabilities.get("any_name")]
        return max(openers, key=lambda one: one.priority).name if openers else None

    def grader(self, endpoint: Descriptor | None) -> PluginRef | None:
        if self.kernel.accuracy_grader is None:
            return None
        if endpoint is not None and not self.capabilities(endpoint).produces_tokens:
            flag = self.findings.flag("accuracy_grader")
            self.findings.refuse(
                f"{flag} needs answers in words, and the endpoint type {endpoint.name!r} gives none", f"drop {flag}"
            )
        return self.select.chosen("graders", self.kernel.accuracy_grader, "accuracy_grader")

    # Load

    def shaped(self, pattern: str) -> bool:
        """Whether ``--arrival-smoothness`` matters to the pattern; of an unknown one other things are said."""
        found = self.registry.find("arrivals", pattern)
        return found is None or bool(found.capabilities.get("smoothness"))

    def arrivals(self, planned: tuple[PhasePlan, ...]) -> dict[str, PluginRef]:
        found: dict[str, PluginRef] = {}
        for phase in planned:
            if phase.pattern is None or phase.pattern == NO_PATTERN:  # the latter has been refused
                continue
            own = phase.kind == "warmup" and self.kernel.warmup_arrival_pattern is not None
            ref = self.select.chosen("arrivals", phase.pattern, "warmup_arrival_pattern" if own else "arrival_pattern")
            if ref is not None:
                found[phase.pattern] = ref
        return found

    def ramps(self, planned: tuple[PhasePlan, ...]) -> dict[str, PluginRef]:
        """The curve of what rises, if anything does."""
        rises = any(phase.concurrency_ramp_ns or phase.prefill_ramp_ns or phase.rate_ramp_ns for phase in planned)
        ref = self.select.chosen("ramps", self.kernel.ramp, "ramp") if rises else None
        return {} if ref is None else {self.kernel.ramp: ref}

    def samplers(self) -> tuple[str, dict[str, PluginRef]]:
        """The chosen order of entries, "" where it is the data set's own; and every order there is, which that may be."""
        every = {one.name: ref_to(one) for one in self.registry.all("samplers")}
        if self.kernel.sampling is None:
            return "", every
        ref = self.select.chosen("samplers", self.kernel.sampling, "sampling")
        return "" if ref is None else ref.name, every

    def ui(self) -> PluginRef | None:
        """The live display.  Where a dashboard is asked for that isn't there, or has no terminal, the simple one serves."""
        name, terminal = self.kernel.ui, sys.stderr.isatty()
        if name is None:
            loud = self.kernel.verbose or self.kernel.extra_verbose
            return self.select.chosen("uis", "simple" if terminal or loud else "none")
        found = self.registry.find("uis", name)
        if found is None and name == "dashboard":
            self.findings.warn("no dashboard is installed; using the simple display")
        elif found is not None and found.capabilities.get("terminal") and not terminal:
            self.findings.warn(f"the display {name} needs a terminal; using the simple one")
        else:
            with self.findings.collected(self.findings.flag("ui")):
                self.registry.load("uis", name)  # its own process would notice too late that it can't be imported
            return self.select.chosen("uis", name, "ui")
        return self.select.chosen("uis", "simple")

    def processes(self, engine: PluginRef | None, planned: tuple[PhasePlan, ...]) -> tuple[int, int]:
        """Workers and reducers.  Where workers share no memory, what they would have to count together is run by one."""
        workers, reducers = sizing.processes(self.findings, planned)
        if engine is None or workers == 1 or self.registry.descriptor("engines", engine.name).capabilities.get("shares_memory"):
            return workers, reducers
        together = [phase.name for phase in planned if not phase.paced or phase.concurrency or phase.prefill_concurrency]
        if not together:
            return workers, reducers
        self.findings.warn(
            f"one worker instead of {workers}: those of the engine {engine.name} share no memory, and the limits of"
            f" {names(together)} count for all of them together"
        )
        return 1, 1

    def check_readiness(self) -> None:
        """How to wait, where nobody waits."""
        timeout = self.findings.flag("ready_timeout_s")
        for flag in (self.findings.flag(field) for field in ("ready_mode", "ready_interval_s") if self.findings.typed(field)):
            if not self.kernel.ready_timeout_s:
                self.findings.refuse(f"{flag} needs {timeout}: without it nobody waits", f"add {timeout}, or drop {flag}")

    def check_processes(self) -> None:
        self.findings.exclusive("zmq_host", "zmq_ipc_path", "control messages go one way or the other")
        ipc = self.kernel.zmq_ipc_path
        if ipc is not None and ipc.exists() and not ipc.is_dir():
            self.findings.refuse(f"{self.findings.flag('zmq_ipc_path')}: {ipc} is a file; it must be a directory")
        with self.findings.collected():
            environment.check()

    # Output

    def artifacts(self, models: tuple[str, ...], endpoint: Descriptor | None, profiling: PhasePlan) -> Path:
        """The results' directory, checked but not made."""
        directory = self.kernel.artifact_dir
        if directory is None:
            if not models or endpoint is None:
                return Path("artifacts")
            kind = self.capabilities(endpoint).service_kind
            directory = Path("artifacts") / outputs.automatic_name(models, kind, endpoint.name, profiling)
        with self.findings.collected(self.findings.flag("artifact_dir")):
            outputs.check_directory(directory.absolute())
        return directory.absolute()

    def check_trace(self) -> None:
        flag, level = self.findings.flag("export_http_trace"), self.findings.flag("export_level")
        if self.kernel.export_http_trace and self.kernel.export_level == "summary":
            self.findings.refuse(
                f"{flag} belongs to the per-request file, which {level} summary leaves out",
                f"pass {level} records, or drop {flag}",
            )

    def check_usage(self, endpoint: Descriptor | None) -> None:
        findings, asked = self.findings, "per_chunk_usage"
        findings.needs(asked, ["use_server_token_count"], "without it the counts would have no use")
        findings.needs(asked, ["streaming"], "a whole answer has one usage")
        if findings.given(asked) and endpoint is not None and not self.capabilities(endpoint).per_chunk_usage:
            flag = findings.flag(asked)
            findings.refuse(
                f"{flag} can't be had: the endpoint type {endpoint.name!r} has no word for it",
                f"drop {flag}, or choose an endpoint type that has (chat)",
            )

    def prefix(self) -> str | None:
        if self.kernel.export_prefix is not None:
            with self.findings.collected(self.findings.flag("export_prefix")):
                return outputs.export_base(self.kernel.export_prefix)
        return None

    def config(self, made: Plan, secrets: Secrets) -> dict[str, Any]:
        """What was set or derived, in the sections of the result files; neither keys nor header values."""
        kernel = self.kernel
        plugins = {key: found for key in made.options if (found := self.typed_options(key))}
        sections: dict[str, Any] = {
            "models": {
                "items": [{"name": model} for model in made.models],
                "strategy": kernel.model_selection_strategy if len(made.models) > 1 else None,
            },
            "endpoint": {
                "type": made.endpoint.name,
                "urls": [addresses.without_secrets(url) for url in made.urls],
                "path": made.path,
                "streaming": made.streaming,
                "transport": made.transport.name,
                "timeout": self.typed("request_timeout_s"),
                "connection_reuse": self.typed("connection_reuse"),
                "session_header": self.typed("session_header"),
                "use_server_token_count": made.use_server_token_count or None,
                "per_chunk_usage": made.per_chunk_usage or None,
                "headers": dict.fromkeys(secrets.headers, REDACTED),
                "extra": made.extra,
                "tls": {"insecure": True} if not made.tls.verify else None,
            },
            "datasets": [
                {
                    "name": "main",
                    "type": made.dataset.name if made.source is None else "file",
                    "format": None if made.source is None else made.dataset.name,
                    "path": made.source,
                    "entries": made.entries,
                    "sampling": made.sampling or None,
                }
            ],
            "phases": [section(phase) for phase in made.phases],
            "artifacts": {
                "dir": self.typed("artifact_dir"),
                "prefix": made.export_prefix,
                "records": False if made.export_level == "summary" else ["jsonl"],
                "raw": made.export_level == "raw" or None,
                "trace": made.http_trace or None,
                "slice_duration": kernel.slice_duration_s,
            },
            "tokenizer": {"name": made.tokenizer_name},
            "accuracy": {"grader": None if made.grader is None else made.grader.name},
            "plugins": plugins,
            "runtime": {
                "workers": made.workers,
                "record_processors": made.reducers,
                "ui": kernel.ui,
                "engine": self.typed("engine"),
            },
        }
        kept: dict[str, Any] = _without_none(sections)
        return kept

    def typed(self, field: str) -> Any:
        """A kernel option's value if it was typed, else None."""
        value = getattr(self.kernel, field) if field in self.settings.typed else None
        return str(value) if isinstance(value, Path) else value

    def secret_options(self, options: dict[str, dict[str, Any]]) -> dict[str, tuple[str, ...]]:
        """Of plugins that have any, the fields whose values must not be written."""
        hidden = {key: tuple(sorted(self.secret_fields(key) & found.keys())) for key, found in options.items()}
        return {key: fields for key, fields in hidden.items() if fields}

    def secret_fields(self, key: str) -> set[str]:
        category, _, name = key.partition(":")
        found = self.registry.find(category, name)
        return {spec.field for spec in found.options if spec.secret} if found is not None else set()

    def typed_options(self, key: str) -> dict[str, Any]:
        """A plugin's options as typed, secrets redacted."""
        secret = self.secret_fields(key)
        values = self.settings.plugins[key].model_dump(mode="json")
        return {
            field: REDACTED if field in secret else value
            for field, value in values.items()
            if f"{key}.{field}" in self.settings.typed
        }


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_none(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {}}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value
