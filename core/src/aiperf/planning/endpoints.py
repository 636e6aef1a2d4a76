"""The endpoint of a run: its capabilities, the request path, body fields, headers and the key."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from aiperf.errors import ConfigError, PluginError
from aiperf.planning import addresses
from aiperf.planning.certificates import tls_plan
from aiperf.planning.kernel_options import ConnectionReuse
from aiperf.planning.phases import NS_PER_S
from aiperf.planning.problems import Selection
from aiperf.planning.request_fields import body_fields, typed_headers
from aiperf.registry.third_party import blamed
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.headers import check_header_name, check_header_value, merged
from aiperf.sdk.plan import PluginPlan, TargetPlan


class EndpointChoice(NamedTuple):
    """The endpoint plugin.  descriptor: None where it can't be used, which is reported; then *can* is empty."""

    descriptor: Descriptor | None
    can: Capabilities


def endpoint(select: Selection) -> EndpointChoice:
    """The plugin that ``--endpoint-type`` names."""
    ref = select.chosen("endpoints", select.problems.kernel.endpoint_type, "endpoint_type")
    if ref is None:
        return EndpointChoice(None, Capabilities())
    descriptor = select.registry.descriptor("endpoints", ref.name)
    try:
        return EndpointChoice(descriptor, msgspec.convert(descriptor.capabilities, Capabilities))
    except msgspec.ValidationError as error:
        sentence = f"the manifest of {descriptor.package} is wrong about the capabilities of {descriptor.name!r}: {error}"
        select.problems.errors.append(PluginError(sentence))
        return EndpointChoice(descriptor, Capabilities())


def target_plan(
    select: Selection, choice: EndpointChoice, models: tuple[str, ...], base_urls: tuple[str, ...], weights: addresses.Weights
) -> TargetPlan:
    """Where requests go, and how."""
    kernel = select.problems.kernel
    streaming = _streaming(select, choice)
    path, extra = _path(select, choice, models, streaming=streaming), _extra_inputs(select)
    tls = tls_plan(select.problems)
    _check_usage(select, choice)
    return TargetPlan(
        models=models, model_strategy=kernel.model_selection_strategy, urls=base_urls, path=path, streaming=streaming,
        timeout_ns=round(kernel.request_timeout_s * NS_PER_S), reuse=kernel.connection_reuse is not ConnectionReuse.NEVER,
        sticky=kernel.connection_reuse is ConnectionReuse.STICKY_USER_SESSIONS, session_header=kernel.session_header, tls=tls,
        url_weights=tuple(1.0 if weight is None else weight for weight in weights),
        use_server_token_count=kernel.use_server_token_count, extra=extra, per_chunk_usage=kernel.per_chunk_usage,
    )


def models(select: Selection) -> tuple[str, ...]:
    problems = select.problems
    models = tuple(model.strip() for model in problems.kernel.models)
    if not models:
        problems.refuse("no model is given", "name the model the server serves with --model")
    elif not all(models):
        problems.refuse(f"{problems.flag('models')} is given an empty name", "name the model the server serves")
    return models


def _streaming(select: Selection, choice: EndpointChoice) -> bool:
    """Whether answers are streamed; ``--streaming`` is switched off for an endpoint that can't."""
    problems, descriptor = select.problems, choice.descriptor
    if not problems.kernel.streaming or descriptor is None or choice.can.streaming:
        return problems.kernel.streaming
    problems.warn(f"the endpoint type {descriptor.name!r} does not stream: {problems.flag('streaming')} is switched off")
    for prefill in filter(problems.given, ("prefill_concurrency", "warmup_prefill_concurrency")):
        flag = problems.flag(prefill)
        problems.refuse(
            f"{flag} needs a stream, and the endpoint type {descriptor.name!r} does not stream",
            f"drop {flag}, or choose another endpoint type",
        )
    return False


def _path(select: Selection, choice: EndpointChoice, models: tuple[str, ...], *, streaming: bool) -> str:
    """The path below the base URL."""
    problems, can = select.problems, choice.can
    given = problems.kernel.endpoint_path
    if given is not None:
        with problems.collected(problems.flag("endpoint_path")):
            return addresses.with_model(addresses.request_path(given), models)
    elif choice.descriptor is not None:
        with problems.collected(problems.flag("models")):
            return addresses.with_model(can.streaming_path if streaming and can.streaming_path else can.path, models)
    return ""


def _extra_inputs(select: Selection) -> dict[str, Any]:
    """Fields of every request body."""
    problems = select.problems
    fields: dict[str, Any] = {}
    for text in problems.kernel.extra_inputs:
        with problems.collected(problems.flag("extra_inputs")):
            fields |= body_fields(text)
    return fields


def _check_usage(select: Selection, choice: EndpointChoice) -> None:
    problems, field = select.problems, "per_chunk_usage"
    problems.needs(field, ["use_server_token_count"], "without it the counts would have no use")
    problems.needs(field, ["streaming"], "a whole answer has one usage")
    if problems.given(field) and choice.descriptor is not None and not choice.can.per_chunk_usage:
        flag = problems.flag(field)
        problems.refuse(
            f"{flag} can't be had: the endpoint type {choice.descriptor.name!r} has no word for it",
            f"drop {flag}, or choose an endpoint type that has (chat)",
        )


def headers(select: Selection, descriptor: Descriptor | None, plugins: PluginPlan) -> dict[str, str]:
    """The headers of ``--header``, and the API key as the endpoint sends it; the key wins."""
    problems, kernel = select.problems, select.problems.kernel
    with problems.collected(problems.flag("session_header")):
        check_header_name(kernel.session_header)
    headers: dict[str, str] = {}
    for text in kernel.headers:
        with problems.collected(problems.flag("headers")):
            headers = merged(headers, typed_headers(text))
    if descriptor is None:
        return headers
    with problems.collected(problems.flag("api_key") if kernel.api_key is not None else ""):
        dialect = _dialect(select, descriptor, plugins.options_of(plugins.endpoint))
        if kernel.api_key is None:
            return headers
        key = kernel.api_key.strip()
        if not key:
            raise ConfigError("the key is empty", "is the variable it comes from set?")
        auth = dialect.auth_headers(key)
        for name, value in auth.items():
            check_header_value(name, value)
        twice = sorted({name.lower() for name in auth} & {name.lower() for name in headers})
        if twice:
            flags = f"{problems.flag('headers')} and {problems.flag('api_key')}"
            problems.warn(f"{flags} both set {twice[0]}: the key is sent")
        return merged(headers, auth)
    return headers


def _dialect(select: Selection, descriptor: Descriptor, options: Any) -> Endpoint:
    """The endpoint itself, created early so that its errors are reported before any process is started."""
    plugin = select.registry.load("endpoints", descriptor.name)
    with blamed(descriptor, "can't be used"):
        dialect: Endpoint = plugin(options)
    return dialect
