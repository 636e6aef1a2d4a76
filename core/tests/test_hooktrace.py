"""AIPERF_TRACE_HOOKS: each call of each plugin is told, and nothing else changes."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pluggy
import pytest
from aiperf import ConfigError, environment, hookimpl, hooks
from aiperf.hooktrace import trace


class Counting:
    def __init__(self) -> None:
        self.ended: list[Any] = []

    @hookimpl
    def aiperf_phase_ended(self, phase: Any) -> None:
        self.ended.append(phase)


class Failing:
    @hookimpl
    def aiperf_phase_ended(self) -> None:
        raise ValueError("no")


@pytest.fixture
def manager() -> pluggy.PluginManager:
    made = pluggy.PluginManager("aiperf")
    made.add_hookspecs(hooks)
    return made


def called(manager: pluggy.PluginManager) -> None:
    """As the kernel's parent process does it."""
    given = {"plan": SimpleNamespace(), "phase": "profiling"}
    for found in manager.hook.aiperf_phase_ended.get_hookimpls():
        found.function(*(given[name] for name in found.argnames))


def test_a_call_is_one_line_with_its_plugin_and_time(
    manager: pluggy.PluginManager, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIPERF_TRACE_HOOKS", "1")
    plugins = Counting(), Counting()
    for name, plugin in zip("ab", plugins, strict=True):
        manager.register(plugin, f"hooks:{name}")
    trace(manager)
    called(manager)
    manager.hook.aiperf_phase_ended(plan=None, phase="again")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    for line in said:
        assert re.fullmatch(r"\d\d:\d\d:\d\d hook aiperf_phase_ended of hooks:[ab]: \d+\.\d{3} ms", line)
    assert [plugin.ended for plugin in plugins] == [["profiling", "again"]] * 2


def test_a_failing_one_says_so_and_still_fails(
    manager: pluggy.PluginManager, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AIPERF_TRACE_HOOKS", "1")
    manager.register(Failing(), "hooks:bad")
    trace(manager)
    with pytest.raises(ValueError, match="no"):
        called(manager)
    assert capsys.readouterr().err.rstrip().endswith("ms, raised ValueError")


def test_unasked_nothing_is_wrapped(
    manager: pluggy.PluginManager, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AIPERF_TRACE_HOOKS", raising=False)
    plugin = Counting()
    manager.register(plugin, "hooks:a")
    (before,) = manager.hook.aiperf_phase_ended.get_hookimpls()
    function = before.function
    trace(manager)
    assert manager.hook.aiperf_phase_ended.get_hookimpls()[0].function is function
    called(manager)
    assert capsys.readouterr().err == ""


def test_a_value_that_means_nothing_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_TRACE_HOOKS", "maybe")
    with pytest.raises(ConfigError, match="AIPERF_TRACE_HOOKS"):
        environment.check()
