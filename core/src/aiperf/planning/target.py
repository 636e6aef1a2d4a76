"""The target of a run: the plugin that spreads sessions over base URLs, the endpoint with its path, body fields and headers,
and the key.

The parts stand in one module, because the checks of each name the flags of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from aiperf import environment
from aiperf.errors import ConfigError, PluginError
from aiperf.planning import tls
from aiperf.planning.addresses import Weights, control_urls
from aiperf.planning.kernel_options import ConnectionReuse
from aiperf.planning.phases import NS_PER_S
from aiperf.planning.problems import Draft
from aiperf.planning.request_fields import body_fields, typed_headers
from aiperf.redaction import redact
from aiperf.registry.third_party import blamed, load
from aiperf.sdk.cache_bust import CacheBust
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.headers import check_header_name, check_header_value, merged, undecodable
from aiperf.sdk.model import names
from aiperf.sdk.plan import PhasePlan, PluginPlan, TargetPlan


def url_strategy(draft: Draft, weights: Weights, workers: int) -> PluginRef | None:
    """The plugin that spreads sessions over several URLs; None for a single URL, or after a reported error."""
    registry = draft.registry
    weighted = any(weight is not None for weight in weights)
    if len(weights) < 2 and not weighted and not draft.typed("url_strategy"):
        return None
    ref = draft.chosen("url_strategies", draft.kernel.url_strategy, "url_strategy")
    if ref is None:
        return None
    can = registry.descriptor("url_strategies", ref.name).capabilities
    named = f"{draft.flag('url_strategy')} {ref.name}"
    if weighted and not can.get("weights"):
        choices = [one.name for one in registry.all("url_strategies") if one.capabilities.get("weights")]
        draft.refuse(
            f"{draft.flag('urls')} gives weights, and {named} has no use for them",
            f"choose {' or '.join(choices)}, or drop the weights (write %3D for a '=' that belongs to a path)",
        )
    if can.get("uses_load") and workers > 1:
        one = f"{draft.flag('workers_max')} 1"
        draft.warn(f"{named} goes by what each of the {workers} workers has in flight; {one} would count all")
    return ref if len(weights) > 1 else None


def request_path(given: str) -> str:
    """``--endpoint``: the path below the base URL; "" appends nothing.

    Raises:
        ConfigError: It doesn't start with a slash, or can't be in a request line.
    """
    shown = redact(given)
    if given and not given.startswith("/"):
        raise ConfigError(f"{shown!r} must start with '/'", f"write /{shown}, or '' to append nothing")
    if not given.isascii() or any(letter.isspace() or not letter.isprintable() for letter in given):
        raise ConfigError(f"{shown!r} can't be part of a URL", "percent-encode what is not ASCII, and white space")
    return given.partition("#")[0]


def with_model(path: str, models: tuple[str, ...]) -> str:
    """The path with ``{model}`` replaced; of several models each request has its own."""
    return path.replace("{model}", quote(models[0], safe="")) if len(models) == 1 else path


class EndpointChoice(NamedTuple):
    """The endpoint plugin and the models.  descriptor: None where it can't be used, which is reported; then *can* is empty."""

    descriptor: Descriptor | None
    can: Capabilities
    models: tuple[str, ...]


def endpoint(draft: Draft) -> EndpointChoice:
    """The plugin that ``--endpoint-type`` names, and the models of ``--model``."""
    ref = draft.chosen("endpoints", draft.kernel.endpoint_type, "endpoint_type")
    models = tuple(model.strip() for model in draft.kernel.models)
    if not models:
        draft.refuse("no model is given", "name the model the server serves with --model")
    elif not all(models):
        draft.refuse(f"{draft.flag('models')} is given an empty name", "name the model the server serves")
    if ref is None:
        return EndpointChoice(None, Capabilities(), models)
    descriptor = draft.registry.descriptor("endpoints", ref.name)
    try:
        can = msgspec.convert(descriptor.capabilities, Capabilities)
        streaming = draft.kernel.streaming and can.streaming
        return EndpointChoice(descriptor, replace(can, produces_tokens=can.gives_tokens(streaming=streaming)), models)
    except msgspec.ValidationError as error:
        sentence = f"the manifest of {descriptor.package} is wrong about the capabilities of {descriptor.name!r}: {error}"
        draft.errors.append(PluginError(sentence))
        return EndpointChoice(descriptor, Capabilities(), models)


def extra_inputs(draft: Draft, choice: EndpointChoice) -> dict[str, Any]:
    """The fields of every body.  Those that the endpoint takes become its options instead."""
    extra: dict[str, Any] = {}
    for text in draft.kernel.extra_inputs:
        with draft.collected(draft.flag("extra_inputs")):
            extra |= body_fields(text)
    tools = extra.get("tools")
    listed = isinstance(tools, list) and all(isinstance(tool, dict) for tool in tools)
    if choice.can.verbatim and tools is not None and not listed:
        draft.refuse(
            f"{draft.flag('extra_inputs')} gives tools that are no list of objects: {tools!r}",
            'write them as the API has them: --extra-inputs \'{"tools": [{…}]}\'',
        )
    taken = {name: extra.pop(name) for name in choice.can.takes if name in extra}
    if taken and choice.descriptor is not None:
        with draft.collected():
            _become_options(draft, choice.descriptor, taken)
    return extra


def _become_options(draft: Draft, endpoint: Descriptor, taken: dict[str, Any]) -> None:
    from aiperf.registry.option_specs import validate

    options_class, settings, key = draft.registry.load_options_model(endpoint), draft.settings, endpoint.key
    if options_class is None:
        raise PluginError(f"the manifest of {endpoint.package} takes {names(list(taken))} and has no options_model")
    typed = {name: f"{draft.flag('extra_inputs')} {name}" for name in taken}
    given = settings.plugins.get(key)
    values = {} if given is None else {name: getattr(given, name) for name in given.fields_set}
    for name in values.keys() & taken.keys():
        draft.refuse_both(settings.flag(f"{key}.{name}", name), typed[name], "they are the same option", "keep one of them")
    for name, value in taken.items():
        values[name] = value if isinstance(value, str | bool | list) else msgspec.json.encode(value).decode()
    options, errors = validate(options_class, endpoint.options, values, typed)
    draft.errors += errors
    if options is not None:
        flags = {f"{key}.{name}": flag for name, flag in typed.items()}
        draft.settings = replace(settings, plugins={**settings.plugins, key: options}, typed={**settings.typed, **flags})


def target_plan(
    draft: Draft, choice: EndpointChoice, base_urls: tuple[str, ...], weights: Weights, extra: dict[str, Any]
) -> TargetPlan:
    """Where requests go, and how."""
    kernel, streaming = draft.kernel, _streaming(draft, choice)
    _check_usage(draft, choice)
    _check_content_type(draft, choice)
    return TargetPlan(
        models=choice.models, model_strategy=kernel.model_selection_strategy, urls=base_urls,
        path=_path(draft, choice, streaming=streaming), path_given=draft.kernel.endpoint_path is not None, streaming=streaming,
        timeout_ns=round(kernel.request_timeout_s * NS_PER_S), reuse=kernel.connection_reuse is not ConnectionReuse.NEVER,
        sticky=kernel.connection_reuse is ConnectionReuse.STICKY_USER_SESSIONS, session_header=kernel.session_header,
        preconnect=kernel.preconnect, tls=tls.tls_plan(draft, base_urls),
        url_weights=tuple(1.0 if weight is None else weight for weight in weights),
        use_server_token_count=kernel.use_server_token_count or choice.can.counts_tokens, extra=extra,
        per_chunk_usage=kernel.per_chunk_usage,
        setting_names=choice.can.settings, control_urls=control_urls(draft),
    )  # fmt: skip


def _streaming(draft: Draft, choice: EndpointChoice) -> bool:
    """Whether answers are streamed; ``--streaming`` is switched off for an endpoint that can't."""
    if not draft.kernel.streaming or choice.descriptor is None or choice.can.streaming:
        return draft.kernel.streaming
    cannot = f"the endpoint type {choice.descriptor.name!r} does not stream"
    draft.warn(f"{cannot}: {draft.flag('streaming')} is switched off")
    for flag in map(draft.flag, filter(draft.given, ("prefill_concurrency", "warmup_prefill_concurrency"))):
        draft.refuse(f"{flag} needs a stream, and {cannot}", f"drop {flag}, or choose another endpoint type")
    return False


def _path(draft: Draft, choice: EndpointChoice, *, streaming: bool) -> str:
    """The path below the base URL."""
    given, can = draft.kernel.endpoint_path, choice.can
    with draft.collected(draft.flag("models" if given is None else "endpoint_path")):
        own = can.streaming_path if streaming and can.streaming_path else can.path
        return with_model(own if given is None else request_path(given), choice.models)
    return ""


def _check_usage(draft: Draft, choice: EndpointChoice) -> None:
    field = "per_chunk_usage"
    draft.needs(field, ["use_server_token_count"], "without it the counts would have no use")
    draft.needs(field, ["streaming"], "a whole answer has one usage")
    if draft.given(field) and choice.descriptor is not None and not choice.can.per_chunk_usage:
        flag = draft.flag(field)
        draft.refuse(
            f"{flag} can't be had: the endpoint type {choice.descriptor.name!r} has no word for it",
            f"drop {flag}, or choose an endpoint type that has (chat)",
        )


def check_cache_bust(draft: Draft, choice: EndpointChoice, planned: Sequence[PhasePlan]) -> None:
    """Refuse a marker that nobody would get."""
    where, flag = draft.kernel.cache_bust, draft.flag("cache_bust")
    if where is CacheBust.NONE or choice.descriptor is None:
        return
    if not choice.can.cache_bust:
        able = [each.name for each in draft.registry.all("endpoints") if each.capabilities.get("cache_bust")]
        kind = choice.descriptor.name
        draft.refuse(f"{flag} marks the prompts of a chat, and the endpoint type {kind!r} has none", f"use {names(able)}")
    elif where.isolates and not any(where.marks(phase.kind) for phase in planned):
        draft.refuse(f"{flag} {where} marks the requests of a warmup, and there is none", "give --warmup-request-count")


def check_chat_template(draft: Draft, choice: EndpointChoice) -> None:
    """Refuse a chat template without messages."""
    if not draft.kernel.apply_chat_template or choice.descriptor is None or choice.can.chat_template:
        return
    flag, kind = draft.flag("apply_chat_template"), choice.descriptor.name
    able = [each.name for each in draft.registry.all("endpoints") if each.capabilities.get("chat_template")]
    draft.refuse(f"{flag} is for messages, and the endpoint type {kind!r} has none", f"drop {flag}, or use {names(able)}")


def _check_content_type(draft: Draft, choice: EndpointChoice) -> None:
    given, own = draft.kernel.request_content_type, "multipart/form-data" if choice.can.forms else "application/json"
    if given is not None and choice.descriptor is not None and given != own:
        flag = draft.flag("request_content_type")
        draft.refuse(f"{flag} {given} can't be had: the endpoint type {choice.descriptor.name!r} sends {own}", f"drop {flag}")


def headers(draft: Draft, choice: EndpointChoice, plugins: PluginPlan) -> dict[str, str]:
    """The headers of ``--header``, and the API key as the endpoint sends it; the key wins."""
    descriptor = choice.descriptor
    with draft.collected(draft.flag("session_header")):
        check_header_name(draft.kernel.session_header)
    headers: dict[str, str] = {}
    for text in draft.kernel.headers:
        with draft.collected(draft.flag("headers")):
            headers = merged(headers, typed_headers(text))
    key, origin = _api_key(draft)
    with draft.collected(origin):
        if descriptor is None:
            return headers
        # Created early, so that its errors are reported before any process is started.
        plugin = load(draft.registry.ref("endpoints", descriptor.name), *descriptor.requires)
        with blamed(descriptor, "can't be used"):
            dialect: Endpoint = plugin(plugins.options_of(plugins.endpoint))
        if key is None:
            return headers
        if not key.strip():
            raise ConfigError("the key is empty", "is the variable it comes from set?")
        auth = dialect.auth_headers(key.strip())
        for name, value in auth.items():
            check_header_value(name, value)
        twice = sorted({name.lower() for name in auth} & {name.lower() for name in headers})
        if twice:
            draft.warn(f"{draft.flag('headers')} and {origin} both set {twice[0]}: the key is sent")
        return merged(headers, auth)
    return headers


def check_encodings(draft: Draft, asked: str) -> None:
    """Refuse to ask for answers that can't be read.  *asked*: the header ``Accept-Encoding``."""
    for part in asked.lower().split(","):
        encoding, _, weight = (each.strip() for each in part.partition(";"))
        if encoding in ("", "identity", "*") or weight.replace(" ", "") in ("q=0", "q=0.0"):
            continue
        if why := undecodable(encoding):
            draft.refuse(f"{draft.flag('headers')} Accept-Encoding: {encoding} asks for answers whose encoding {why}")


def _api_key(draft: Draft) -> tuple[str | None, str]:
    """The API key, None without one, and the option or variable that gives it."""
    kernel, path = draft.kernel, draft.kernel.api_key_file
    draft.exclusive("api_key", "api_key_file", "each gives the key")
    if kernel.api_key is not None:
        return kernel.api_key, draft.flag("api_key")
    if path is None:
        key = environment.api_key()
        return key, "" if key is None else "AIPERF_API_KEY"
    flag = draft.flag("api_key_file")
    try:
        key = path.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is no text"
        draft.refuse(f"{flag}: {path} can't be read: {reason}", "give the path of a file that has the key and nothing else")
        return None, flag
    if not key:
        draft.refuse(f"{flag}: {path} is empty", "write the key into it")
    return key or None, flag
