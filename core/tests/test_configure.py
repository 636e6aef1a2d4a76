"""From options to a plan: defaults, and every mistake in one report that names the flags as typed."""

from __future__ import annotations

import io
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf import environment
from aiperf.errors import ConfigErrors
from aiperf.planning import configure
from aiperf.planning.kernel_options import KernelOptions
from aiperf.planning.problems import Settings
from aiperf.registry.option_specs import validate
from aiperf.registry.registry import Registry
from aiperf.registry.specs import specs
from aiperf.rundir.journal import RunClock, load_run, save_run
from aiperf.sdk.descriptor import Descriptor, OptionSpec
from aiperf.sdk.options import Options, option
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from msgspec.structs import replace

FAKES = '''
from aiperf import ConfigError, Endpoint, Options, hookimpl, option

class FormOptions(Options):
    field: str = "small"
    size: int = option("--size", default=1, ge=1, help="Of the form.")

class Speaks(Endpoint):
    def __init__(self, options=None):
        super().__init__(options)
        if options is not None and options.broken:
            raise ValueError("it was asked to break")

class KeyHeader(Endpoint):
    def auth_headers(self, key):
        return {"x-api-key": key}

class Refuses:
    @hookimpl
    def aiperf_plan_validated(self, plan):
        raise ConfigError(f"no run of {plan.target.models[0]} today")

class Breaks:
    @hookimpl
    def aiperf_plan_validated(self):
        raise ZeroDivisionError("a bug of its own")
'''
CHAT = {
    "path": "/v1/chat/completions",
    **dict.fromkeys(("streaming", "produces_tokens", "tokenizes_input", "per_chunk_usage", "verbatim"), True),
}


class EndpointOptions(Options):
    broken: bool = option("--broken", default=False, help="Break.")
    legacy: bool = option("--legacy", default=False, help="Both endpoints have it.")
    token: str | None = option("--token", help="A secret.", secret=True)


class DataOptions(Options):
    isl: int = option("--isl", default=550, help="Length.")
    spread: int = option("--isl-spread", default=0, help="Spread.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        if self.isl == 13:
            raise RuntimeError("superstition")
        return [f"{typed['isl']} 0 leaves nothing\ngive at least 1"] if self.isl == 0 else []


class Needy(Options):
    project: str = option("--project", help="No default.", default=...)


def row(category: str, name: str, value: str = "os:path", **more: Any) -> Descriptor:
    return Descriptor(category, name, value, f"acme-{name}", "1.0", **more)


KERNEL = [
    row("schedules", "burst", capabilities={"follows": "free_slots"}),
    row("schedules", "request_rate", capabilities={"follows": "rate"}),
    row("arrivals", "constant"), row("arrivals", "poisson"), row("arrivals", "gamma", capabilities={"smoothness": True}),
    row("transports", "kernel", aliases=("http",)),
    row("schedules", "fixed_schedule", capabilities={"follows": "trace"}),
    row("schedules", "user_centric", capabilities={"follows": "users"}),
    row("ramps", "linear"), row("ramps", "exponential"),
    row("uis", "simple", capabilities={"instead_of": ["dashboard"]}), row("uis", "none"),
    row("engines", "local", capabilities={"shares_memory": True}),
    row("samplers", "sequential", capabilities={"in_order": True}), row("samplers", "shuffle"),
    row("samplers", "random", capabilities={"repeats": True}), row("drivers", "burst", capabilities={"drives": "free_slots"}),
    row("url_strategies", "round_robin"), row("url_strategies", "weighted", capabilities={"weights": True}),
    row("url_strategies", "least_in_flight", capabilities={"weights": True, "uses_load": True}),
]  # fmt: skip
PLUGINS = [
    row("endpoints", "chat", "fake_plugins:Speaks", aliases=("vision",), capabilities=CHAT, options_model="x:y",
        options=(OptionSpec("token", ("--token",), "", secret=True),)),
    row("endpoints", "keyed", "fake_plugins:KeyHeader", capabilities={**CHAT, "streaming_path": "/v1/{model}/stream"}),
    row("endpoints", "vectors", "fake_plugins:Speaks", capabilities={"path": "/v1/embeddings", "tokenizes_input": True}),
    row("endpoints", "silent", "fake_plugins:Speaks", capabilities={"path": "/v1/infer", "service_kind": "nim"}),
    row("endpoints", "form", "fake_plugins:KeyHeader", capabilities={**CHAT, "takes": ["field", "size"]},
        options_model="fake_plugins:FormOptions", options=(OptionSpec("size", ("--size",), ""),)),
    row("endpoints", "careless", "fake_plugins:Speaks", capabilities={**CHAT, "takes": ["field"]}),
    row("datasets", "synthetic", options_model="x:y"),
    row("datasets", "mine"),
    row("graders", "same", "fake_plugins:Breaks"),
    row("tokenizers", "builtin"), row("tokenizers", "hub", capabilities={"any_name": True}),
    row("reducers", "columns", "fake_plugins:Breaks"),
    row("metrics", "latency"), row("exporters", "json"), row("exporters", "cloud", options_model="x:y"),
]  # fmt: skip
KERNEL_SPECS = specs(KernelOptions)
GOOD: dict[str, Any] = {"models": ["m"], "request_count": 5}


@pytest.fixture(autouse=True)
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "fake_plugins.py").write_text(FAKES)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.delitem(sys.modules, "fake_plugins", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AIPERF_WORKERS", raising=False)


def made(
    options: dict[str, Any] | None = None,
    *,
    typed: dict[str, str] | None = None,
    plugins: dict[str, Any] | None = None,
    installed: list[Descriptor] | None = None,
    **more: Any,
) -> tuple[Plan, Secrets]:
    kernel, _ = validate(KernelOptions, KERNEL_SPECS, {**(GOOD if options is None else options), **more}, {})
    assert kernel is not None
    models: dict[str, Any] = {"endpoints:chat": EndpointOptions(), "datasets:synthetic": DataOptions(), **(plugins or {})}
    settings = Settings(kernel, models, typed or {}, "aiperf profile")
    return configure.plan(settings, Registry([*KERNEL, *(PLUGINS if installed is None else installed)], kernel_options=()))


def plan(*given: Any, **more: Any) -> Plan:
    return made(*given, **more)[0]


def profiling(**more: Any) -> PhasePlan:
    return plan({"models": ["m"], **more}).load.phases[-1]


def errors(*given: Any, **more: Any) -> list[str]:
    """One string an error, hints included."""
    with pytest.raises(ConfigErrors) as caught:
        made(*given, **more)
    return ["\n".join(error.lines()) for error in caught.value.errors]


def only_error(*given: Any, **more: Any) -> str:
    found = errors(*given, **more)
    assert len(found) == 1, found
    return found[0]


# What is chosen


OURS = row("reducers", "columns", "fake_plugins:Breaks", first_party=True)
THEIRS = row("reducers", "theirs", "fake_plugins:Breaks")
BROKEN = row("reducers", "broken", "fake_plugins:Missing", priority=2)


@pytest.mark.parametrize(
    ("reducers", "chosen"),
    [
        ([OURS], "columns"),
        ([OURS, THEIRS], "theirs"),
        ([OURS, replace(THEIRS, priority=-1)], "columns"),
        ([replace(OURS, priority=1), THEIRS], "columns"),
        ([replace(THEIRS, priority=-1)], "theirs"),
        ([OURS, BROKEN], "columns"),
        ([OURS, THEIRS, BROKEN], "theirs"),
    ],
)
def test_a_run_uses_the_reducer_with_the_highest_rank(reducers: list[Descriptor], chosen: str) -> None:
    found = plan(installed=[one for one in PLUGINS if one.category != "reducers"] + reducers).plugins.reducer
    assert found is not None and found.name == chosen


def test_a_pinned_reducer_is_used_whatever_its_priority() -> None:
    installed = [*KERNEL, *(one for one in PLUGINS if one.category != "reducers"), OURS, replace(THEIRS, priority=-1)]
    registry = Registry(installed, pins={"reducers:theirs": "acme-theirs"}, kernel_options=())
    kernel, _ = validate(KernelOptions, KERNEL_SPECS, GOOD, {})
    assert kernel is not None
    models: dict[str, Any] = {"endpoints:chat": EndpointOptions(), "datasets:synthetic": DataOptions()}
    found = configure.plan(Settings(kernel, models, {}, "aiperf profile"), registry)[0].plugins.reducer
    assert found is not None and found.name == "theirs"


def test_a_run_without_a_usable_reducer_is_refused_with_the_cause() -> None:
    others = [one for one in PLUGINS if one.category != "reducers"]
    install = "  pip install aiperf-suite"
    absent = "no plugin of the category reducers is installed, and nothing would be made of what is measured"
    assert only_error(installed=others).splitlines() == [absent, install]
    sentence, cause, hint = only_error(installed=[*others, BROKEN]).splitlines()
    assert sentence == absent.replace("is installed", "can be used") and hint == install
    assert "reducers:broken of acme-broken 1.0 can't be imported: " in cause


APART = row("engines", "apart", "fake_plugins:Breaks")


@pytest.mark.parametrize(
    ("load", "workers"),
    [
        ({"request_rate": 90_000.0, "request_count": 5}, 5),
        ({"request_rate": 90_000.0, "request_count": 500, "concurrency": 100}, 1),
        ({"concurrency": 60_000, "request_count": 60_000}, 1),
    ],
)
def test_workers_without_shared_memory_are_several_when_nothing_is_counted(
    load: dict[str, Any], workers: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environment, "cpus", lambda: 64)
    installed = [*PLUGINS, APART]
    found = plan({"models": ["m"], **load}, engine="apart", installed=installed)
    assert found.plugins.engine is not None and found.plugins.engine.name == "apart"
    assert found.run.workers == workers
    assert plan({"models": ["m"], **load}, installed=installed).run.workers > 1


def test_an_exact_number_of_workers_without_shared_memory_is_refused() -> None:
    given = {"models": ["m"], "concurrency": 8, "request_count": 9, "workers": 3}
    with pytest.raises(ConfigErrors) as refused:
        plan(given, engine="apart", installed=[*PLUGINS, APART])
    assert [line for line in refused.value.lines() if "--workers" in line] == [
        "--workers 3 is not possible: workers of the engine apart share no memory, and the limits of profiling count for all"
        " together",
        "  use --workers 1",
    ]


def test_a_grader_is_taken_where_it_is_named() -> None:
    assert plan().plugins.grader is None
    found = plan(accuracy_grader="same")
    assert found.plugins.grader is not None and found.plugins.grader.name == "same"
    assert found.run.config["accuracy"] == {"grader": "same"}


def test_names_of_benchmarks_and_graders_are_spelled_in_any_way() -> None:
    found = plan(installed=[*PLUGINS, QUIZZES], accuracy_benchmark="Sho-rt", accuracy_grader="sa-me")
    assert (found.data.name, found.run.config["accuracy"]) == ("short", {"benchmark": "short", "grader": "same"})


def test_a_plan_has_the_version_of_the_graders_engine() -> None:
    for engine, found in (("msgspec", f"msgspec {version('msgspec')}"), ("no-such-package", None), ("", None)):
        symbolic = row("graders", "symbolic", "fake_plugins:Breaks", capabilities={"engine": engine})
        assert plan(installed=[*PLUGINS, symbolic], accuracy_grader="symbolic").plugins.grading_engine == found


def test_a_grader_that_nobody_has_is_refused_with_what_there_is() -> None:
    assert only_error(accuracy_grader="sane").split("\n")[1:] == ["  installed: same", "  did you mean 'same'?"]


def test_a_grader_needs_answers_in_words() -> None:
    assert "gives none" in only_error(accuracy_grader="same", endpoint_type="vectors")


QUIZZES = row("datasets", "quizzes", capabilities={
    "selected_by": "benchmark", "grader": "same",
    "names": {"short": {}, "long": {"grader": "other"}, "lost": {"grader": "gone"}},
})  # fmt: skip


@pytest.mark.parametrize(("name", "typed", "grader"), [
    ("short", None, "same"), ("long", None, "other"), ("long", "same", "same"), ("lost", "same", "same"),
])  # fmt: skip
def test_a_benchmark_names_its_grader_unless_one_is_typed(name: str, typed: str | None, grader: str) -> None:
    installed = [*PLUGINS, QUIZZES, row("graders", "other", "fake_plugins:Breaks")]
    found = plan(installed=installed, accuracy_benchmark=name, **({} if typed is None else {"accuracy_grader": typed}))
    assert found.plugins.grader is not None and found.plugins.grader.name == grader
    assert found.run.config["accuracy"] == {"benchmark": name, "grader": grader}


def test_a_benchmark_whose_grader_is_not_installed_is_refused() -> None:
    said = only_error(installed=[*PLUGINS, QUIZZES], accuracy_benchmark="lost")
    assert said.startswith("--accuracy-benchmark: ") and "'gone'" in said and "installed: same" in said
    said = only_error(installed=[*PLUGINS, QUIZZES], accuracy_benchmark="short", endpoint_type="vectors")
    assert said.startswith("--accuracy-benchmark needs answers in words")


def test_options_for_slow_graders_need_a_grader() -> None:
    said = only_error(grading_processes=4)
    assert said.startswith("--grading-processes without a grader: nothing is graded")
    found = plan(installed=[*PLUGINS, QUIZZES], accuracy_benchmark="short", grading_processes=4, grading_timeout_s=5.0)
    assert (found.plugins.grading_processes, found.plugins.grading_limit_s) == (4, 5.0)


def test_a_model_and_a_count_are_enough() -> None:
    found = plan()
    assert (found.target.models, found.target.urls, found.target.path) == (
        ("m",),
        ("http://localhost:8000",),
        "/v1/chat/completions",
    )
    assert (found.plugins.endpoint.name, found.plugins.transport.name, found.plugins.dataset.name) == (
        "chat",
        "kernel",
        "synthetic",
    )
    assert found.plugins.schedules == {"burst": found.plugins.schedules["burst"]}
    assert found.plugins.arrivals == {}
    assert [ref.name for ref in found.plugins.metrics] == ["latency"]
    assert len(found.run.run_id) == 12
    assert int(found.run.run_id, 16) >= 0
    assert found.data.sampling == "", "the data set's own, which is known when it is built"


def test_aliases_resolve_to_the_plugin() -> None:
    found = plan(endpoint_type="vision", transport="http")
    assert (found.plugins.endpoint.name, found.plugins.transport.name) == ("chat", "kernel")


FRAMES = [
    row("transports", "frames", capabilities={"schemes": ["frames", "framess"]}),
    row("transports", "crates", capabilities={"schemes": ["crates"]}),
    row("transports", "boxes", capabilities={"schemes": ["crates"]}),
    row("transports", "odd", capabilities={"schemes": 7}),
    row("endpoints", "framed", "fake_plugins:Speaks", capabilities={**CHAT, "transport": "frames"}),
    row("endpoints", "orphan", "fake_plugins:Speaks", capabilities={**CHAT, "transport": "telex"}),
]  # fmt: skip
CALLS = [
    row("transports", "frames", capabilities={"schemes": ["http"], "by_type": ["calls", "callss"]}),
    row("endpoints", "caller", "fake_plugins:Speaks", capabilities={
        **CHAT, "schemes": {"calls": "frames", "callss": "frames", "http": ""}, "url": "localhost:8001",
    }),
    row("endpoints", "engine", "fake_plugins:Speaks", capabilities={**CHAT, "schemes": {"engine": "inner"}}),
    row("transports", "inner", capabilities={"schemes": [], "by_type": ["engine"], "places": True}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "url", "name"), [
    ({}, "calls://localhost:8001", "frames"), ({"urls": ["h:1"]}, "calls://h:1", "frames"),
    ({"urls": ["callss://h:1"]}, "callss://h:1", "frames"), ({"urls": ["http://h"]}, "http://h", "kernel"),
    ({"urls": ["http://h"], "transport": "frames"}, "http://h", "frames"),
    ({"endpoint_type": "engine", "urls": ["/models/tiny"]}, "engine:///models/tiny", "inner"),
])  # fmt: skip
def test_the_types_schemes_choose_url_and_transport(given: dict[str, Any], url: str, name: str) -> None:
    found = plan(installed=[*PLUGINS, *CALLS], **{"endpoint_type": "caller", **given})
    assert (found.target.urls, found.plugins.transport.name) == ((url,), name)
    assert found.target.scheme == url.partition(":")[0]


@pytest.mark.parametrize(("given", "said"), [
    ({"urls": ["calls://h:1"]}, "--url: 'calls://h:1' has the scheme 'calls', and the endpoint type 'chat' takes http"),
    ({"urls": ["engine:///d"]}, "--url: 'engine:///d' has the scheme 'engine', and the endpoint type 'chat' takes"),
    ({"endpoint_type": "caller", "urls": ["https://h"]}, "--url: 'https://h' has the scheme 'https', and the endpoint type"),
    ({"endpoint_type": "caller", "urls": ["http://h", "calls://h"]}, "--url has the schemes http and calls, and"),
    ({"endpoint_type": "caller", "urls": ["calls:///h"]}, "--url: 'calls:///h' names no host"),
    ({"endpoint_type": "engine", "urls": ["engine://h/d"]}, "--url: 'engine://h/d' names no path of this machine"),
    ({"endpoint_type": "engine", "urls": ["ftp://h"]}, "--url: 'ftp://h' has the scheme 'ftp'; only calls, callss, engine"),
])  # fmt: skip
def test_a_url_that_the_type_does_not_take_is_refused(given: dict[str, Any], said: str) -> None:
    assert only_error(installed=[*PLUGINS, *CALLS], **given).startswith(said)


@pytest.mark.parametrize(("given", "name"), [
    ({"urls": ["http://h", "https://h"]}, "kernel"), ({"urls": ["frames://h:1"]}, "frames"),
    ({"urls": ["FRAMES://h:1"]}, "frames"), ({"endpoint_type": "framed", "urls": ["framess://h:1"]}, "frames"),
    ({"endpoint_type": "orphan", "transport": "http"}, "kernel"),
    ({"endpoint_type": "framed", "transport": "boxes", "urls": ["crates://h"]}, "boxes"),
])  # fmt: skip
def test_the_typed_transport_wins_then_the_endpoints_then_the_urls(given: dict[str, Any], name: str) -> None:
    assert plan(installed=[*PLUGINS, *FRAMES], **given).plugins.transport.name == name


@pytest.mark.parametrize(("given", "said"), [
    ({"urls": ["ftp://h"]}, "--url: 'ftp://h' has the scheme 'ftp'; only crates, frames, framess, http and https are known"),
    ({"urls": ["crates://h"]}, "boxes and crates serve crates URLs\n  name one with --transport"),
    ({"urls": ["http://h", "frames://h"]}, "--url has the scheme frames; the transport 'kernel' serves http and https"),
    ({"urls": ["frames://h"], "transport": "http"}, "--url has the scheme frames; the transport 'kernel' serves http and"),
    ({"endpoint_type": "framed"}, "--url has the scheme http; the transport 'frames' serves frames and framess"),
    ({"endpoint_type": "orphan"}, "--endpoint-type orphan needs the transport 'telex', which is not installed"),
])  # fmt: skip
def test_a_transport_that_does_not_fit_is_refused(given: dict[str, Any], said: str) -> None:
    assert only_error(installed=[*PLUGINS, *FRAMES], **given).startswith(said)


def test_another_server_serves_what_is_no_load() -> None:
    found = plan(installed=[*PLUGINS, *CALLS], endpoint_type="caller", control_urls=["h:2", "unix:///run/s.sock"])
    assert found.target.http_urls == ("http://h:2", "unix:///run/s.sock")
    assert plan(installed=[*PLUGINS, *CALLS], endpoint_type="caller").target.http_urls == ()
    assert plan(urls=["http://h"]).target.http_urls == ("http://h",)
    said = only_error(installed=[*PLUGINS, *CALLS], endpoint_type="caller", control_urls=["calls://h:2"])
    assert said.startswith("--server-control-url: 'calls://h:2' has the scheme 'calls'; only http, https and unix are known")


LOCAL = row("transports", "local", capabilities={"schemes": ["http", "https", "unix"]})


@pytest.mark.parametrize(("url", "said"), [
    ("unix://{}/no/dir", ""), ("unix:///{}/file", "is a file, not a socket"), ("unix:///{}", "is a directory, not a socket"),
    ("unix://host/x", "names no path of a socket"), ("unix://", "names no path of a socket"), ("unix:///x?a=1", "has a query"),
    ("unix:///" + "x" * 107, "has 108 bytes; a socket's has at most 107"), ("unix:///{}/file/x", "can't be used: Not a dir"),
])  # fmt: skip
def test_a_path_that_is_no_socket_is_refused(url: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    url = url.format(str(tmp_path).lstrip("/") if "///{}" in url else tmp_path)
    if not said:
        assert plan(installed=[*PLUGINS, LOCAL], urls=[url], transport="local").target.urls == (url,), "it may be made later"
        return
    assert said in only_error(installed=[*PLUGINS, LOCAL], urls=[url], transport="local")


ABLE = row("transports", "able", capabilities={"proxies": True})


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "near")
    monkeypatch.setenv("AIPERF_HTTP_TRUST_ENV", "true")


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize(("url", "name"), [("http://h:8000", "able"), ("http://near:8000", "kernel"), ("https://h", "kernel")])
def test_urls_behind_a_proxy_get_the_transport_that_uses_it(url: str, name: str) -> None:
    assert plan(installed=[*PLUGINS, ABLE], urls=[url]).plugins.transport.name == name


def test_proxies_of_the_environment_count_where_they_may_be_used(proxy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_HTTP_TRUST_ENV", "false")
    assert plan(installed=[*PLUGINS, ABLE], urls=["http://h"]).plugins.transport.name == "kernel"


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize(("given", "installed", "way_out"), [
    ({"transport": "kernel"}, [ABLE], "write --transport able"),
    ({}, [], "pip install aiperf-suite"),
    ({"endpoint_type": "framed"}, [ABLE, *FRAMES], "write --transport able"),
])  # fmt: skip
def test_a_transport_without_proxies_is_refused_where_one_is_to_be_used(
    given: dict[str, Any], installed: list[Descriptor], way_out: str
) -> None:
    urls = ["http://near", "http://h?key=1"]
    (said, *_) = [error for error in errors(installed=[*PLUGINS, *installed], urls=urls, **given) if "proxy" in error]
    assert said.startswith("AIPERF_HTTP_TRUST_ENV asks for the proxy of http://h?<redacted>, and the transport ")
    assert f"  {way_out}, or unset AIPERF_HTTP_TRUST_ENV" in said


def test_another_transport_serves_where_the_usual_one_is_not_installed() -> None:
    registry = Registry([*(each for each in KERNEL if each.category != "transports"), *PLUGINS, row("transports", "spare")],
        kernel_options=())  # fmt: skip
    kernel, _ = validate(KernelOptions, KERNEL_SPECS, GOOD, {})
    assert kernel is not None
    models: dict[str, Any] = {"endpoints:chat": EndpointOptions(), "datasets:synthetic": DataOptions()}
    assert configure.plan(Settings(kernel, models, {}, ""), registry)[0].plugins.transport.name == "spare"


def plan_without(categories: set[str], **load: Any) -> Plan:
    """The plan where no plugin of these categories is installed."""
    registry = Registry([each for each in (*KERNEL, *PLUGINS) if each.category not in categories], kernel_options=())
    kernel, _ = validate(KernelOptions, KERNEL_SPECS, {**GOOD, **load}, {})
    assert kernel is not None
    models: dict[str, Any] = {"endpoints:chat": EndpointOptions(), "datasets:synthetic": DataOptions()}
    return configure.plan(Settings(kernel, models, {}, ""), registry)[0]


@pytest.mark.parametrize(("category", "load"), [
    ("schedules", {}), ("drivers", {}), ("arrivals", {"request_rate": 5.0}), ("samplers", {"sampling": "shuffle"}),
    ("url_strategies", {"urls": ["http://a", "http://b"]}), ("ramps", {"concurrency": 4, "concurrency_ramp_s": 2.0}),
])  # fmt: skip
def test_what_a_load_needs_and_is_not_installed_is_told(category: str, load: dict[str, Any]) -> None:
    with pytest.raises(ConfigErrors) as caught:
        plan_without({category}, **load)
    assert caught.value.exit_code == 2
    assert [error.hints[-1] for error in caught.value.errors] == ["pip install aiperf-suite"]


def test_a_load_needs_no_plugins_that_it_does_not_use() -> None:
    used = plan_without({"arrivals", "ramps", "samplers", "url_strategies"}).plugins
    assert (used.arrivals, used.ramps, used.samplers, used.url_strategy) == ({}, {}, {}, None)
    with pytest.raises(ConfigErrors, match="no ramp plugin is called 'linear'"):
        plan_without({"ramps"}, ramp="linear")


def test_a_seed_is_kept_and_without_one_each_run_has_its_own() -> None:
    assert (plan(random_seed=7).run.seed, plan(random_seed=7).run.seeded) == (7, True)
    assert plan().run.seed != plan().run.seed
    assert not plan().run.seeded


def test_an_exporter_needing_an_option_runs_only_when_given() -> None:
    assert [ref.name for ref in plan().plugins.exporters] == ["json"]
    assert [ref.name for ref in plan(plugins={"exporters:cloud": Needy(project="p")}).plugins.exporters] == ["cloud", "json"]


def test_the_plan_survives_json() -> None:
    found = plan(request_rate=5.0, extra_inputs=["stop:[\"a\"]"], warmup_request_count=2)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Plan) == found


# Names that nothing has


def test_without_any_plugin_every_missing_one_is_named_and_nothing_else() -> None:
    found = errors(installed=[])
    assert len(found) == 3
    assert "--endpoint-type: no endpoint plugin is called 'chat'" in found[0]
    assert "no dataset plugin is called 'synthetic'" in found[1]
    assert "no plugin of the category reducers is installed" in found[2]


@pytest.mark.parametrize(("field", "flag", "name", "kind"), [
    ("endpoint_type", "--endpoint-type", "chatt", "endpoint"),
    ("transport", "--transport", "kernl", "transport"),
    ("arrival_pattern", "--arrival-pattern", "poison", "arrival"),
])  # fmt: skip
def test_an_unknown_name_is_said_of_its_flag(field: str, flag: str, name: str, kind: str) -> None:
    said = only_error(request_rate=3.0, **{field: name})
    assert said.startswith(f"{flag}: no {kind} plugin is called {name!r}")
    assert "did you mean" in said


def test_the_flag_is_named_as_it_was_typed() -> None:
    said = only_error(request_rate=3.0, arrival_pattern="poison", typed={"arrival_pattern": "--request-rate-mode"})
    assert said.startswith("--request-rate-mode: ")


def test_all_errors_come_together_each_once() -> None:
    found = errors(
        {"endpoint_type": "chatt", "request_count": 3, "session_count": 3, "urls": ["ftp://h"], "api_key": "k"},
        export_prefix=".",
    )
    assert len(found) == 5
    for word in ("--model", "chatt", "--num-sessions", "ftp", "--profile-export-prefix"):
        assert sum(word in error for error in found) == 1


def test_warnings_are_kept_back_where_there_are_errors(caplog: pytest.LogCaptureFixture) -> None:
    errors({"models": ["mock-model"], "zmq_host": "h", "zmq_ipc_path": "p"})
    assert caplog.records == []
    plan({"models": ["mock-model"]})
    assert len(caplog.records) == 2


# Load


@pytest.mark.parametrize(("given", "count"), [
    ({}, 10), ({"concurrency": 3}, 10), ({"concurrency": 8}, 16), ({"request_rate": 100.0, "concurrency": 50}, 10),
    ({"benchmark_duration_s": 3.0}, None), ({"session_count": 3}, None), ({"request_count": 4}, 4),
])  # fmt: skip
def test_the_default_count_follows_the_concurrency(given: dict[str, Any], count: int | None) -> None:
    assert profiling(**given).request_count == count


def test_a_chosen_count_is_said(caplog: pytest.LogCaptureFixture) -> None:
    profiling(concurrency=8)
    assert "stopping after 16 requests" in caplog.text
    assert "--request-count, --num-sessions or --benchmark-duration" in caplog.text


@pytest.mark.parametrize(("given", "concurrency", "schedule", "pattern", "smoothness"), [
    ({}, 1, "burst", None, 1.0),
    ({"concurrency": 7}, 7, "burst", None, 1.0),
    ({"request_rate": 2.0}, None, "request_rate", "poisson", 1.0),
    ({"request_rate": 2.0, "concurrency": 4, "arrival_pattern": "constant"}, 4, "request_rate", "constant", 1.0),
    ({"request_rate": 2.0, "arrival_smoothness": 0.5}, None, "request_rate", "gamma", 0.5),
])  # fmt: skip
def test_a_rate_selects_the_mode(
    given: dict[str, Any], concurrency: int | None, schedule: str, pattern: str | None, smoothness: float
) -> None:
    phase = profiling(request_count=10, **given)
    assert (phase.concurrency, phase.schedule, phase.pattern, phase.smoothness) == (concurrency, schedule, pattern, smoothness)
    assert phase.paced == (pattern is not None)


@pytest.mark.parametrize(("given", "duration", "grace"), [
    ({"request_count": 3}, None, None),
    ({"benchmark_duration_s": 1.5}, 1_500_000_000, 30_000_000_000),
    ({"benchmark_duration_s": 2.0, "benchmark_grace_s": 0.0}, 2_000_000_000, 0),
    ({"benchmark_duration_s": 2.0, "benchmark_grace_s": float("inf")}, 2_000_000_000, None),
])  # fmt: skip
def test_the_grace_follows_the_duration(given: dict[str, Any], duration: int | None, grace: int | None) -> None:
    phase = profiling(**given)
    assert (phase.duration_ns, phase.grace_ns) == (duration, grace)


@pytest.mark.parametrize(("given", "entries"), [
    ({}, 100), ({"request_count": 7}, 7), ({"session_count": 9}, 9), ({"request_count": 7, "entries": 3}, 3),
    ({"benchmark_duration_s": 1.0}, 100),
])  # fmt: skip
def test_entries_are_counted_from_what_was_typed(given: dict[str, Any], entries: int) -> None:
    assert profiling(**given).entries == entries


def test_a_warmup_inherits_what_it_was_not_given() -> None:
    warmup, main = plan(
        {"models": ["m"], "request_rate": 8.0, "arrival_smoothness": 2.0, "concurrency": 6, "request_count": 40},
        warmup_request_count=5,
    ).load.phases
    assert (warmup.index, warmup.kind, main.index, main.kind) == (0, "warmup", 1, "profiling")
    assert (warmup.rate, warmup.pattern, warmup.smoothness, warmup.concurrency) == (8.0, "gamma", 2.0, 6)
    assert (warmup.request_count, warmup.grace_ns) == (5, None)


def test_a_warmup_may_differ_in_everything() -> None:
    warmup, main = plan(
        {"models": ["m"], "concurrency": 6, "benchmark_duration_s": 9.0}, warmup_duration_s=2.0, warmup_grace_s=1.0,
        warmup_request_rate=3.0, warmup_arrival_pattern="constant", warmup_concurrency=2,
    ).load.phases  # fmt: skip
    assert (warmup.rate, warmup.pattern, warmup.concurrency, warmup.duration_ns, warmup.grace_ns) == (
        3.0, "constant", 2, 2_000_000_000, 1_000_000_000,
    )  # fmt: skip
    assert (main.schedule, main.concurrency) == ("burst", 6)


@pytest.mark.parametrize(("count", "warmups", "entries"), [(40, 5, 5), (4, 50, 4)])
def test_profiling_starts_at_the_first_entry_and_a_warmup_uses_others(count: int, warmups: int, entries: int) -> None:
    warmup, main = plan({"models": ["m"], "request_count": count}, warmup_request_count=warmups).load.phases
    assert (main.first_entry, main.entries) == (0, count)
    assert (warmup.first_entry, warmup.entries) == (count, entries)
    assert plan({"models": ["m"], "request_count": count}, warmup_request_count=warmups).data.entries == count + entries


@pytest.mark.parametrize(("given", "named"), [
    ({"request_count": 3, "session_count": 3}, ["--request-count", "--num-sessions"]),
    ({"warmup_request_count": 3, "warmup_session_count": 3}, ["--warmup-request-count", "--num-warmup-sessions"]),
    ({"arrival_pattern": "gamma"}, ["--arrival-pattern", "--request-rate"]),
    ({"arrival_smoothness": 2.0}, ["--arrival-smoothness", "--request-rate"]),
    ({"request_rate": 2.0, "arrival_pattern": "constant", "arrival_smoothness": 2.0},
     ["--arrival-smoothness", "gamma", "constant"]),
    ({"request_rate": 2.0, "arrival_pattern": "concurrency_burst"},
     ["--arrival-pattern", "concurrency_burst", "--request-rate"]),
    ({"benchmark_grace_s": 2.0}, ["--benchmark-grace-period", "--benchmark-duration"]),
    ({"warmup_grace_s": 2.0, "warmup_request_count": 2}, ["--warmup-grace-period", "--warmup-duration"]),
    ({"warmup_concurrency": 2},
     ["--warmup-concurrency", "--warmup-request-count", "--num-warmup-sessions", "--warmup-duration"]),
    ({"warmup_request_rate": 2.0}, ["--warmup-request-rate", "--warmup-request-count"]),
    ({"warmup_arrival_pattern": "poisson", "warmup_request_count": 2}, ["--warmup-arrival-pattern", "--warmup-request-rate"]),
    ({"concurrency": 50, "request_count": 10}, ["--concurrency 50", "--request-count 10"]),
    ({"concurrency": 50, "session_count": 10}, ["--concurrency 50", "--num-sessions 10"]),
    ({"warmup_concurrency": 9, "warmup_request_count": 2}, ["--warmup-concurrency 9", "--warmup-request-count 2"]),
    ({"zmq_host": "h", "zmq_ipc_path": "p"}, ["--zmq-host", "--zmq-ipc-path"]),
])  # fmt: skip
def test_what_excludes_or_needs_another_is_refused_and_both_are_named(given: dict[str, Any], named: list[str]) -> None:
    said = only_error({"models": ["m"], **given})
    assert [word for word in named if word not in said] == []
    assert "\n" in said, "and there is a way out"


@pytest.mark.parametrize("given", [
    {"warmup_request_rate": 3.0, "arrival_smoothness": 2.0, "warmup_request_count": 2},
    {"request_rate": 3.0, "arrival_pattern": "constant", "warmup_arrival_pattern": "gamma", "arrival_smoothness": 2.0,
     "warmup_request_count": 2},
    {"concurrency": 50, "request_count": 100, "warmup_request_count": 10},
])  # fmt: skip
def test_what_makes_sense_for_the_warmup_alone_is_taken(given: dict[str, Any]) -> None:
    assert len(plan({"models": ["m"], **given}).load.phases) == 2


@pytest.mark.parametrize(("given", "cpus", "workers", "reducers"), [
    ({}, 64, 1, 1),
    ({"workers_max": 8, "concurrency": 64, "request_count": 64}, 64, 1, 1),
    ({"request_rate": 70_000.0}, 64, 4, 4),
    ({"request_rate": 70_000.0}, 4, 2, 1),
    ({"request_rate": 70_000.0, "workers_max": 3}, 64, 3, 3),
    ({"request_rate": 70_000.0, "concurrency": 2}, 64, 2, 2),
    ({"concurrency": 25_001, "benchmark_duration_s": 1.0}, 64, 6, 1),
    ({"concurrency": 25_001, "benchmark_duration_s": 1.0, "record_processors": 99}, 64, 6, 6),
    ({"request_rate": 1e9}, 640, 32, 32),
    ({"request_rate": 300.0, "streaming": True}, 64, 3, 1),
    ({"concurrency": 5_000, "streaming": True, "request_count": 9_000}, 64, 8, 1),
    ({"concurrency": 5_000, "streaming": True, "request_count": 9_000}, 8, 5, 1),
    ({"concurrency": 5_000, "request_count": 9_000}, 64, 1, 1),
])  # fmt: skip
def test_workers_come_from_the_load(
    given: dict[str, Any], cpus: int, workers: int, reducers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "cpus", lambda: cpus)
    found = plan({"models": ["m"], **given})
    assert (found.run.workers, found.run.reducers) == (workers, reducers)


def test_a_number_of_workers_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "cpus", lambda: 64)
    monkeypatch.setenv("AIPERF_WORKERS", "5")
    assert (plan().run.workers, plan().run.reducers) == (5, 5)
    monkeypatch.setenv("AIPERF_RECORD_PROCESSOR_SCALE_FACTOR", "4")
    assert (plan().run.workers, plan().run.reducers) == (5, 2)
    assert plan(workers_max=3).run.workers == 3
    monkeypatch.setenv("AIPERF_WORKERS", "many")
    assert "AIPERF_WORKERS is 'many'" in only_error()


@pytest.mark.parametrize(("given", "cpus", "said"), [
    ({"request_rate": 300.0, "streaming": True}, 64,
     "3 workers and 1 reducer: 300 requests/s with 76,800 chunks/s are expected to take 1.5 cores, and a worker uses 0.7 of "
     "one; --workers sets a number"),
    ({"request_rate": 300.0, "streaming": True}, 2,
     "1 worker and 1 reducer: 300 requests/s with 76,800 chunks/s are expected to take 1.5 cores, and a worker uses 0.7 of "
     "one; the load has work for 3, and 2 CPUs and the load's own limits leave room for 1; --workers sets a number"),
    ({"concurrency": 12_000, "request_count": 12_000}, 64,
     "3 workers and 1 reducer: 12,000 sessions at a time are expected, and a worker holds 5,000; --workers sets a number"),
    ({"request_rate": 10.0, "streaming": True}, 64, ""), ({"request_rate": 300.0, "streaming": True, "workers": 2}, 64, ""),
])  # fmt: skip
def test_a_run_says_why_it_has_several_workers(
    given: dict[str, Any], cpus: int, said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environment, "cpus", lambda: cpus)
    caplog.set_level("INFO")
    plan({"models": ["m"], **given})
    assert [line for line in caplog.messages if "reducer" in line] == ([said] if said else [])


def test_a_number_of_workers_can_be_asked_for_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (plan(workers=5, concurrency=2).run.workers, plan(workers=1, request_rate=70_000.0).run.workers) == (5, 1)
    monkeypatch.setenv("AIPERF_WORKERS", "3")
    assert plan(workers=2).run.workers == 2
    assert "--workers and --workers-max exclude each other" in only_error(workers=2, workers_max=3)


# The server


@pytest.mark.parametrize(("given", "path"), [
    ({}, "/v1/chat/completions"), ({"endpoint_path": "/mine"}, "/mine"), ({"endpoint_path": ""}, ""),
    ({"endpoint_type": "keyed", "streaming": True}, "/v1/m%2Fx/stream"), ({"endpoint_path": "/{model}/go"}, "/m%2Fx/go"),
])  # fmt: skip
def test_the_path_is_the_endpoints_or_the_one_given(given: dict[str, Any], path: str) -> None:
    assert plan({"models": ["m/x"], "request_count": 1, **given}).target.path == path


def test_a_path_that_names_one_of_several_models_is_filled_by_each_request() -> None:
    target = plan({"models": ["a", "b"], "endpoint_type": "keyed", "streaming": True, "request_count": 1}).target
    assert (target.path, target.given_path) == ("/v1/{model}/stream", None)
    target = plan({"models": ["a", "b"], "endpoint_path": "/{model}/go", "request_count": 1}).target
    assert target.given_path == "/{model}/go"


def test_a_path_without_a_slash_is_refused() -> None:
    assert "--endpoint: 'v1/x' must start with '/'\n  write /v1/x" in only_error(endpoint_path="v1/x")


def test_streaming_is_switched_off_where_the_endpoint_cannot(caplog: pytest.LogCaptureFixture) -> None:
    assert not plan(endpoint_type="vectors", streaming=True).target.streaming
    assert "'vectors' does not stream: --streaming is switched off" in caplog.text
    assert plan(streaming=True).target.streaming


def test_the_key_is_sent_as_the_endpoint_says_and_wins(caplog: pytest.LogCaptureFixture) -> None:
    found, secrets = made(api_key="sk-1", headers=["X-Team: perf", "authorization: Basic xyz", "x-team:other"])
    assert secrets.headers == {"x-team": "other", "Authorization": "Bearer sk-1"}
    assert "--header and --api-key both set authorization" in caplog.text
    written = msgspec.json.encode(found).decode()
    assert all(word not in written + caplog.text for word in ("sk-1", "Basic", "xyz", "other"))
    assert found.run.config["endpoint"]["headers"] == {"x-team": "<redacted>", "Authorization": "<redacted>"}
    assert made(api_key="sk-1", endpoint_type="keyed")[1].headers == {"x-api-key": "sk-1"}


@pytest.mark.parametrize(("given", "sent"), [
    ({"api_key": "sk-1"}, "sk-1"), ({"api_key_file": "key.txt"}, "sk-file"), ({}, "sk-variable"),
])  # fmt: skip
def test_a_flag_with_the_key_wins_over_the_variable(
    given: dict[str, Any], sent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIPERF_API_KEY", "sk-variable")
    (tmp_path / "key.txt").write_text("sk-file\n")
    found, secrets = made(**{name: str(tmp_path / value) if name.endswith("file") else value for name, value in given.items()})
    assert secrets.headers == {"Authorization": f"Bearer {sent}"}
    assert sent not in msgspec.json.encode(found).decode()


@pytest.mark.parametrize(("content", "said"), [
    (None, "can't be read: No such file or directory"), (b"", "is empty"), (b" \n", "is empty"), (b"\xff", "it is no text"),
    (b"sk-secret\nsk-other", "--api-key-file: the value of Authorization has a line break"),
])  # fmt: skip
def test_a_key_file_without_one_key_is_refused(content: bytes | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    error = only_error(api_key_file=str(tmp_path / "key"))
    assert error.startswith("--api-key-file: ")
    assert said in error
    assert "sk-" not in error


def test_two_flags_with_the_key_are_refused(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-file")
    assert "--api-key and --api-key-file exclude each other" in only_error(api_key="k", api_key_file=str(tmp_path / "key"))


def test_a_saved_plan_has_no_query_and_no_secret_fields_and_gets_them_back() -> None:
    found, secrets = made(
        urls=["http://h/?sig=hush1"], endpoint_path="/v1/x?code=hush2", extra_inputs=["api_key:hush3", "max_tokens:5"]
    )
    saved = found.public()
    assert "hush" not in msgspec.json.encode(saved).decode()
    assert (saved.target.urls, saved.target.path) == (("http://h/?<redacted>",), "/v1/x?<redacted>")
    assert saved.target.extra == {"api_key": "<redacted>", "max_tokens": 5}
    assert secrets.restored(saved).target == found.target


@pytest.mark.parametrize(("given", "said"), [
    ({"api_key": ""}, "--api-key: the key is empty"),
    ({"api_key": "a\nb"}, "--api-key: the value of Authorization has a line break"),
    ({"session_header": "X Y"}, "--session-header: 'X Y' is no header name"),
    ({"request_content_type": "multipart/form-data"},
     "--request-content-type multipart/form-data can't be had: the endpoint type 'chat' sends application/json"),
    ({"headers": ["secret-without-colon"]}, "--header: a header is NAME:VALUE"),
])  # fmt: skip
def test_a_header_that_cannot_be_sent_is_refused_without_showing_its_value(given: dict[str, Any], said: str) -> None:
    error = only_error(**given)
    assert said in error
    assert "secret-without" not in error


@pytest.mark.parametrize(("asked", "said"), [
    ("gzip, compress", "--header Accept-Encoding: compress asks for answers whose encoding can't be read here; ask for gzip,"),
    ("br;q=0.5, gzip", "--header Accept-Encoding: br asks for answers whose encoding needs the package brotli: pip install"),
])  # fmt: skip
def test_an_encoding_that_cannot_be_read_is_not_asked_for(monkeypatch: pytest.MonkeyPatch, asked: str, said: str) -> None:
    monkeypatch.setattr("aiperf.sdk.headers.find_spec", lambda name: None)
    assert said in only_error(headers=[f"Accept-Encoding: {asked}"])


@pytest.mark.parametrize("asked", ["gzip, deflate", "identity", "*", "GZIP;q=1, br;q=0", ""])
def test_encodings_that_can_be_read_are_asked_for(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setattr("aiperf.sdk.headers.find_spec", lambda name: None)
    assert plan(headers=[f"Accept-Encoding: {asked}"]).target.accept_encoding == asked


def test_an_endpoint_that_breaks_is_named_with_package_and_version() -> None:
    said = only_error(plugins={"endpoints:chat": EndpointOptions(broken=True)})
    assert "the plugin endpoints:chat of acme-chat 1.0 can't be used: ValueError: it was asked to break" in said


@pytest.mark.parametrize("tools", ["5", '{"name": "f"}', '["f"]'])
def test_tools_that_are_no_list_of_objects_are_refused(tools: str) -> None:
    sentence = only_error(extra_inputs=[f'{{"tools": {tools}}}'])
    assert "--extra-inputs gives tools that are no list of objects" in sentence


def test_extra_inputs_add_up() -> None:
    assert plan(extra_inputs=["a:1,b:x", '{"c": [1]}', "a:2"]).target.extra == {"a": 2, "b": "x", "c": [1]}


def form_options(**given: Any) -> Options:
    from fake_plugins import FormOptions  # type: ignore[import-not-found]  # written by the fixture

    made: Options = FormOptions(**given)
    return made


@pytest.mark.parametrize(("text", "given", "field", "size", "extra"), [
    ("field:answer,size:7,a:1", {}, "answer", 7, {"a": 1}),
    ("field:12", {"size": 3}, "12", 3, {}),
    ("a:1", {"size": 3}, "small", 3, {"a": 1}),
])  # fmt: skip
def test_extra_inputs_that_the_endpoint_takes_are_its_options(
    text: str, given: dict[str, Any], field: str, size: int, extra: dict[str, Any]
) -> None:
    planned = plan(endpoint_type="form", extra_inputs=[text], plugins={"endpoints:form": form_options(**given)})
    options = planned.plugins.options_of(planned.plugins.endpoint)
    assert (options.field, options.size, planned.target.extra) == (field, size, extra)
    taken = {name: value for name, value in {"field": field, "size": size}.items() if f"{name}:" in text}
    assert planned.run.config.get("plugins", {}) == ({"endpoints:form": taken} if taken else {})


def test_other_endpoints_send_the_same_extra_inputs_in_the_body() -> None:
    assert plan(extra_inputs=["field:answer"]).target.extra == {"field": "answer"}


@pytest.mark.parametrize(("more", "said"), [
    ({"extra_inputs": ["size:many"]}, "--extra-inputs size: 'many' is not a whole number"),
    ({"extra_inputs": ["size:0"]}, "--extra-inputs size: 0 is not allowed; must be at least 1"),
    ({"extra_inputs": ["size:2"], "typed": {"endpoints:form.size": "--size"}},
     "--size and --extra-inputs size exclude each other"),
])  # fmt: skip
def test_an_extra_input_that_is_no_good_option_is_refused(more: dict[str, Any], said: str) -> None:
    given = form_options(size=3) if "typed" in more else form_options()
    assert said in only_error(endpoint_type="form", plugins={"endpoints:form": given}, **more)


def test_an_endpoint_that_takes_what_it_has_no_option_for_is_named() -> None:
    said = only_error(endpoint_type="careless", extra_inputs=["field:answer"])
    assert "the manifest of acme-careless 1.0 takes field and has no options_model" in said


@pytest.mark.parametrize(("given", "said"), [
    ({"insecure": True, "ca_file": Path(__file__)}, "--insecure and --ca-file exclude each other"),
    ({"client_key": Path(__file__)}, "--client-key needs --client-cert"),
    ({"ca_file": Path("nowhere.pem")}, "--ca-file: there is no file nowhere.pem"),
    ({"ca_file": Path(__file__)}, "holds no certificates"),
    ({"client_cert": Path(__file__)}, "can't be used"),
])  # fmt: skip
def test_certificates_that_cannot_work_are_refused(given: dict[str, Any], said: str) -> None:
    assert any(said in error for error in errors(urls=["https://h"], **given))


def test_certificates_are_checked_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert plan().target.tls.verify
    assert not plan(urls=["https://h"], insecure=True).target.tls.verify
    monkeypatch.setenv("AIPERF_HTTP_SSL_VERIFY", "false")
    assert not plan().target.tls.verify
    assert caplog.text == ""
    plan(insecure=True)
    assert "--insecure changes nothing" in caplog.text


# Tokens


@pytest.mark.parametrize(("models", "typed", "opener", "name"), [
    (["org/model"], None, "hub", "org/model"),
    (["org/model", "other"], None, "hub", "org/model"),
    (["org/model"], "builtin", "builtin", "builtin"),
    (["org/model"], "Builtin", "builtin", "Builtin"),
    (["org/model"], "./local", "hub", "./local"),
    (["Mock-Model"], None, "builtin", "builtin"),
    (["mock-model"], "gpt2", "hub", "gpt2"),
])  # fmt: skip
def test_who_opens_the_tokenizer(models: list[str], typed: str | None, opener: str, name: str) -> None:
    found = plan({"models": models, "tokenizer": typed, "request_count": 1})
    assert found.plugins.tokenizer is not None
    assert (found.plugins.tokenizer.name, found.data.tokenizer_name) == (opener, name)


def test_a_placeholder_model_is_said_to_be_one(caplog: pytest.LogCaptureFixture) -> None:
    plan({"models": ["mock-model"], "request_count": 1})
    assert "mock-model is a placeholder" in caplog.text


def test_where_nobody_opens_any_name_the_builtin_one_is_offered() -> None:
    said = only_error(installed=[one for one in PLUGINS if one.name != "hub"])
    assert "the tokenizer of the model 'm'" in said
    assert "installed: builtin" in said
    assert "--tokenizer builtin" in said


def test_an_endpoint_without_tokens_needs_no_tokenizer_and_refuses_one() -> None:
    assert plan(endpoint_type="silent").plugins.tokenizer is None
    assert "--tokenizer has no use" in only_error(endpoint_type="silent", tokenizer="gpt2")


# Plugins' own options


def test_a_flag_of_a_plugin_that_takes_no_part_is_refused() -> None:
    class Other(Options):
        rows: int = option("--rows", default=1, help="Of mine.")

    said = only_error(plugins={"datasets:mine": Other(rows=3)}, typed={"datasets:mine.rows": "--rows"})
    assert "--rows belongs to the dataset plugin 'mine'; this run uses 'synthetic'" in said


def test_a_flag_of_several_plugins_works_when_one_takes_part() -> None:
    typed = {"endpoints:chat.legacy": "--legacy", "endpoints:keyed.legacy": "--legacy"}
    found = plan(plugins={"endpoints:keyed": EndpointOptions(legacy=True)}, typed=typed)
    assert "endpoints:keyed" not in found.plugins.options
    assert found.plugins.options["endpoints:chat"].values["legacy"] is False


def test_flags_of_an_endpoint_that_was_misspelt_are_not_blamed_too() -> None:
    assert "chatt" in only_error(endpoint_type="chatt", typed={"endpoints:chat.legacy": "--legacy"})


def test_conflicts_that_a_plugin_finds_join_the_others() -> None:
    said = errors(plugins={"datasets:synthetic": DataOptions(isl=0)}, typed={"datasets:synthetic.isl": "--isl"}, zmq_host="h",
                  zmq_ipc_path="p")  # fmt: skip
    assert said[0] == "--isl 0 leaves nothing\n  give at least 1"
    assert len(said) == 2


def test_a_plugin_that_cannot_check_its_options_is_reported() -> None:
    said = only_error(plugins={"datasets:synthetic": DataOptions(isl=13)})
    assert "datasets:synthetic can't check its options: RuntimeError: superstition" in said


def test_an_option_that_the_chosen_plugin_must_have_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from aiperf.registry.specs import specs

    needy = row("datasets", "synthetic", options_model="x:y", options=specs(Needy))
    monkeypatch.setattr(Registry, "load_options_model", lambda self, one: Needy)
    kernel = KernelOptions(**GOOD, endpoint_type="silent")
    rest = [one for one in PLUGINS if one.name != "synthetic"]
    registry = Registry([*KERNEL, *rest, needy], kernel_options=())
    with pytest.raises(ConfigErrors, match="1 configuration") as caught:
        configure.plan(Settings(kernel, {}, {}, "aiperf"), registry)
    assert caught.value.errors[0].message == "--project: is required by the dataset plugin 'synthetic'"


def test_a_required_option_without_its_flag_names_who_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    needy = row("datasets", "synthetic", options_model="x:y", options=specs(Needy))
    other = row("exporters", "cloud", options_model="x:z", options=(OptionSpec("p", ("--project",), "", "int"),), priority=1)
    monkeypatch.setattr(Registry, "load_options_model", lambda self, one: Needy if one.name == "synthetic" else None)
    rest = [one for one in PLUGINS if one.name not in ("synthetic", "cloud")]
    registry = Registry([*KERNEL, *rest, needy, other], kernel_options=())
    with pytest.raises(ConfigErrors, match="1 configuration") as caught:
        configure.plan(Settings(KernelOptions(**GOOD, endpoint_type="silent"), {}, {}, "aiperf"), registry)
    assert caught.value.errors[0].lines() == [
        "--project: is required by the dataset plugin 'synthetic'",
        "  it can't be given: exporters:cloud of acme-cloud 1.0 has it",
    ]


def test_a_chosen_plugin_without_typed_options_has_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = row("datasets", "synthetic", options_model="x:y", options=specs(DataOptions))
    monkeypatch.setattr(Registry, "load_options_model", lambda self, one: DataOptions)
    registry = Registry([*KERNEL, *(one for one in PLUGINS if one.name not in ("synthetic", "cloud")), ours], kernel_options=())
    found, _ = configure.plan(Settings(KernelOptions(**GOOD, endpoint_type="silent"), {}, {}, "aiperf"), registry)
    assert list(found.plugins.options) == ["datasets:synthetic"]
    assert found.plugins.options["datasets:synthetic"].decoded().isl == 550


def test_secret_options_of_plugins_are_redacted_in_the_report() -> None:
    found = plan(plugins={"endpoints:chat": EndpointOptions(token="tk")}, typed={"endpoints:chat.token": "--token"})
    assert found.run.config["plugins"] == {"endpoints:chat": {"token": "<redacted>"}}


def test_secret_options_of_plugins_reach_the_plugins_and_no_file(tmp_path: Path) -> None:
    found, secrets = made(plugins={"endpoints:chat": EndpointOptions(token="hush")})
    save_run(tmp_path, found, RunClock(0, 0))
    assert b"hush" not in (tmp_path / "run.json").read_bytes()
    written, _ = load_run(tmp_path)
    assert written.plugins.options_of(found.plugins.endpoint).token is None
    assert secrets.restored(written).plugins.options_of(found.plugins.endpoint).token == "hush"
    assert found.plugins.options_of(found.plugins.endpoint).token == "hush", "what runs in this process has it, too"


class PeerOptions(EndpointOptions):
    peers: list[str] = option("--peer", default=[], help="Others.", arity="many")


@pytest.mark.parametrize("url", ["http://ada:hush@host/metrics", "ada:hush@host:80", "http://ada:hush@[::1]:80"])
def test_a_login_in_an_address_is_a_secret_of_whatever_option(tmp_path: Path, url: str) -> None:
    given = {"endpoints:chat": PeerOptions(peers=["http://plain/metrics", url])}
    found, secrets = made(plugins=given, typed={"endpoints:chat.peers": "--peer"})
    save_run(tmp_path, found, RunClock(0, 0))
    assert b"hush" not in (tmp_path / "run.json").read_bytes()
    assert found.run.config["plugins"] == {"endpoints:chat": {"peers": "<redacted>"}}
    assert secrets.options == {"endpoints:chat": {"peers": ["http://plain/metrics", url], "token": None}}


def test_an_address_without_a_login_is_no_secret() -> None:
    given = {"endpoints:chat": PeerOptions(peers=["http://plain/metrics?who=ada@home"])}
    assert made(plugins=given)[1].options == {"endpoints:chat": {"token": None}}


def test_continuous_usage_needs_server_counts_streaming_and_a_capable_endpoint() -> None:
    asked = {"per_chunk_usage": True, "use_server_token_count": True, "streaming": True}
    assert plan(**asked).target.per_chunk_usage
    assert plan(**asked).run.config["endpoint"]["per_chunk_usage"] is True
    assert not plan().target.per_chunk_usage
    assert plan(request_content_type="application/json").run.config["endpoint"]["request_content_type"] == "application/json"
    for without in ("use_server_token_count", "streaming"):
        flag = "--" + without.replace("_", "-")
        assert only_error(**{**asked, without: False}).startswith(f"--per-chunk-usage needs {flag}")
    said = only_error(**asked, endpoint_type="vectors")
    assert said.startswith("--per-chunk-usage can't be had: the endpoint type 'vectors' has no word for it")


def test_a_trace_needs_the_file_it_would_stand_in() -> None:
    assert plan(export_http_trace=True).output.http_trace
    said = only_error(export_http_trace=True, export_level="summary")
    assert said.startswith("--export-http-trace belongs to the per-request file, which --export-level summary leaves out")


@pytest.mark.parametrize(("more", "kept"), [({}, False), ({"export_level": "raw"}, True), ({"export_http_trace": True}, True)])
def test_requests_are_journaled_where_a_file_shows_them(more: dict[str, Any], kept: bool) -> None:
    assert plan(**more).output.keeps_requests is kept


def test_a_hook_may_refuse_the_plan_a_broken_one_counts_none(caplog: pytest.LogCaptureFixture) -> None:
    hooks = [row("hooks", "refuses", "fake_plugins:Refuses"), row("hooks", "breaks", "fake_plugins:Breaks")]
    assert only_error(installed=[*PLUGINS, *hooks]) == "no run of m today"
    assert [ref.name for ref in plan(installed=[*PLUGINS, hooks[1]]).plugins.hooks] == ["breaks"]
    assert "the plugin hooks:breaks of acme-breaks 1.0 failed in aiperf_plan_validated: ZeroDivisionError" in caplog.text


# Where results go


@pytest.mark.parametrize(("given", "name"), [
    ({}, "m-openai-chat-concurrency1"),
    ({"models": ["org/m", "n"]}, "org_m_multi-openai-chat-concurrency1"),
    ({"request_rate": 10.0}, "m-openai-chat-request_rate10.0"),
    ({"request_rate": 2.5, "concurrency": 4, "request_count": 9}, "m-openai-chat-concurrency4-request_rate2.5"),
    ({"endpoint_type": "silent", "concurrency": 8, "request_count": 9}, "m-nim-silent-concurrency8"),
    ({"endpoint_type": "vision", "warmup_concurrency": 3, "warmup_request_count": 5}, "m-openai-chat-concurrency1"),
])  # fmt: skip
def test_the_directory_is_named_after_the_load(given: dict[str, Any], name: str, tmp_path: Path) -> None:
    found = plan({"models": ["m"], **given})
    assert found.output.artifacts == str(tmp_path / "artifacts" / name)
    assert found.output.journal == str(tmp_path / "artifacts" / name / "journal")
    assert not (tmp_path / "artifacts").exists()


def test_a_directory_that_was_given_is_used_as_it_is(tmp_path: Path) -> None:
    assert plan(artifact_dir="here/it").output.artifacts == str(tmp_path / "here/it")


def test_an_enormous_model_name_still_makes_a_directory() -> None:
    assert len(Path(plan({"models": ["x" * 400], "request_count": 1}).output.artifacts).name) <= 200


def test_a_directory_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "dangling").symlink_to("nowhere")
    assert f"{tmp_path / 'taken'} can't be a directory: it is a file" in only_error(artifact_dir="taken")
    assert f"{tmp_path / 'taken'} is a file" in only_error(artifact_dir="taken/below/it")
    assert "a link to nothing" in only_error(artifact_dir="dangling")
    assert "can't be a directory" in only_error(artifact_dir="n" * 400)
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "locked")
    assert f"no permission in {tmp_path / 'locked'}" in only_error(artifact_dir="locked/new")


def test_a_folder_called_journal_that_is_not_ours_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "diary" / "journal").mkdir(parents=True)
    assert plan(artifact_dir="diary").output.artifacts
    (tmp_path / "diary" / "journal" / "monday.txt").write_text("dear")
    assert "is not the journal of a run" in only_error(artifact_dir="diary")
    (tmp_path / "diary" / "journal" / "run.json").write_text("{}")
    assert plan(artifact_dir="diary").output.artifacts


def test_the_configuration_shown_holds_what_was_set_or_derived() -> None:
    config = plan(
        {"models": ["m"], "request_rate": 2.0, "request_count": 4, "urls": ["http://h/x?key=abc"]}, warmup_duration_s=1.0,
        plugins={"datasets:synthetic": DataOptions(isl=9)}, typed={"datasets:synthetic.isl": "--isl"},
    ).run.config  # fmt: skip
    assert config["endpoint"]["urls"] == ["http://h/x?<redacted>"]
    assert config["models"]["items"] == [{"name": "m"}]
    assert config["datasets"] == [{"name": "main", "type": "synthetic", "entries": 8}]
    assert config["phases"][1] == {"name": "profiling", "kind": "profiling", "type": "poisson", "rate": 2.0, "requests": 4}
    assert config["artifacts"]["records"] == ["jsonl"]
    assert config["plugins"] == {"datasets:synthetic": {"isl": 9}}
    assert "timeout" not in config["endpoint"]


def test_what_the_references_form_has_no_place_for_is_not_in_it() -> None:
    typed = {"datasets:synthetic.isl": "--isl"}
    made = plan(transport="kernel", plugins={"datasets:synthetic": DataOptions(isl=9)}, typed=typed)
    assert made.run.config["endpoint"]["transport"] == "kernel"
    shown = made.input_config()
    assert "plugins" not in shown and "transport" not in shown["endpoint"]
    assert shown["phases"] == made.run.config["phases"]


class Stream(io.StringIO):
    """Standard error, on a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal  # type: ignore[method-assign]
        self.fileno = lambda: 2  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("terminal", "term", "size", "front", "words", "chosen", "said"),
    [
        (True, "xterm", (60, 15), True, {}, "board", ""), (True, "xterm", (200, 60), True, {"verbose": True}, "board", ""),
        (True, "xterm", (59, 15), True, {}, "simple", ""), (True, "xterm", (60, 14), True, {}, "simple", ""),
        (True, "xterm", (0, 0), True, {}, "board", ""), (True, "dumb", (80, 24), True, {}, "simple", ""),
        (True, "xterm", (80, 24), False, {}, "simple", ""), (True, "xterm", (80, 24), True, {"dry_run": True}, "simple", ""),
        (False, "xterm", (80, 24), True, {}, "none", ""), (False, "xterm", (80, 24), True, {"verbose": True}, "simple", ""),
        (False, "xterm", (80, 24), True, {"ui": "board"}, "simple", "needs a terminal; using the simple one"),
        (True, "dumb", (80, 24), True, {"ui": "board"}, "simple", "TERM is dumb; using the simple one"),
        (True, "xterm", (9, 3), True, {"ui": "board"}, "simple", "15 lines, and the terminal has 9 and 3"),
        (True, "xterm", (80, 24), False, {"ui": "board"}, "simple", "another job has it; using the simple one"),
        (True, "xterm", (80, 24), True, {"ui": "none"}, "none", ""),
        (True, "xterm", (80, 24), True, {"quiet": True}, "none", ""),
    ],
)  # fmt: skip
def test_the_preferred_display_is_the_default_where_it_fits(
    terminal: bool, term: str, size: tuple[int, int], front: bool, words: dict[str, Any], chosen: str, said: str,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    board = row("uis", "board", capabilities={"terminal": True, "preferred": True, "least_columns": 60, "least_lines": 15})
    monkeypatch.setattr("sys.stderr", Stream(terminal))
    monkeypatch.setattr("os.get_terminal_size", lambda fd: os.terminal_size(size))
    monkeypatch.setattr("os.tcgetpgrp", lambda fd: os.getpgrp() + (not front))
    monkeypatch.setenv("TERM", term)
    plan, _ = made(installed=[*PLUGINS, board], **words)
    assert plan.plugins.ui is not None and plan.plugins.ui.name == chosen
    assert said in caplog.text
