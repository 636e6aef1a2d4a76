"""What every hooks plugin must do: implement hooks that there are, with arguments that they have."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.registry.hooks import Hooks
from aiperf.sdk import hooks as specification
from aiperf.sdk.descriptor import PluginRef

from aiperf_testing.findings import shown
from aiperf_testing.manifests import check_row

_REF = PluginRef("hooks", "contract", "", "its package", "")
_IMPLEMENTED = "aiperf_impl"
"""What ``hookimpl`` puts on a function."""


class HooksContract:
    """Subclass with what the package registers: a class, an object, or a module::

        class TestMineKeepsTheContract(HooksContract):
            hooks = Mine
    """

    hooks: ClassVar[Any]

    def _registered(self) -> Any:
        """The object with the hooks: the class's instance, or the module or object itself."""
        hooks = type(self).hooks
        return hooks() if isinstance(hooks, type) else hooks

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("hooks", type(self).hooks)

    def test_its_hooks_are_there_and_have_its_arguments(self) -> None:
        assert Hooks().register(_REF, type(self).hooks), "it implements no hook: mark a method aiperf_… with @hookimpl"

    def test_no_hook_was_meant_and_not_marked(self) -> None:
        known = {name for name in vars(specification) if name.startswith("aiperf_")}
        target = self._registered()
        meant = {name: getattr(target, name) for name in dir(target) if name.startswith("aiperf_")}
        unmarked = sorted(name for name, found in meant.items() if callable(found) and not hasattr(found, _IMPLEMENTED))
        assert not unmarked, f"{', '.join(unmarked)} lacks @hookimpl, so it is never called"
        assert set(meant) <= known, f"there is no hook {sorted(set(meant) - known)[0]}"

    def test_a_run_that_failed_before_anything_happened_ends_well(self) -> None:
        failures: list[str] = []
        hooks = Hooks(failures.append)
        hooks.register(_REF, type(self).hooks)
        hooks.call("aiperf_teardown")
        assert failures == [], (
            f"in a run that failed early: {shown(failures)}; teardown must not rely on hooks that were never called"
        )
