"""Code of plugin packages: loading it, and errors that name the plugin."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from aiperf.errors import AiperfError, PluginError
from aiperf.redaction import harmless
from aiperf.registry.imports import IMPORTS, ImportTimeoutError
from aiperf.registry.patience import LeftBehind, calls
from aiperf.sdk.descriptor import PluginRef

if TYPE_CHECKING:
    from aiperf.sdk.endpoint import Endpoint
    from aiperf.sdk.plan import Plan

log = logging.getLogger(__name__)

_MOVED = " (docs/plugins.md, \"What moved\", has the table of names that moved)"


def load(plugin: PluginRef, *hints: str) -> Any:
    """Import the object of a plugin's entry point.  Every process loads plugins with this function.

    Raises:
        PluginError: The import fails; the message names package and version and carries *hints*.
    """
    return _loaded(_imported, plugin, hints)


def load_by_name(plugin: PluginRef, *hints: str) -> Any:
    """Like :func:`load`, by stevedore, whose import costs 40 ms: for plugins that are looked up by name outside of runs."""
    return _loaded(_from_stevedore, plugin, hints)


def _loaded(how: Callable[[PluginRef], Any], plugin: PluginRef, hints: tuple[str, ...]) -> Any:
    try:
        with IMPORTS.limited(plugin.value.partition(":")[0], plugin):
            return how(plugin)
    except ImportTimeoutError as error:
        raise PluginError(f"{plugin} can't be imported: {error}", *hints) from None
    except ImportError as error:
        log.debug("traceback:", exc_info=error)
        moved = _MOVED if (error.name or "").partition(".")[0] == "aiperf" else ""
        raise PluginError(f"{plugin} can't be imported: {error}{moved}", *(hints or _to_install(plugin, error))) from error
    except (Exception, SystemExit) as error:  # a module of a plugin may raise anything while it is imported
        raise failure(plugin, "can't be imported", error) from error


def _to_install(plugin: PluginRef, error: ImportError) -> tuple[str, ...]:
    """What to install where a module of another package is missing; () for other failures."""
    module = (error.name or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or module in ("", "aiperf", plugin.value.partition(":")[0].partition(".")[0]):
        return ()
    return (f"pip install {module.replace('_', '-')}, or what else has it; {plugin.distribution} needs it",)


def _imported(plugin: PluginRef) -> Any:
    module, _, name = plugin.value.partition(":")
    return attrgetter(name)(import_module(module))


def _from_stevedore(plugin: PluginRef) -> Any:
    """The object of the entry point that precedence chose.  Whatever its import raises passes."""
    from importlib.metadata import EntryPoint

    from stevedore.driver import DriverManager

    point = EntryPoint(plugin.name, plugin.value, f"aiperf.{plugin.category}")

    class _Driver(DriverManager[Any]):
        """A driver manager that doesn't scan the environment and doesn't import the entry point's rivals."""

        def list_entry_points(self) -> list[EntryPoint]:
            return [point]

    return _Driver(point.group, point.name).extensions[0].plugin


def made(plugin: PluginRef, *arguments: Any) -> Any:
    """The result of calling the plugin, a class or a function, with *arguments*.

    Raises:
        PluginError: The import or the call fails; the message names package and version.
    """
    factory = load(plugin)
    with blamed(plugin, "can't be used"):
        return factory(*arguments)


def endpoint_of(plan: Plan) -> Endpoint:
    """The endpoint of the plan, with what it has prepared.

    Raises:
        PluginError: It can't be used.
    """
    ref = plan.plugins.endpoint
    endpoint: Endpoint = made(ref, plan.plugins.options_of(ref))
    if plan.target.prepared is not None:
        endpoint.prepared = plan.target.prepared
    return endpoint


def why(error: BaseException) -> str:
    """The message of an error of ours; of the operating system's, the file and its reason; else type and message."""
    if isinstance(error, AiperfError):
        return "; ".join(line.strip() for line in error.lines())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return harmless(str(error) if isinstance(error, LeftBehind) else f"{type(error).__name__}: {error}")


def failure(who: object, what: str, error: BaseException) -> PluginError:
    """The error to raise for an exception of a plugin.  The traceback goes to the debug log."""
    log.debug("traceback:", exc_info=error)
    return PluginError(f"{who} {what}: {why(error)}")


@contextlib.contextmanager
def blamed(who: object, what: str) -> Iterator[None]:
    """Turn an exception of a plugin's code into ``PluginError("WHO WHAT: TYPE: MESSAGE")``; an AiperfError passes unchanged."""
    try:
        with calls.of(who):
            yield
    except AiperfError:
        raise
    except (Exception, SystemExit) as error:  # code of a plugin
        raise failure(who, what, error) from error


class isolated(contextlib.ContextDecorator):  # noqa: N801  # used as a function is
    """Stop an exception of a plugin's code here, and pass one sentence on it to *report*; works as a decorator, too.

    The sentence is ``WHO WHAT: TYPE: MESSAGE``; *who* is usually a :class:`PluginRef`.  The traceback goes to the debug log.
    SystemExit counts as a failure.  Exceptions in *passing*, KeyboardInterrupt and cancellation pass through.  The block ends
    at the exception, so set its result to None before it::

        scores = None
        with isolated(ref, self.warn):
            scores = grader.grade(expected, answer)
    """

    def __init__(
        self, who: object, report: Callable[[str], object], what: str = "failed", *,
        passing: type[BaseException] | tuple[type[BaseException], ...] = (),
    ) -> None:  # fmt: skip
        self._all = who, report, what, passing

    def _recreate_cm(self) -> isolated:
        """Each call of a decorated function has a block of its own."""
        who, report, what, passing = self._all
        return isolated(who, report, what, passing=passing)

    def __enter__(self) -> None:
        self._call = calls.of(self._all[0])
        self._call.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._call.__exit__(kind, error, trace)
        who, report, what, passing = self._all
        if error is None or isinstance(error, passing) or not isinstance(error, (Exception, SystemExit)):
            return None
        report(failure(who, what, error).message)
        return True


def left_out(failures: Iterable[tuple[PluginRef, PluginError]]) -> list[str]:
    """A sentence for each package and cause: a package that can't be imported fails with all of its plugins."""
    plugins: dict[tuple[str, str], list[str]] = {}
    for plugin, error in failures:
        plugins.setdefault((plugin.package, error.message.removeprefix(f"{plugin} ")), []).append(plugin.key)
    sentences = []
    for (package, cause), keys in plugins.items():
        noun, end = ("plugins", "they are") if keys[1:] else ("plugin", "it is")
        sentences.append(f"the {noun} {', '.join(keys)} of {package} {cause}; {end} left out")
    return sentences


def said_already(sentence: str, sentences: Iterable[str]) -> bool:
    """Whether one of *sentences* tells of the same package and cause as this sentence of :func:`left_out`."""
    cause = sentence.partition(" of ")[2].rpartition(";")[0]
    return any(f" of {cause};" in other for other in sentences)
