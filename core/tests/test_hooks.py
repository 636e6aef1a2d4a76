"""Hook plugins: registration, isolation, order, wrappers and the chain of requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from aiperf import Artifact, ConfigError, HttpRequest, PluginError, Turn, environment, hookimpl
from aiperf.registry.hooks import Hooks
from aiperf.sdk.descriptor import PluginRef

PHASE = "profiling"
FIRST, SECOND = (Artifact(name, Path(name)) for name in ("a", "b"))


def ref(name: str) -> PluginRef:
    return PluginRef("hooks", name, f"acme:{name}", "acme", "1.2")


def registered(*plugins: Any) -> tuple[Hooks, list[str]]:
    """The plugins as hooks:a, hooks:b, …, and their reports."""
    reports: list[str] = []
    hooks = Hooks(reports.append)
    for name, plugin in zip("abcdef", plugins, strict=False):
        hooks.register(ref(name), plugin)
    return hooks, reports


class Listener:
    def __init__(self, log: list[str], name: str, error: BaseException | None = None) -> None:
        self.log, self.name, self.error = log, name, error

    @hookimpl
    def aiperf_phase_ended(self) -> None:
        self.log.append(self.name)
        if self.error is not None:
            raise self.error


def exporting(result: Any) -> Any:
    class Exports:
        @hookimpl
        def aiperf_export(self, summary: Any) -> Any:
            return result

    return Exports()


def test_the_last_registered_plugin_is_called_first() -> None:
    log: list[str] = []
    hooks, _ = registered(*(Listener(log, name) for name in "xyz"))
    hooks.call("aiperf_phase_ended", plan=None, phase=PHASE, servers=None)
    assert log == ["z", "y", "x"]


@pytest.mark.parametrize(
    ("error", "reason"), [(ValueError("too loud"), "ValueError: too loud"), (SystemExit(3), "SystemExit: 3")]
)
def test_a_failure_is_reported_once_and_the_others_still_run(error: BaseException, reason: str) -> None:
    log: list[str] = []
    hooks, reports = registered(Listener(log, "x"), Listener(log, "y", error), Listener(log, "z"))
    for _ in range(2):
        hooks.call("aiperf_phase_ended", plan=None, phase=PHASE, servers=None)
    assert log == ["z", "y", "x"] * 2
    assert reports == [f"the plugin hooks:b of acme 1.2 failed in aiperf_phase_ended: {reason}"]


def test_an_interrupt_passes() -> None:
    hooks, reports = registered(Listener([], "x", KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        hooks.call("aiperf_phase_ended", plan=None, phase=PHASE, servers=None)
    assert reports == []


@pytest.mark.parametrize(
    ("hook", "result", "words"),
    [
        ("aiperf_export", "a path", "it returned str, not a list of Artifact"),
        ("aiperf_make_schedule", 5, "it returned int, not a schedule"),
        ("aiperf_make_transport", [], "it returned list, not a transport"),
    ],
)
def test_a_wrong_result_is_reported_once_and_counts_as_none(hook: str, result: Any, words: str) -> None:
    plugin = type("Wrong", (), {hook: hookimpl(lambda self: result)})
    hooks, reports = registered(plugin)
    given = {"aiperf_export": ("summary", "target"), "aiperf_make_schedule": ("plan", "phase", "context")}
    arguments = dict.fromkeys(given.get(hook, ("settings", "sink", "loop")))
    assert not [hooks.call(hook, **arguments) for _ in range(2)][1]
    assert reports == [f"the plugin hooks:a of acme 1.2 failed in {hook}: {words}"]


def test_of_a_hook_with_one_result_the_first_counts() -> None:
    class Schedule:
        paced = True

        def due_block(self, first: int, count: int) -> None: ...

    class Makes:
        def __init__(self, schedule: Any) -> None:
            self.schedule = schedule

        @hookimpl
        def aiperf_make_schedule(self) -> Any:
            return self.schedule

    mine, other = Schedule(), Schedule()
    hooks, reports = registered(Makes(other), Makes(mine), Makes("no schedule"), Makes(None))
    assert hooks.call("aiperf_make_schedule", plan=None, phase=PHASE, context=None) is mine
    assert hooks.author("aiperf_make_schedule") == ref("b")
    assert len(reports) == 1 and "hooks:c of acme 1.2" in reports[0]


def test_a_plan_is_refused_by_every_plugin_that_refuses_it() -> None:
    class Refuses:
        def __init__(self, error: Exception) -> None:
            self.error = error

        @hookimpl
        def aiperf_plan_validated(self, plan: Any) -> None:
            raise self.error

    hooks, reports = registered(Refuses(ConfigError("not today")), Refuses(ValueError("a bug")), Refuses(ConfigError("never")))
    hooks.call("aiperf_plan_validated", plan=None)
    assert [error.message for error in hooks.refusals] == ["never", "not today"]
    assert reports == ["the plugin hooks:b of acme 1.2 failed in aiperf_plan_validated: ValueError: a bug"]


# Wrappers


class Wraps:
    def __init__(self, body: Callable[[], Generator[None, Any, Any]]) -> None:
        self.body = body

    @hookimpl(wrapper=True)
    def aiperf_export(self) -> Generator[None, Any, Any]:
        return (yield from self.body())


def export(hooks: Hooks) -> Any:
    return hooks.call("aiperf_export", summary=None, target=None)


def test_a_wrapper_sees_and_changes_the_results() -> None:
    def doubled() -> Generator[None, Any, Any]:
        results = yield
        return results * 2

    hooks, reports = registered(exporting([FIRST]), Wraps(doubled))
    assert (export(hooks), reports) == ([[FIRST], [FIRST]], [])


def never() -> Generator[None, Any, Any]:
    if PHASE == "another":
        yield
    return ["lost"]


def early() -> Generator[None, Any, Any]:
    raise ValueError("before")
    yield


def late() -> Generator[None, Any, Any]:
    yield
    raise ValueError("after")


def twice() -> Generator[None, Any, Any]:
    yield
    yield


def forgets() -> Generator[None, Any, Any]:
    yield


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (never, "RuntimeError: it did not yield"),
        (early, "ValueError: before"),
        (late, "ValueError: after"),
        (twice, "RuntimeError: it yielded twice"),
        (forgets, "it returned NoneType, not a list of Artifact"),
    ],
)
def test_a_failing_wrapper_leaves_the_results_alone(body: Any, reason: str) -> None:
    hooks, reports = registered(exporting([FIRST]), Wraps(body), exporting([SECOND]))
    assert [export(hooks) for _ in range(2)] == [[[SECOND], [FIRST]]] * 2
    assert reports == [f"the plugin hooks:b of acme 1.2 failed in aiperf_export: {reason}"]


# Refused


class NoHook:
    pass


class UnknownHook:
    @hookimpl
    def aiperf_run_endet(self) -> None: ...


class UnknownArgument:
    @hookimpl
    def aiperf_request_prepared(self, request: Any, colour: Any) -> None: ...


class WrapperWithoutYield:
    @hookimpl(wrapper=True)
    def aiperf_export(self, summary: Any) -> None: ...


class OldWrapper:
    @hookimpl(hookwrapper=True)
    def aiperf_export(self) -> Generator[None, Any, None]:
        yield


class WrapsRequests:
    @hookimpl(wrapper=True)
    def aiperf_request_prepared(self) -> Generator[None, Any, Any]:
        return (yield)


class Unborn:
    def __init__(self) -> None:
        raise RuntimeError("no licence")


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (NoHook, "implements no hook"),
        (UnknownHook, "implements aiperf_run_endet, which is no hook"),
        (UnknownArgument, "asks aiperf_request_prepared for 'colour'; its arguments are request, turn"),
        (WrapperWithoutYield, "has a wrapper of aiperf_export that does not yield"),
        (OldWrapper, "has a wrapper of aiperf_export of pluggy's old kind: write wrapper=True, and return the result"),
        (WrapsRequests, "has a wrapper of aiperf_request_prepared, which is a plain chain: return the changed request instead"),
        (Unborn, "can't be registered: RuntimeError: no licence"),
    ],
)
def test_a_plugin_that_could_not_be_called_is_refused(plugin: Any, reason: str) -> None:
    hooks = Hooks()
    with pytest.raises(PluginError) as caught:
        hooks.register(ref("odd"), plugin)
    assert caught.value.message == f"the plugin hooks:odd of acme 1.2 {reason}"
    assert hooks.implemented == {}


# Requests

REQUEST = HttpRequest("/v1/x", b"0")
TURN = Turn(("hi",), model="m")


def adding(text: bytes, *, tryfirst: bool = False, trylast: bool = False) -> Any:
    class Adds:
        @hookimpl(tryfirst=tryfirst, trylast=trylast)
        def aiperf_request_prepared(self, request: HttpRequest) -> HttpRequest:
            return HttpRequest(request.path, (request.body or b"") + text)

    return Adds()


def test_requests_pass_the_plugins_in_order_of_registration() -> None:
    hooks, _ = registered(
        adding(b"l", trylast=True), adding(b"1"), adding(b"f", tryfirst=True), adding(b"2"), adding(b"L", trylast=True),
        adding(b"F", tryfirst=True),
    )  # fmt: skip
    prepare = hooks.request_chain()
    assert prepare is not None and prepare(REQUEST, TURN).body == b"0fF12lL"


def test_without_an_implementation_there_is_no_chain() -> None:
    assert registered(Listener([], "x"))[0].request_chain() is None
    assert Hooks().request_chain() is None


def test_a_request_hook_that_fails_leaves_the_request_as_it_was() -> None:
    class Fails:
        @hookimpl
        def aiperf_request_prepared(self, turn: Any) -> Any:
            raise SystemExit(turn.model)

    class Misreturns:
        @hookimpl
        def aiperf_request_prepared(self, turn: Any, request: Any) -> Any:
            return request.body

    hooks, reports = registered(adding(b"1"), Fails, Misreturns, adding(b"2"))
    prepare = hooks.request_chain()
    assert prepare is not None
    assert [prepare(REQUEST, TURN).body for _ in range(2)] == [b"012"] * 2
    assert reports == [
        "the plugin hooks:b of acme 1.2 failed in aiperf_request_prepared: SystemExit: m",
        "the plugin hooks:c of acme 1.2 failed in aiperf_request_prepared: it returned bytes, not HttpRequest",
    ]


# AIPERF_TRACE_HOOKS


def test_a_traced_call_is_one_line_with_plugin_and_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def same() -> Generator[None, Any, Any]:
        return (yield)

    monkeypatch.setenv("AIPERF_TRACE_HOOKS", "1")
    hooks, _ = registered(Listener([], "x"), Listener([], "y", ValueError("no")), adding(b"1"), Wraps(same))
    hooks.call("aiperf_phase_ended", plan=None, phase=PHASE, servers=None)
    prepare = hooks.request_chain()
    assert prepare is not None and prepare(REQUEST, TURN).body == b"01"
    export(hooks)
    lines = capsys.readouterr().err.splitlines()
    time_of = r"\d\d:\d\d:\d\d hook {} of hooks:{}: \d+\.\d{{3}} ms{}"
    expected = [
        ("aiperf_phase_ended", "b", ", raised ValueError"), ("aiperf_phase_ended", "a", ""),
        ("aiperf_request_prepared", "c", ""), ("aiperf_export", "d", ""),
    ]  # fmt: skip
    assert len(lines) == len(expected)
    for line, words in zip(lines, expected, strict=True):
        assert re.fullmatch(time_of.format(*words), line)


def test_an_untraced_call_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("AIPERF_TRACE_HOOKS", raising=False)
    hooks, _ = registered(Listener([], "x"))
    hooks.call("aiperf_phase_ended", plan=None, phase=PHASE, servers=None)
    assert capsys.readouterr().err == ""


def test_a_meaningless_value_of_the_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_TRACE_HOOKS", "maybe")
    (problem,) = environment.problems()
    assert problem.message == "AIPERF_TRACE_HOOKS is 'maybe'; it must be true or false"
    registered(Listener([], "x"))  # nothing is raised here: the value is told with all other mistakes
