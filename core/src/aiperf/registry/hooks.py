"""The hook plugins of a process: registered, isolated from each other, and called through pluggy.

pluggy stops at the first exception, so each implementation is wrapped when it is registered.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from aiperf import environment
from aiperf.errors import AiperfError, ConfigError, PluginError
from aiperf.registry.patience import calls
from aiperf.registry.third_party import failure, load
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.model import HttpRequest, Turn

if TYPE_CHECKING:
    from pluggy import HookImpl, PluginManager

log = logging.getLogger(__name__)

Prepare: TypeAlias = Callable[[HttpRequest, Turn], HttpRequest]
REQUEST_PREPARED = "aiperf_request_prepared"
"""The hook of every request: a chain of bound functions, because a call through pluggy costs 1.4 to 2.1 µs."""
_PLAN, _SCHEDULE, _CONFIGURED = "aiperf_plan_validated", "aiperf_make_schedule", "aiperf_run_configured"
_COPY, _RECOGNISE = "aiperf_local_copy", "aiperf_recognise_file"
_GUIDES = ("aiperf_where_is", "aiperf_unknown_plugin", "aiperf_unknown_option", "aiperf_unknown_command")


def _having(*attributes: str) -> Callable[[Any], bool]:
    return lambda value: all(hasattr(value, name) for name in attributes)


_is_artifact = _having("label", "path")
_RESULTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **{hook: ("a text", lambda value: isinstance(value, str)) for hook in _GUIDES},
    _COPY: ("Path", lambda value: isinstance(value, Path)),
    _RECOGNISE: ("Recognition", _having("row", "format", "refusal", "hints", "warnings")),
    _SCHEDULE: ("a schedule", _having("paced", "due_block")),
    "aiperf_make_transport": ("a transport", _having("open", "send", "abort", "close")),
    REQUEST_PREPARED: ("HttpRequest", lambda value: isinstance(value, HttpRequest)),
    "aiperf_export": ("a list of Artifact", lambda value: isinstance(value, list) and all(map(_is_artifact, value))),
}
"""By hook, what it may return beside None, in words and as a check.  The results of all other hooks are ignored."""
_FIRST_RESULT = (*_GUIDES, _COPY, _RECOGNISE, _SCHEDULE, "aiperf_make_transport")


class Hooks:
    """The hook plugins of one process.

    An exception, a SystemExit or a wrong result of an implementation is reported once for each plugin and hook, counts as None,
    and the other implementations still run.  KeyboardInterrupt passes.  An AiperfError passes from ``aiperf_local_copy``,
    ``aiperf_make_schedule`` and ``aiperf_run_configured``, and goes to :attr:`refusals` from ``aiperf_plan_validated``.
    """

    def __init__(self, report: Callable[[str], object] = log.warning) -> None:
        self.report = report
        self.refusals: list[AiperfError] = []
        """Why plugins refuse the plan."""
        self._manager: PluginManager | None = None
        self._targets: dict[str, Any] = {}
        self._implementations: dict[str, list[tuple[PluginRef, HookImpl]]] = {}
        self._reported: set[tuple[str, str]] = set()
        self._authors: dict[str, PluginRef] = {}
        self.implemented: dict[str, tuple[str, ...]] = {}
        """By ``category:name`` of a plugin, the names of its hooks."""

    @classmethod
    def load(cls, plugins: Iterable[tuple[PluginRef, Any]], report: Callable[[str], object] = log.warning) -> Hooks:
        """*plugins*, each with its options (None: it declares none), registered in their order.

        A plugin that can't be imported or registered is reported and left out.
        """
        hooks = cls(report)
        for ref, options in plugins:
            try:
                hooks.register(ref, load(ref), options)
            except PluginError as error:
                report(f"{error.message}; it is left out")
        return hooks

    def register(self, ref: PluginRef, plugin: Any, options: Any = None) -> tuple[str, ...]:
        """Register a module, an object or a class, which is instantiated; the names of the hooks that it implements.

        Raises:
            PluginError: Its constructor fails, it has no hook, or an implementation can't be called.
        """
        manager = self._manager = self._manager or _manager()
        try:
            target = plugin() if isinstance(plugin, type) else plugin
        except (Exception, SystemExit) as error:  # the constructor of a plugin
            raise failure(ref, "can't be registered", error) from error
        marked = [name for name in dir(target) if manager.parse_hookimpl_opts(target, name) is not None]
        if not marked:
            raise PluginError(f"{ref} implements no hook")
        for name in marked:
            _check(manager, ref, target, name)
        try:
            manager.register(target, name=ref.key)
        except Exception as error:  # pluggy's own checks
            raise PluginError(f"{ref} can't be registered: {' '.join(str(error).split())}") from error
        self._targets[ref.key] = target
        self.equip(ref, options)
        callers = manager.get_hookcallers(target) or []
        for caller in callers:
            for implementation in caller.get_hookimpls():
                if implementation.plugin is target:
                    self._take(ref, caller.name, implementation)
        self.implemented[ref.key] = tuple(sorted(caller.name for caller in callers))
        return self.implemented[ref.key]

    def equip(self, ref: PluginRef, options: Any) -> None:
        """Set the options of a registered plugin."""
        if options is not None and ref.key in self._targets:
            self._targets[ref.key].options = options

    def call(self, hook: str, **arguments: Any) -> Any:
        """The results other than None, in pluggy's order; of a hook with one result the first, or None.

        None, too, where no plugin implements the hook.
        """
        if self._manager is None or hook not in self._implementations:
            return None
        return getattr(self._manager.hook, hook)(**arguments)

    def equipment(self) -> dict[str, Any]:
        """The options that plugins have now, by ``category:name``."""
        return {key: vars(target)["options"] for key, target in self._targets.items() if "options" in vars(target)}

    @contextlib.contextmanager
    def equipped(self, options: Mapping[str, Any]) -> Iterator[None]:
        """In the block plugins have these *options* (:meth:`equipment`), of a plan before."""
        now = self.equipment()
        try:
            for key, each in options.items():
                self._targets[key].options = each
            yield
        finally:
            for key, each in now.items():
                self._targets[key].options = each

    def author(self, hook: str) -> PluginRef | None:
        """The plugin that gave the hook's last result."""
        return self._authors.get(hook)

    def request_chain(self) -> Prepare | None:
        """``aiperf_request_prepared`` as one plain call; None where no plugin implements it.

        Plugins run in the order of their registration, first those with ``tryfirst``, last those with ``trylast``, each on the
        request that the one before returned.
        """
        pairs = sorted(self._implementations.get(REQUEST_PREPARED, ()), key=lambda pair: pair[1].trylast - pair[1].tryfirst)
        chain = [(_bound(implementation), ref) for ref, implementation in pairs]
        if not chain:
            return None

        def prepare(request: HttpRequest, turn: Turn) -> HttpRequest:
            for call, ref in chain:
                try:
                    changed = call(request, turn)
                except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin: the request goes out unchanged
                    self._failed(ref, REQUEST_PREPARED, error)
                    continue
                if isinstance(changed, HttpRequest):
                    request = changed
                elif changed is not None:
                    self._misreturned(ref, REQUEST_PREPARED, changed)
            return request

        return prepare

    def _take(self, ref: PluginRef, hook: str, implementation: HookImpl) -> None:
        """Isolate an implementation in its place; pluggy has verified the function and knows its arguments."""
        self._implementations.setdefault(hook, []).append((ref, implementation))
        function = implementation.function
        if _traced():
            function = _timed_wrapper(function, hook, ref.key) if implementation.wrapper else _timed(hook, ref.key)(function)
        if hook != REQUEST_PREPARED:
            function = (self._isolated_wrapper if implementation.wrapper else self._isolated)(function, ref, hook)
        setattr(implementation, "function", function)  # noqa: B010  # pluggy declares it Final

    def _isolated(self, function: Callable[..., Any], ref: PluginRef, hook: str) -> Callable[..., Any]:
        def isolated(*args: Any, **kwargs: Any) -> Any:
            if ref.key in calls.left:
                return None
            try:
                with calls.of(ref):
                    result = function(*args, **kwargs)
            except (Exception, SystemExit) as error:  # code of a plugin
                if isinstance(error, AiperfError) and hook in (_COPY, _SCHEDULE, _CONFIGURED):
                    raise
                self._failed(ref, hook, error)
                return None
            if result is None or hook not in _RESULTS:
                return None
            if not _RESULTS[hook][1](result):
                self._misreturned(ref, hook, result)
                return None
            self._authors[hook] = ref
            return result

        return isolated

    def _isolated_wrapper(self, function: Callable[..., Any], ref: PluginRef, hook: str) -> Callable[..., Any]:
        def isolated(*args: Any, **kwargs: Any) -> Generator[None, Any, Any]:
            wrapper = function(*args, **kwargs)
            try:
                with calls.of(ref):
                    next(wrapper)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
                self._failed(ref, hook, RuntimeError("it did not yield") if isinstance(error, StopIteration) else error)
                return (yield)
            try:
                result = yield
            except BaseException:
                wrapper.close()
                raise
            try:
                with calls.of(ref):
                    wrapper.send(result)
            except StopIteration as end:
                return self._rewrapped(end.value, result, ref, hook)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
                self._failed(ref, hook, error)
                return result
            wrapper.close()
            self._failed(ref, hook, RuntimeError("it yielded twice"))
            return result

        return isolated

    def _rewrapped(self, value: Any, result: Any, ref: PluginRef, hook: str) -> Any:
        """The value that a wrapper returned; *result*, which it wraps, where the value is of a wrong type."""
        if hook not in _RESULTS:
            return []
        accepts = _RESULTS[hook][1]
        listed = hook not in _FIRST_RESULT
        if not (isinstance(value, list) and all(map(accepts, value)) if listed else value is None or accepts(value)):
            self._misreturned(ref, hook, value)
            return result
        if value is not result:
            self._authors[hook] = ref
        return value

    def _failed(self, ref: PluginRef, hook: str, error: BaseException) -> None:
        if isinstance(error, AiperfError) and hook == _PLAN:
            self.refusals.append(error)
        elif (ref.key, hook) not in self._reported:
            self._reported.add((ref.key, hook))
            self.report(failure(ref, f"failed in {hook}", error).message)

    def _misreturned(self, ref: PluginRef, hook: str, value: object) -> None:
        self._failed(ref, hook, PluginError(f"it returned {type(value).__name__}, not {_RESULTS[hook][0]}"))


def _manager() -> PluginManager:
    from pluggy import PluginManager

    from aiperf.sdk import hooks

    manager = PluginManager("aiperf")
    manager.add_hookspecs(hooks)
    return manager


def _check(manager: PluginManager, ref: PluginRef, target: Any, name: str) -> None:
    """Refuse an implementation that could not be called, with a sentence that pluggy doesn't have.

    Raises:
        PluginError: No such hook, an argument that the hook doesn't have, or an impossible wrapper.
    """
    options: Any = manager.parse_hookimpl_opts(target, name)
    hook = options.get("specname") or name
    caller = getattr(manager.hook, hook) if hasattr(manager.hook, hook) else None
    if caller is None or caller.spec is None:
        raise PluginError(f"{ref} implements {hook}, which is no hook")
    function = getattr(target, name)
    known = caller.spec.argnames
    for argument in inspect.signature(function).parameters.values():
        required = argument.default is argument.empty and argument.kind is argument.POSITIONAL_OR_KEYWORD
        if required and argument.name not in known:
            raise PluginError(f"{ref} asks {hook} for {argument.name!r}; its arguments are {', '.join(known) or 'none'}")
    if options["hookwrapper"]:
        raise PluginError(f"{ref} has a wrapper of {hook} of pluggy's old kind: write wrapper=True, and return the result")
    if options["wrapper"] and hook == REQUEST_PREPARED:
        raise PluginError(f"{ref} has a wrapper of {hook}, which is a plain chain: return the changed request instead")
    if options["wrapper"] and not inspect.isgeneratorfunction(function):
        raise PluginError(f"{ref} has a wrapper of {hook} that does not yield")


def _bound(implementation: HookImpl) -> Callable[[HttpRequest, Turn], Any]:
    """The implementation as a function of (request, turn), whichever of the two it asks for."""
    call: Callable[..., Any] = implementation.function
    ways: dict[tuple[str, ...], Callable[[HttpRequest, Turn], Any]] = {
        ("request", "turn"): call,
        ("turn", "request"): lambda request, turn: call(turn, request),
        ("request",): lambda request, turn: call(request),
        ("turn",): lambda request, turn: call(turn),
    }
    return ways.get((*implementation.argnames, *implementation.kwargnames), lambda request, turn: call())


def _timed_wrapper(function: Callable[..., Any], hook: str, plugin: str) -> Callable[..., Any]:
    """Does what :func:`_timed` does, for a wrapper: the time includes the implementations inside."""

    def timed(*args: Any, **kwargs: Any) -> Generator[None, Any, Any]:
        with _timed(hook, plugin):
            return (yield from function(*args, **kwargs))

    return timed


def _traced() -> bool:
    """Whether calls are written to standard error.  A wrong value is told with all that is wrong with a run."""
    try:
        return environment.trace_hooks()
    except ConfigError:
        return False


@contextlib.contextmanager
def _timed(hook: str, plugin: str) -> Iterator[None]:
    """``AIPERF_TRACE_HOOKS=1``: each call on standard error, with its plugin and duration."""
    began_ns, end = time.perf_counter_ns(), ""
    try:
        yield
    except BaseException as error:
        end = f", raised {type(error).__name__}"
        raise
    finally:
        took_ms = (time.perf_counter_ns() - began_ns) / 1e6
        print(f"{time.strftime('%H:%M:%S')} hook {hook} of {plugin}: {took_ms:.3f} ms{end}", file=sys.stderr)
