"""Requests beside the load: which ones, to which servers, and what a failure does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiperf import AiperfError, ConfigError
from aiperf.parts.tools import specs, validate
from aiperf.sdk.fetch import FetchError
from aiperf_hook_server_control import ServerControl
from aiperf_hook_server_control.contract import ServerControlContract
from aiperf_hook_server_control.options import ServerControlOptions
from aiperf_testing.journals import plan_for


class Servers:
    """Answers each POST with the next status of its path, the last one for ever; waits without waiting."""

    def __init__(self, *urls: str, **statuses: list[int]) -> None:
        self.urls, self.statuses = urls or ("http://a",), statuses
        self.asked: list[str] = []
        self.waited: list[float] = []
        self.ending = False

    def post(self, url: str, path: str, timeout_s: float) -> None:
        self.asked.append(f"{url}{path}")
        statuses = self.statuses.get(path[1:].replace("/", "_"), [200])
        status = statuses.pop(0) if len(statuses) > 1 else statuses[0]
        if status != 200:
            raise FetchError(f"{url}{path}", f"the server answers {status}", status)

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        return not self.ending


PHASES = [SimpleNamespace(kind=kind, index=index) for index, kind in enumerate(("warmup", "profiling"))]


def run(servers: Servers, phases: list[Any] = PHASES, *, ended: int | None = None, **options: Any) -> Servers:
    """The calls of one run, whose first *ended* phases end."""
    hooks, plan = ServerControl(), SimpleNamespace(load=SimpleNamespace(phases=phases))
    hooks.options = ServerControlOptions(**options)
    told: Any = {"plan": plan, "servers": servers}
    hooks.aiperf_run_configured(**told)
    for phase in phases[:ended]:
        servers.asked.append(phase.kind)
        hooks.aiperf_phase_ended(**told, phase=phase)
    hooks.aiperf_teardown()
    return servers


def test_nothing_is_asked_unless_it_is_wanted() -> None:
    assert run(Servers()).asked == ["warmup", "profiling"]


def test_every_server_is_reset_before_the_run() -> None:
    servers = run(Servers("http://a", "http://b"), reset_kv_cache=True, ended=0)
    assert servers.asked == ["http://a/reset_prefix_cache", "http://b/reset_prefix_cache"]


def test_the_profiler_runs_for_the_profiling_phase() -> None:
    start, stop = "http://a/start_profile", "http://a/stop_profile"
    assert run(Servers(), server_profiler=True).asked == ["warmup", start, "profiling", stop]
    assert run(Servers(), PHASES[1:], server_profiler=True).asked == [start, "profiling", stop]
    assert run(Servers(), server_profiler=True, ended=1).asked == ["warmup", start, stop]  # the run was interrupted


@pytest.mark.parametrize(("statuses", "options", "asked"), [
    ({"reset_prefix_cache": [404]}, {}, ["http://a/reset_prefix_cache", "http://a/flush_cache"]),
    ({"x": [200]}, {"reset_kv_cache_path": "/x"}, ["http://a/x"]),
])  # fmt: skip
def test_the_path_is_vllms_or_sglangs_or_the_given_one(statuses: Any, options: Any, asked: list[str]) -> None:
    assert run(Servers(**statuses), reset_kv_cache=True, ended=0, **options).asked == asked


def test_a_busy_server_is_asked_again_after_longer_and_longer_pauses() -> None:
    servers = run(Servers(reset_prefix_cache=[409, 423, 429, 503, 503, 200]), reset_kv_cache=True, ended=0)
    assert servers.waited == [1, 2, 4, 8, 8]
    assert len(servers.asked) == 6


@pytest.mark.parametrize(("statuses", "options", "said"), [
    ({"reset_prefix_cache": [404], "flush_cache": [404]}, {}, "http://a/reset_prefix_cache: the server answers 404"),
    ({"reset_prefix_cache": [404], "flush_cache": [500]}, {}, "http://a/flush_cache: the server answers 500"),
    ({"reset_prefix_cache": [500]}, {}, "the server answers 500"),
    ({"x": [404]}, {"reset_kv_cache_path": "/x"}, "http://a/x: the server answers 404"),
    ({"reset_prefix_cache": [503]}, {"reset_kv_cache_timeout_s": 0.5}, "the server answers 503"),
])  # fmt: skip
def test_a_reset_that_fails_ends_the_run(statuses: Any, options: Any, said: str) -> None:
    with pytest.raises(AiperfError, match="--reset-kv-cache: ") as caught:
        run(Servers(**statuses), reset_kv_cache=True, **options)
    assert said in str(caught.value)


def test_an_interruption_ends_the_tries() -> None:
    servers = Servers(reset_prefix_cache=[503])
    servers.ending = True
    assert run(servers, reset_kv_cache=True, ended=0).asked == ["http://a/reset_prefix_cache"]


def test_a_profiler_that_fails_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    servers = run(Servers(start_profile=[404], stop_profile=[404]), server_profiler=True)
    assert len(servers.asked) == 4
    assert [record.message for record in caplog.records] == [
        "--server-profiler: http://a/start_profile: the server answers 404; the run goes on without it"
    ]


@pytest.mark.parametrize("path", ["start_profile", "http://b/start", "//b/start", ""])
def test_a_path_that_is_not_below_the_server_is_refused(path: str) -> None:
    given = {"server_profiler_start_path": path}
    options, errors = validate(ServerControlOptions, specs(ServerControlOptions), given, {})
    assert options is None
    assert "no path below the base URL" in str(errors[0])


@pytest.mark.parametrize(("options", "said"), [
    ({"reset_kv_cache": True}, "--reset-kv-cache asks over HTTP, and calls://h:1 is none"),
    ({"server_profiler": True}, "--server-profiler asks over HTTP, and calls://h:1 is none"), ({}, ""),
])  # fmt: skip
def test_what_is_asked_over_http_needs_such_a_server(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    hooks = ServerControl()
    hooks.options = ServerControlOptions(**options)
    hooks.aiperf_plan_validated(plan_for(tmp_path, urls=("calls://h:1",), control_urls=("http://h:2",)))
    if not said:
        hooks.aiperf_plan_validated(plan_for(tmp_path, urls=("calls://h:1",)))
        return
    with pytest.raises(ConfigError) as caught:
        hooks.aiperf_plan_validated(plan_for(tmp_path, urls=("calls://h:1",)))
    assert caught.value.message == said and "--server-control-url http://host:port" in caught.value.hints[0]


class TestServerControlKeepsTheContract(ServerControlContract):
    pass
